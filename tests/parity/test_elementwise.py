"""Element-wise operators line by line against PyTorch: values, dtypes, node names and error messages."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

import rushlight

# Evaluated in both libraries with x, y float32 leaves, i int64, b bool, u uint8, h bfloat16, d float64, z complex64.
AGREE = """
x+2 | 2+x | x-2 | 2-x | x*2 | x/2 | 2/x | x**2 | x**3 | x**y | 2**x | x%2 | x%y | -x | +x | abs(x) | x-y | x*y | x/y
x+i | i+1.5 | i/2 | i//2 | -7//i | i%3 | -7%i | i**2 | 2**(i*i) | i*b | b+b | b*2 | h+x | h+d | h*2 | d+x
x.detach()+z | i&3 | i|b | i^1 | 1^i | ~i | ~b | i<<2 | i>>1 | i<<70 | i>>70 | 1<<abs(i) | b&True | 5|i | u+300 | u*-1
u-5 | x==y | x!=0 | x<.2 | i>=3 | x==None | x!=None | x=="a" | torch.tensor(1)<2.5 | b==True | i==3.0 | h<x | x+None
x+"a" | x+[1,2,3] | x<None | x<"a" | x*object | x-{} | x/"a" | x**"a" | x//None | i&"a" | x.detach()+np.float32(2)
x.detach()*np.float64(2) | np.float64(2)*x.detach() | np.float32(2)-x.detach() | i+np.int64(2) | b-b | b-1 | b-i | i-b
1-b | x-b | -b | ~x | x&1 | i&2.0 | x<<1 | b.positive() | b.abs() | b.relu() | torch.sign(z) | i//0 | i%0 | i/0
torch.fmod(i,0) | i**-1 | torch.div(i,0,rounding_mode="floor") | u.add(u,alpha=-3) | torch.exp(3) | torch.exp("a")
torch.add(x,"a") | torch.add(1,x) | torch.mul(2,x) | torch.maximum(x,2) | torch.lcm(i,2)
torch.tensor([1.,2.])+torch.tensor([1.,2.,3.]) | torch.ones(2,3)*torch.ones(3,2) | torch.ones(4,1,3)-torch.ones(4,2,2)
x.detach().clone().add_(1j) | i.clone().add_(1.5) | i.clone().div_(2) | b.clone().add_(1) | i.clone().exp_()
x.sub_(1) | x.detach().clone().add_(torch.ones(2,3)) | x.add_(1) | x.detach().clone().mul_(i) | i.clone().mul_(2)
i.clone().clamp_(0,1) | x.clamp(0) | x.clamp(max=0) | x.clamp(y,None) | x.clamp(y,y) | x.clamp_min(0) | x.clamp_min(y)
x.clamp_max(0) | x.clip(0,1) | i.clamp(0,2.5) | torch.clamp(x) | torch.where(b,x,y) | torch.where(b,x,0.)
torch.where(b,1,0) | torch.where(b,1.,0) | x.where(b,y) | torch.where(b,x,i) | torch.where(x,1,0) | torch.where(b,h,x)
x.masked_fill(b,2) | x.masked_fill(b,torch.tensor(2.)) | x.masked_fill(i,2) | x.masked_fill(b,y)
i.masked_fill(b,1.5) | x.masked_fill(b,1j) | torch.where(b, 2, x) | torch.where(b, i, 1.5) | torch.lerp(x,y,.5)
torch.lerp(x,y,y) | torch.lerp(x,d,.5) | x.round() | x.round(decimals=1) | i.round() | i.round(decimals=1) | i.floor()
i.ceil() | i.frac() | i.sqrt() | i.sign() | x.sign() | x.sgn() | b.sign() | b.sgn() | i.sgn() | z.sgn() | z.abs()
x.imag | x.real is x | x.conj() is x | x.angle() | z.angle() | x.copysign(2) | x.copysign(y) | i.copysign(-1)
x.atan2(y) | x.arctan2(y) | x.hypot(y) | x.float_power(2) | x.float_power(y) | torch.float_power(2,x)
i.float_power(2) | x.ldexp(i) | x.frexp() | i.frexp() | x.logit() | x.logit(.1) | x.nan_to_num() | i.nan_to_num()
x.square() | x.div(y,rounding_mode="floor") | x.div(2,rounding_mode="trunc") | x.div(2,rounding_mode="a")
i.div(2,rounding_mode="floor") | i.div(-2,rounding_mode="trunc") | x.addcmul(x,y,value=2) | x.addcdiv(x,y)
i.addcdiv(i,i) | i.addcmul(i,i) | i.addcmul(i,i,value=1.5) | x.add(y,alpha=2) | i.add(i,alpha=2.5)
b.add(b,alpha=True) | x.add(y,alpha=1j) | x.sub(y,alpha=2) | torch.rsub(x,y) | torch.rsub(x,2)
torch.rsub(x,y,alpha=2) | x.isclose(y) | torch.allclose(x,y) | torch.equal(x,y) | torch.equal(x,x) | i.isreal()
z.isreal() | i.isnan() | x.mvlgamma(1) | (x+3).mvlgamma(2) | x.polygamma(1) | torch.special.polygamma(1,x)
torch.special.digamma(x) | torch.special.multigammaln(x+3,2) | x.xlogy(y) | x.xlogy(2) | torch.xlogy(2,x)
torch.special.xlog1py(x,y) | torch.special.zeta(x+2,y) | torch.special.zeta(2,y) | torch.igamma(x.detach(),y)
x.erfinv() | x.logaddexp(y) | torch.polar(x,y) | torch.complex(x,y) | torch.complex(x,y).real
torch.complex(x,y).imag | torch.view_as_real(z) | torch.complex(x,i) | torch.complex(x,d)
torch.complex(x,y).conj_physical() | torch.complex(x,y).conj() | torch.view_as_complex(torch.ones(3,2))
torch.view_as_complex(torch.ones(3)) | torch.view_as_real(x) | x.deg2rad() | x.rad2deg() | x.sinc()
torch.special.expit(x) | torch.special.log_ndtr(x) | torch.special.entr(x) | torch.special.erfcx(x)
torch.special.ndtri(y) | torch.special.i0e(x) | torch.special.i1(x) | torch.special.i1e(x)
torch.special.bessel_j0(x) | torch.special.round(x) | torch.special.chebyshev_polynomial_t(x,2) | x.absolute()
torch.gcd(i,i) | x.gcd(y) | x.nextafter(y) | x.reciprocal() | i.reciprocal() | x.rsqrt() | x.trunc() | x.fix()
x.frac() | x.exp2() | x.fmod(2) | x.fmod(y) | torch.lt(z,x) | torch.maximum(z,x) | i.bitwise_not() | x.bitwise_and(y)
i.logical_and(b) | x.logical_not() | x.__rdiv__(2) | i.__rand__(2) | i.sigmoid() | h.sigmoid() | h.exp()
i.true_divide(2) | i.mul(2.5) | x.erf() | x.erfc() | x.lgamma() | x.digamma() | x.i0() | x.atan() | x.acosh()
z.exp() | z.acos() | z.log() | z*1j | z**2 | z.sigmoid() | x.relu() | i.relu() | x.maximum(y) | x.minimum(y)
x.fmax(y) | x.fmin(y) | x.multiply(2) | x.divide(2) | x.subtract(1) | x.negative() | x.arccos() | x.greater(0)
torch.add(x, y, out=torch.empty(3)) | torch.mul(i, 2, out=torch.empty(3))
torch.exp(i, out=torch.empty(3, dtype=torch.int64))
"""
EXPRESSIONS = [part.strip() for line in AGREE.strip().splitlines() for part in line.split(" | ")]


def evaluate(library, expression):
    names = {
        "torch": library,
        "np": np,
        "x": library.tensor([0.5, -0.3, 0.2], requires_grad=True),
        "y": library.tensor([0.1, 0.2, 0.3], requires_grad=True),
        "i": library.tensor([3, -2, 5]),
        "b": library.tensor([True, False, True]),
        "u": library.tensor([1, 200, 7], dtype=library.uint8),
        "h": library.tensor([0.5, -1.25, 3.0], dtype=library.bfloat16),
        "d": library.tensor([0.5, -1.25, 3.0], dtype=library.float64),
        "z": library.tensor([0.5 + 1j, -0.3 - 0.5j, 0.2 + 0j]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(eval(expression, names))
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0]


def described(result):
    if isinstance(result, tuple):
        return tuple(described(r) for r in result)
    if not hasattr(result, "grad_fn"):
        return result
    node = result.grad_fn.name().removeprefix("torch::autograd::") if result.grad_fn is not None else None
    return str(result.dtype), node, result.detach().tolist()


def same(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, complex):
        return isinstance(ours, complex) and same(ours.real, theirs.real) and same(ours.imag, theirs.imag)
    if isinstance(theirs, float):
        if not math.isfinite(theirs):
            return ours == theirs or (ours != ours and theirs != theirs)
        return isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=3e-6, abs_tol=1e-6)
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_pytorch(expression):
    ours, theirs = evaluate(rushlight, expression), evaluate(torch, expression)
    assert same(ours, theirs), f"{ours} instead of {theirs}"
