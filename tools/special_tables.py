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


def erf_as_tanh():
    """(P, numbers of a fraction F) with erf(x) = tanh(x P(x²)) and erf(x / √2) = tanh(x F(x²)) in single precision.

    The largest relative error of erf is made small by least squares whose weights grow where the error is (Lawson).
    """
    x = np.linspace(1e-3, 4.6, 2000)
    erf = np.array([float(mp.erf(v)) for v in x])
    inner = np.array([float(mp.atanh(mp.erf(v)) / v) for v in x])
    slope = np.array([float(1 - mp.erf(v) ** 2) for v in x]) * x / erf  # of the relative error
    p, _ = rational(x * x, inner, slope, 6, 0)
    (k0, k1), (c, d), (e, f) = continued(*rational(x * x, inner, slope, 3, 2))
    root = 0.5**0.5
    return p.tolist(), [k0 * root, k1 * root / 2, c * root * 2, d * 2, e * 4, f * 2]


def rational(u, f, weight, p, q, rounds=2000):
    """Coefficients of P and Q, so that weight (P(u) / Q(u) - f) is small everywhere."""
    attention, bottom, best = np.ones_like(u), np.ones_like(u), (np.inf, None)
    rows = np.hstack([u[:, None] ** np.arange(p + 1), -f[:, None] * u[:, None] ** np.arange(1, q + 1)])
    for _ in range(rounds):
        scaled = rows * (np.sqrt(attention) * weight / bottom)[:, None]
        size = np.abs(scaled).max(0)
        solution = np.linalg.lstsq(scaled / size, f * np.sqrt(attention) * weight / bottom, rcond=None)[0] / size
        top, low = solution[: p + 1], np.append(1.0, solution[p + 1 :])
        bottom = np.abs(np.polyval(low[::-1], u))
        error = np.abs((np.polyval(top[::-1], u) / np.polyval(low[::-1], u) - f) * weight)
        best = min(best, (error.max(), (top, low)), key=lambda pair: pair[0])
        attention = np.maximum(attention * (error / error.max()) ** 0.7, 1e-12)
        attention /= attention.mean()
    return best[1]


def continued(top, low):
    """(k0, k1), (c, d), (e, f) of P / Q = k0 + k1 u + c / (u + d + e / (u + f)), of degrees 3 and 2."""
    (k1, k0), rest = np.polydiv(top[::-1], low[::-1])
    (scale, shift), last = np.polydiv(low[::-1], rest)
    numbers = (k0, k1), (1 / scale, shift / scale), (last[-1] / scale / rest[0], rest[1] / rest[0])
    return [tuple(map(float, pair)) for pair in numbers]


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
    for name, coefficients in zip(("ERF_SINGLE", "GELU_SINGLE"), erf_as_tanh()):
        print(f"{name} = (")
        for c in coefficients:
            print(f"    {c!r},")
        print(")")


if __name__ == "__main__":
    main()
