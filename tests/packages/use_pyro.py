import pyro
import pyro.distributions as dist
import torch
from harness import main, section
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal
from pyro.optim import Adam

DATA = torch.tensor([0.5, 1.5, 1.0, 2.0])


def model(data=None):
    mean = pyro.sample("mean", dist.Normal(0.0, 2.0))
    scale = pyro.sample("scale", dist.HalfCauchy(1.0))
    with pyro.plate("data", 4):
        return pyro.sample("x", dist.Normal(mean, scale), obs=data)


@section
def variational():
    pyro.clear_param_store()
    guide = AutoDiagonalNormal(model)
    inference = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO())
    losses = [inference.step(DATA) for _ in range(5)]
    return [losses, guide.median()["mean"]]


@section
def tracing():
    trace = pyro.poutine.trace(pyro.poutine.condition(model, {"mean": torch.tensor(1.0)})).get_trace(DATA)
    return [trace.log_prob_sum(), sorted(trace.nodes)]


@section
def predictive():
    samples = Predictive(model, num_samples=3)()
    return [samples["x"].shape, samples["mean"]]


@section
def nuts():
    run = MCMC(NUTS(model), num_samples=4, warmup_steps=3, disable_progbar=True)
    run.run(DATA)
    return [list(v.shape) for _, v in sorted(run.get_samples().items())]


main()
