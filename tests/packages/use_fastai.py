# ruff: noqa: F403, F405
import tempfile

import numpy as np
import pandas as pd
import torch
from fastai.basics import *  # as its own pages do
from fastai.callback.all import *
from fastai.tabular.all import *
from fastai.vision.all import CrossEntropyLossFlat, DataBlock, ImageBlock, PILImage, Resize, TensorImage, xresnet18
from harness import main, section


class Quiet(Learner):
    """Without the progress bar, whose text is no number."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.remove_cbs(ProgressCallback)
        self.logger = noop


def loaders(n=48):
    x = torch.randn(n, 4)
    y = x.sum(1, keepdim=True)
    return DataLoaders(
        DataLoader(list(zip(x[8:], y[8:])), bs=8, shuffle=True, num_workers=0),
        DataLoader(list(zip(x[:8], y[:8])), bs=8, num_workers=0),
    )


def learner(**options):
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    return Quiet(loaders(), model, loss_func=MSELossFlat(), **options)


def logged(learn):
    return [list(row) for row in learn.recorder.values]


@section
def fitted():
    learn = learner(metrics=[mae])
    learn.fit(3, 1e-2)
    return logged(learn)


@section
def one_cycle():
    learn = learner(opt_func=partial(OptimWrapper, opt=torch.optim.AdamW), cbs=[GradientClip(0.5)])
    learn.fit_one_cycle(2, 1e-2)
    return [logged(learn), learn.recorder.lrs]


@section
def rates_found():
    learn = learner()
    found = learn.lr_find(num_it=20, show_plot=False, suggest_funcs=(valley, minimum))
    return [found.valley, found.minimum, float(learn.recorder.losses[-1])]


@section
def saved_and_loaded():
    learn = learner()
    learn.fit(1)
    with tempfile.TemporaryDirectory() as folder:
        learn.path = Path(folder)
        learn.save("weights")
        other = learner(path=Path(folder))
        other.load("weights")
    return [list(learn.validate()), [p.sum() for p in other.model.parameters()]]


@section
def tables():
    frame = pd.DataFrame(
        {
            "kind": np.random.choice(list("abc"), 64),
            "size": np.random.randn(64),
            "good": np.random.choice(["n", "y"], 64),
        }
    )
    data = TabularDataLoaders.from_df(
        frame, procs=[Categorify, FillMissing, Normalize], cat_names=["kind"], cont_names=["size"], y_names="good",
        valid_idx=list(range(16)), bs=16, num_workers=0,
    )  # fmt: skip
    learn = tabular_learner(data, layers=[8], metrics=accuracy)
    learn.remove_cbs(ProgressCallback)
    learn.logger = noop
    learn.fit(2)
    return [logged(learn), learn.get_preds()[0][:3]]


@section
def pictures():
    block = DataBlock(
        blocks=(ImageBlock, CategoryBlock),
        get_x=lambda i: PILImage.create(np.full((40, 32, 3), i * 7, dtype=np.uint8)),
        get_y=lambda i: "even" if i % 2 == 0 else "odd", splitter=IndexSplitter(range(4)), item_tfms=Resize(32),
    )  # fmt: skip
    data = block.dataloaders(list(range(20)), bs=8, num_workers=0)
    learn = Quiet(data, xresnet18(n_out=2), loss_func=CrossEntropyLossFlat(), metrics=accuracy)
    learn.fit(1, 1e-3)
    x, y = data.one_batch()
    return [type(x) is TensorImage, float(x.mean()), list(y.shape), [float(loss) for loss in learn.recorder.losses]]


@section
def mixed_up():
    learn = learner(
        cbs=[
            SaveModelCallback(fname="best"),
            EarlyStoppingCallback(patience=3),
            ParamScheduler({"lr": SchedCos(1e-2, 1e-3)}),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        learn.path = Path(folder)
        learn.fit(2)
    return logged(learn)


main()
