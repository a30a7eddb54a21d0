"""Makes rushlight/engine/special_tables.py: Chebyshev series of special functions, from mpmath at 40 digits.

    pip install mpmath && python tools/special_tables.py > rushlight/engine/special_tables.py

Each series approximates a smooth function of t in [-1, 1]; engine/special.py says how t comes from x.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np

mp.mp.dps = 40
NODES = 64


def chebyshev(f, digits=17.5):
    """Coefficients of f on [-1, 1], cut where they no longer matter."""
    nodes = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / NODES) for k in range(NODES)]
    values = [f(t) for t in nodes]
    coefficients = []
    for j in range(NODES):
        total = mp.fsum(v * mp.cos(mp.pi * j * (k + mp.mpf(1) / 2) / NODES) for k, v in enumerate(values))
        coefficients.append(total * 2 / NODES)
    coefficients[0] /= 2
    largest = max(abs(c) for c in coefficients)
    while abs(coefficients[-1]) < largest * mp.mpf(10) ** -digits:
        coefficients.pop()
    return [float(c) for c in coefficients]


def hankel(order):
    """Modulus parts of the Bessel functions beyond 8: J + iY is sqrt(2 / pi x) (P + iQ 8/x) exp(i(x - phase))."""

    def parts(t):
        x = 8 / mp.sqrt((t + 1) / 2)
        phase = mp.pi / 4 + order * mp.pi / 2
        h = mp.mpc(mp.besselj(order, x), mp.bessely(order, x))
        return h * mp.sqrt(mp.pi * x / 2) * mp.expj(-(x - phase)), x

    return lambda t: parts(t)[0].real, lambda t: parts(t)[0].imag * parts(t)[1] / 8


def airy_left(t):
    """Ai(-x) and Bi(-x) beyond 5, as amplitudes of cos and sin of z - pi/4."""
    z = _ZETA_LEFT / mp.sqrt((t + 1) / 2)
    x = (mp.mpf(3) / 2 * z) ** (mp.mpf(2) / 3)
    a, b = (f(-x) * mp.sqrt(mp.pi) * mp.sqrt(mp.sqrt(x)) for f in (mp.airyai, mp.airybi))
    c, s = mp.cos(z - mp.pi / 4), mp.sin(z - mp.pi / 4)
    return c * a - s * b, (s * a + c * b) * z


def airy_right(t):
    z = _ZETA_RIGHT * 2 / (t + 1)
    x = (mp.mpf(3) / 2 * z) ** (mp.mpf(2) / 3)
    return mp.airyai(x) * mp.exp(z) * mp.sqrt(mp.sqrt(x))


_ZETA_LEFT, _ZETA_RIGHT = mp.mpf(2) / 3 * mp.mpf(5) ** 1.5, mp.mpf(2) / 3 * mp.mpf(2) ** 1.5


def erfcx_scaled(t):
    x = mp.mpf(15) / 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def root(z):
    return mp.sqrt(z) if z > 0 else mp.mpf(0)


def on(low, high, f):
    """f of z in [low, high], as a function of t."""
    return lambda t: f(low + (high - low) * (t + 1) / 2)


def erf_ratio():
    """erf(x) / x for |x| < 4 in single precision as P(x²) / Q(x²): least squares, reweighted by the last Q."""
    z = (np.linspace(0, 4, 4001)) ** 2
    f = np.array([float(mp.erf(mp.sqrt(v)) / mp.sqrt(v)) if v else float(2 / mp.sqrt(mp.pi)) for v in z])
    s = z / 16
    p, q = 6, 5
    weight = 1 / f
    for _ in range(20):
        rows = np.hstack([s[:, None] ** np.arange(p + 1), -f[:, None] * s[:, None] ** np.arange(1, q + 1)])
        solution = np.linalg.lstsq(rows * weight[:, None], f * weight, rcond=None)[0]
        top, bottom = solution[: p + 1], np.append(1.0, solution[p + 1 :])
        weight = 1 / (f * np.polyval(bottom[::-1], s))
    scale = 16.0 ** -np.arange(8)
    return (top * scale[: p + 1]).tolist(), (bottom * scale[: q + 1]).tolist()


def tables():
    functions = {
        "ERFCX": erfcx_scaled,
        "ERF": on(0, 1, lambda z: mp.erf(root(z)) / root(z)),
        "I0_SMALL": on(0, 8, lambda x: mp.exp(-x) * mp.besseli(0, x)),
        "I0_LARGE": lambda t: mp.exp(-16 / (t + 1)) * mp.sqrt(16 / (t + 1)) * mp.besseli(0, 16 / (t + 1)),
        "I1_SMALL": on(0, 8, lambda x: mp.exp(-x) * mp.besseli(1, x) / x),
        "I1_LARGE": lambda t: mp.exp(-16 / (t + 1)) * mp.sqrt(16 / (t + 1)) * mp.besseli(1, 16 / (t + 1)),
        "J0_SMALL": on(0, 64, lambda z: mp.besselj(0, root(z))),
        "J1_SMALL": on(0, 64, lambda z: mp.besselj(1, root(z)) / root(z)),
        "Y0_SMALL": on(0, 64, lambda z: mp.bessely(0, root(z)) - mp.log(z) / mp.pi * mp.besselj(0, root(z))),
        "Y1_SMALL": on(
            0, 64,
            lambda z: (mp.bessely(1, root(z)) - (mp.log(z) * mp.besselj(1, root(z)) - 2 / root(z)) / mp.pi) / root(z),
        ),
        "K0_SMALL": on(0, 4, lambda z: mp.besselk(0, root(z)) + mp.log(root(z) / 2) * mp.besseli(0, root(z))),
        "K1_SMALL": on(
            0, 4, lambda z: (mp.besselk(1, root(z)) - mp.log(root(z) / 2) * mp.besseli(1, root(z))) * root(z)
        ),
        "K0_LARGE": lambda t: mp.exp(4 / (t + 1)) * mp.sqrt(4 / (t + 1)) * mp.besselk(0, 4 / (t + 1)),
        "K1_LARGE": lambda t: mp.exp(4 / (t + 1)) * mp.sqrt(4 / (t + 1)) * mp.besselk(1, 4 / (t + 1)),
        "AIRY_RIGHT": airy_right,
        "AIRY_MIDDLE": on(-5, 2, mp.airyai),
        "AIRY_LEFT_P": lambda t: airy_left(t)[0],
        "AIRY_LEFT_Q": lambda t: airy_left(t)[1],
    }  # fmt: skip
    for order in (0, 1):
        functions[f"HANKEL{order}_P"], functions[f"HANKEL{order}_Q"] = hankel(order)
    return {name: chebyshev(f) for name, f in functions.items()}


def main():
    print('"""Series for engine/special.py. Made by tools/special_tables.py: do not edit."""\n')
    for name, coefficients in tables().items():
        print(f"{name} = (")
        for c in coefficients:
            print(f"    {c!r},")
        print(")")
    top, bottom = erf_ratio()
    for name, coefficients in (("ERF_SINGLE_P", top), ("ERF_SINGLE_Q", bottom)):
        print(f"{name} = (")
        for c in coefficients:
            print(f"    {c!r},")
        print(")")


if __name__ == "__main__":
    main()
