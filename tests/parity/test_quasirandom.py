"""Sobol' points, beside PyTorch's: every number."""

import pytest
import torch

import rushlight

pytest.importorskip("scipy", reason="SobolEngine takes its direction numbers from SciPy")


def points(torch, dimension, scramble):
    engine = torch.quasirandom.SobolEngine(dimension, scramble=scramble, seed=7)
    seen = [engine.draw(n).tolist() for n in (1, 0, 3, 4)] + [engine.draw(2, dtype=torch.float64).tolist()]
    engine.fast_forward(5)
    seen += [engine.draw().tolist(), engine.num_generated, repr(engine), engine.reset().draw_base2(3).tolist()]
    other = torch.quasirandom.SobolEngine(dimension, scramble, seed=8)
    return seen, other.fast_forward(0).num_generated, other.fast_forward(3).draw(2).tolist(), other.shift.tolist()


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 40, 1111])
def test_points(dimension, scramble):
    assert points(rushlight, dimension, scramble) == points(torch, dimension, scramble)


def test_refusals():
    def messages(torch):
        engine, seen = torch.quasirandom.SobolEngine(3), []
        engine.draw(3)
        make = torch.quasirandom.SobolEngine
        for wrong in (lambda: make(0), lambda: make(21202), lambda: engine.draw_base2(2), lambda: engine.draw(-1)):
            with pytest.raises((ValueError, RuntimeError)) as raised:
                wrong()
            seen.append((type(raised.value).__name__, str(raised.value)))
        return seen, engine.draw(2, out=torch.empty(0)).tolist()

    assert messages(rushlight) == messages(torch)
