"""The first draws of every random function, beside PyTorch's from the same seed: bit for bit, and the state after them.

python tests/parity/random_streams.py              rows that differ, then how many were compared
python tests/parity/random_streams.py dropout      only rows that contain one of these
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

import numpy as np
import torch

import rushlight

sys.path.insert(0, os.path.dirname(__file__))
import convert
from opdb import MKL

SIZES = ["1", "2", "15", "16", "17", "31", "33", "100", "5, 7", "2, 3, 8"]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
# Rows that go on with the numbers drawn: through exp, log, products and decompositions, which round their own way.
ROUNDED = ("D.", "nn.", "F.gumbel_softmax", "F.scaled_dot", "torch.svd", "torch._sample_dirichlet")
# Rows that PyTorch takes from MKL's own generator on CPUs of Intel: see engine/numpy/streams.py.
MKL_DRAWS = (
    "bernoulli_(0",
    "dropout",
    "exponential_",
    "gumbel",
    "multinomial",
    "Categorical",
    "Multinomial",
    "torch.bernoulli(torch.empty",
)

# {n} is a size, {d} a dtype.
FLOAT = [
    "torch.rand({n}, dtype={d})",
    "torch.randn({n}, dtype={d})",
    "torch.empty({n}, dtype={d}).uniform_(-0.3, 0.7)",
    "torch.empty({n}, dtype={d}).normal_(0.5, 0.02)",
    "torch.empty({n}, dtype={d}).exponential_(1.5)",
    "torch.empty({n}, dtype={d}).log_normal_(0.1, 0.5)",
    "torch.empty({n}, dtype={d}).cauchy_(0.5, 2.)",
    "torch.empty({n}, dtype={d}).geometric_(0.3)",
    "torch.empty({n}, dtype={d}).bernoulli_(0.3)",
    "torch.empty({n}, dtype={d}).bernoulli_(torch.full(({n},), 0.3, dtype={d}))",
    "torch.empty({n}, dtype={d}).random_()",
    "torch.empty({n}, dtype={d}).random_(7)",
    "torch.empty({n}, dtype={d}).random_(-3, 100)",
    "torch.bernoulli(torch.full(({n},), 0.3, dtype={d}))",
    "torch.bernoulli(torch.empty({n}, dtype={d}), 0.3)",
    "torch.rand_like(torch.empty({n}, dtype={d}))",
    "torch.randn_like(torch.empty({n}, dtype={d}))",
    "torch.randint_like(torch.empty({n}, dtype={d}), 3, 9)",
    "torch.randint(3, 90, ({n},), dtype={d})",
    "torch.normal(torch.full(({n},), 0.5, dtype={d}), 2.)",
    "torch.normal(0.5, torch.full(({n},), 2., dtype={d}))",
    "torch.normal(torch.full(({n},), 0.5, dtype={d}), torch.full(({n},), 2., dtype={d}))",
    "torch.normal(0.5, 2., ({n},), dtype={d})",
    "F.dropout(torch.ones({n}, dtype={d}), 0.3)",
    "F.dropout(torch.ones({n}, dtype={d}), 0.5)",
    "F.alpha_dropout(torch.ones({n}, dtype={d}), 0.3, True)",
    "torch.dropout(torch.ones({n}, dtype={d}), 0.3, True)",
    "F.dropout1d(torch.ones(3, 4, {n}, dtype={d})[..., :2, :2].reshape(3, -1, 2), 0.3)",
    "F.rrelu(-torch.ones({n}, dtype={d}), 0.1, 0.4, True)",
    "F.gumbel_softmax(torch.zeros({n}, dtype={d}), dim=-1)",
    "torch.rand({n}, dtype={d}, out=torch.empty({n}, dtype={d}))",
    "torch.randn({n}, dtype={d}, out=torch.empty({n}, dtype={d}))",
    "torch.empty(3, {n}, dtype={d}).transpose(0, -1).normal_()",
    "torch.empty(3, {n}, dtype={d}).transpose(0, -1).uniform_()",
    "torch.empty({n}, 2, dtype={d})[..., 0].normal_()",
    "torch.empty({n}, 2, dtype={d})[..., 0].uniform_()",
    "torch.empty({n}, 2, dtype={d})[..., 0].bernoulli_(0.4)",
    "F.dropout(torch.ones(3, {n}, dtype={d}).transpose(0, -1), 0.4)",
    "torch.randn(3, {n}, dtype={d}).transpose(0, -1).clone().normal_()",
    "torch.multinomial(torch.ones({n}, dtype={d}).reshape(-1) + 0.5, 1)",
    "torch.multinomial(torch.ones({n}, dtype={d}).reshape(-1), 5, replacement=True)",
    "torch.poisson(torch.full(({n},), 3.5, dtype={d}))",
    "torch.poisson(torch.full(({n},), 35., dtype={d}))",
    "torch._standard_gamma(torch.full(({n},), 0.7, dtype={d}))",
    "torch._standard_gamma(torch.full(({n},), 3., dtype={d}))",
    "torch.binomial(torch.full(({n},), 9., dtype={d}), torch.full(({n},), 0.4, dtype={d}))",
    "torch.binomial(torch.full(({n},), 90., dtype={d}), torch.full(({n},), 0.4, dtype={d}))",
]
ONCE = [
    *(f"torch.randperm({n})" for n in (0, 1, 2, 10, 1000, 30000, 60000)),
    "torch.randperm(100, dtype=torch.int32)",
    "torch.randperm(100, dtype=torch.float32)",
    *(f"torch.randint({b}, (20,))" for b in ("2", "10", "2 ** 31", "2 ** 40", "-2 ** 62, 2 ** 62")),
    "torch.randint(0, 2, (20,), dtype=torch.bool)",
    "torch.randint(0, 255, (20,), dtype=torch.uint8)",
    "torch.empty(20, dtype=torch.int64).random_()",
    "torch.empty(20, dtype=torch.bool).bernoulli_(0.3)",
    "torch.empty(20, dtype=torch.int64).bernoulli_(0.3)",
    "torch.empty(20, dtype=torch.int64).geometric_(0.3)",
    "torch.rand(20, dtype=torch.complex64)",
    "torch.randn(20, dtype=torch.complex64)",
    "torch.randn(7, dtype=torch.complex64)",
    "torch.randn(20, dtype=torch.complex128)",
    "torch.empty(4, 5).bernoulli_(torch.tensor([0.1, 0.9, 0.5, 0.2, 0.3]))",
    "torch.empty(4, 5).bernoulli_(torch.tensor([[0.1], [0.9], [0.5], [0.2]]))",
    "torch.empty(4, 5).bernoulli_(torch.tensor(0.4))",
    "torch.empty(4, 5).bernoulli_(torch.tensor(0.4, dtype=torch.float64))",
    "torch.empty(4, 5).bernoulli_(torch.full((5, 4), 0.4).t())",
    "torch.bernoulli(torch.full((5, 4), 0.4).t())",
    "torch.normal(torch.zeros(4, 1), torch.ones(5))",
    "torch.normal(torch.zeros(40, 1), torch.ones(5))",
    "F.dropout2d(torch.ones(4, 5, 6, 7), 0.4)",
    "F.dropout3d(torch.ones(2, 5, 2, 2, 2), 0.4)",
    "F.feature_alpha_dropout(torch.ones(4, 5, 6), 0.4, True)",
    "F.dropout(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last), 0.4)",
    "F.dropout2d(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last), 0.4)",
    "torch.native_dropout(torch.ones(20), 0.3, True)[0]",
    "torch.dropout_(torch.ones(20), 0.3, True)",
    "F.rrelu(torch.linspace(-1, 1, 33), training=True)",
    "F.rrelu(torch.linspace(-1, 1, 33, dtype=torch.float64), training=True)",
    "F.gumbel_softmax(torch.arange(10.).reshape(2, 5), hard=True)",
    "torch.multinomial(torch.arange(1., 11.), 4)",
    "torch.multinomial(torch.arange(1., 11.).reshape(2, 5), 3)",
    "torch.multinomial(torch.arange(1., 11.).reshape(2, 5), 30, True)",
    "torch.multinomial(torch.arange(1., 11.).reshape(2, 5), 1)",
    "torch.multinomial(torch.arange(1., 11.).half(), 3)",
    "torch.multinomial(torch.rand(1000), 100)",
    "torch.multinomial(torch.rand(1000), 100, True)",
    *(
        f"D.{name}.sample(({n},))"
        for n in ("3", "20")
        for name in (
            "Normal(torch.zeros(2), 1.)",
            "Uniform(0., 2.)",
            "Categorical(torch.tensor([.1, .2, .7]))",
            "Categorical(logits=torch.zeros(2, 5))",
            "Bernoulli(torch.tensor([.3, .6]))",
            "Exponential(torch.tensor([1., 2.]))",
            "Laplace(torch.zeros(2), 1.)",
            "Cauchy(0., torch.ones(2))",
            "Gumbel(torch.zeros(2), 1.)",
            "LogNormal(torch.zeros(2), 1.)",
            "Gamma(torch.tensor([.5, 3.]), 1.)",
            "Beta(torch.tensor([.5, 3.]), torch.tensor([2., .4]))",
            "Dirichlet(torch.tensor([.5, 3., 1.]))",
            "StudentT(torch.tensor([3., 5.]))",
            "Chi2(torch.tensor([3., 5.]))",
            "FisherSnedecor(torch.tensor([3., 5.]), torch.tensor([4., 4.]))",
            "Poisson(torch.tensor([3., 50.]))",
            "Geometric(torch.tensor([.3, .6]))",
            "Binomial(10, torch.tensor([.3, .6]))",
            "Multinomial(10, torch.tensor([.3, .7]))",
            "MultivariateNormal(torch.zeros(3), torch.eye(3))",
            "Weibull(torch.ones(2), 2.)",
            "Pareto(torch.ones(2), 2.)",
            "HalfNormal(torch.ones(2))",
            "HalfCauchy(torch.ones(2))",
            "Kumaraswamy(torch.ones(2), 2.)",
            "OneHotCategorical(torch.tensor([.1, .2, .7]))",
            "RelaxedBernoulli(torch.tensor(.5), torch.tensor([.3, .6]))",
            "RelaxedOneHotCategorical(torch.tensor(.5), torch.tensor([.1, .2, .7]))",
            "NegativeBinomial(torch.tensor([3., 5.]), torch.tensor([.3, .6]))",
            "InverseGamma(torch.tensor([3., 5.]), 1.)",
            "LogisticNormal(torch.zeros(2), torch.ones(2))",
        )
    ),
    *(
        f"seeded(nn.{layer})"
        for layer in (
            "Linear(13, 7)",
            "Linear(3, 2)",
            "Conv2d(3, 5, 3)",
            "Conv1d(2, 3, 2)",
            "ConvTranspose2d(3, 5, 4)",
            "Embedding(11, 5)",
            "Embedding(3, 4)",
            "LSTM(5, 7)",
            "GRUCell(3, 4)",
            "MultiheadAttention(8, 2)",
            "TransformerEncoderLayer(8, 2, 16)",
            "Bilinear(3, 4, 5)",
            "PReLU()",
            "BatchNorm2d(4)",
        )
    ),
    *(
        f"nn.init.{name}"
        for name in (
            "normal_(torch.empty(5, 3), 0, .02)",
            "normal_(torch.empty(5, 4), 0, .02)",
            "xavier_normal_(torch.empty(5, 3))",
            "kaiming_normal_(torch.empty(7, 9))",
            "trunc_normal_(torch.empty(5, 3), std=.02)",
            "trunc_normal_(torch.empty(50, 30), std=.02)",
            "orthogonal_(torch.empty(5, 3))",
            "orthogonal_(torch.empty(9, 9))",
            "sparse_(torch.empty(10, 3), .3)",
            "uniform_(torch.empty(5, 3))",
            "xavier_uniform_(torch.empty(5, 3))",
            "kaiming_uniform_(torch.empty(5, 3))",
        )
    ),
    "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3)(torch.ones(3, 2, 8))",
    "nn.MultiheadAttention(8, 2, dropout=0.3)(*[torch.ones(3, 2, 8)] * 3)[0]",
    "nn.LSTM(3, 4, 2, dropout=0.4)(torch.ones(5, 2, 3))[0]",
    "F.scaled_dot_product_attention(*[torch.ones(1, 2, 4, 8)] * 3, dropout_p=0.4)",
    "F.fractional_max_pool2d(torch.arange(100.).reshape(1, 1, 10, 10), 2, 5)",
    "torch.svd_lowrank(torch.arange(20.).reshape(5, 4), 2)[1]",
    "torch.rand(3, generator=torch.Generator().manual_seed(7))",
    "torch.randn(20, generator=torch.Generator().manual_seed(7))",
    "torch.stack([torch.randn(3), torch.randn(3), torch.rand(3)])",
    "torch.cat([torch.randn(1), torch.randn(20), torch.empty(1).exponential_(), torch.randn(3)])",
]


def cases():
    rows = [e.format(n=n, d="torch." + d) for e in FLOAT for d in FLOATS for n in SIZES] + ONCE
    return [row for row in rows if not (MKL and any(part in row for part in MKL_DRAWS))]


def differences(parts=()):
    """(the number of rows compared, lines of those that differ)."""
    rows = [row for row in cases() if not parts or any(part in row for part in parts)]
    problems = [(row, compare(row)) for row in rows]
    return len(rows), [f"{row}: {problem}" for row, problem in problems if problem]


def compare(expression):
    """What Rushlight has that PyTorch has not; None if they agree bit for bit, or where that cannot be, in 5 digits."""
    theirs, ours = (_drawn(expression, library) for library in (torch, rushlight))
    if isinstance(theirs, Exception):
        return None if type(ours) is type(theirs) else f"{_short(ours)} for {_short(theirs)}"
    if isinstance(ours, Exception):
        return _short(ours)
    (a, state), (b, their_state) = ours, theirs
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{a.shape} for {b.dtype}{b.shape}"
    if state != their_state:
        return "the state after it"
    a, b = (np.ascontiguousarray(x).reshape(-1)[:100] for x in (a, b))
    if a.tobytes() == b.tobytes():
        return None
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    if expression.startswith(ROUNDED) and np.allclose(a, b, rtol=1e-5, atol=1e-6):
        return None
    wrong = np.flatnonzero(a != b)
    off = np.max(abs(a - b) / (abs(b) + 1e-30))
    return f"off by {off:.1e}, {len(wrong)} of {len(a)}: {a[wrong[:3]]} for {b[wrong[:3]]}"


def _drawn(expression, library):
    """(the values, the generator's state after them), or the exception."""
    names = {"torch": library, "F": library.nn.functional, "nn": library.nn, "D": library.distributions}
    library.manual_seed(5)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = eval(expression, {**names, "seeded": lambda module: _parameters(module, library)})
        array = convert.to_numpy(value) if library is torch else convert.array_of(value.detach())
        return array, library.get_rng_state().numpy().tobytes()
    except Exception as error:
        return error


def _parameters(module, library):
    """All parameters as one vector."""
    return library.cat([p.detach().reshape(-1) for p in module.parameters()])


def _short(result):
    return f"{type(result).__name__}: {result}"[:150] if isinstance(result, Exception) else "a result"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="only rows that contain one of these")
    options = parser.parse_args(argv)
    count, lines = differences(options.parts)
    print(*lines, sep="\n")
    print(f"{len(lines)} of {count} differ" + (", without what comes from MKL" if MKL else ""))


if __name__ == "__main__":
    main()
