"""Views that show conjugates and negatives of their memory, line by line beside PyTorch: ``r`` must print the same."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch

import rushlight

# x is [1+2j, 3+4j], m a matrix; X and M the same with gradients; w some weights.
LINES = """
y = x.conj(); x.mul_(2); r = y, y.is_conj()
y = x.conj(); r = y.data_ptr() == x.data_ptr(), y._is_view(), y._base is x, y.stride(), y.storage_offset()
y=x.conj(); y[0]=5+5j; r=x,y
y=x.conj()[1:]; y.add_(1j); r=x,y,y.is_conj()
y=x.conj(); r=y.conj().is_conj(), y.conj()._base is x, y.conj().data_ptr()==x.data_ptr()
y=x.conj(); z=y.conj(); z[0]=0; r=x,y,z
y=x.conj().imag; r=y,y.is_neg(),y.is_conj()
y=x.conj().imag; y.fill_(7.); r=x,y
y=x.conj().real; y.fill_(7.); r=x,y,y.is_neg(),y.is_conj()
r=x.conj().resolve_conj().is_conj(), x.resolve_conj() is x, x.conj().resolve_conj()
r=x.conj().numpy()
r=x.conj().numpy(force=True)
r=x.conj().imag.numpy()
r=np.asarray(x.conj())
r=torch.view_as_real(x.conj())
r=x.conj().view(torch.float32)
c = x.conj(); r=c.clone().is_conj(), c.contiguous().is_conj(), c.to(torch.complex128).is_conj()
c = x.conj(); r=(x.conj()+1).is_conj(), c.detach().is_conj(), c.data.is_conj()
y=x.conj().detach(); y[0]=0; r=x,y
y=x.conj().data; y[0]=1j; r=x,y
x = m; y=x.mH; r=y, y.is_conj(), y._base is x, y.stride()
x = m; y=x.H; r=y.is_conj(), y.shape
x = m; y=x.adjoint(); x[0,0]=0; r=y, y.is_conj()
x = m; r=x.mH@x, x.conj()@x.mT, (x@x.mH).is_conj()
x = X; y=x.conj(); r=y.grad_fn.name(), y.resolve_conj().grad_fn.name(), y.imag.grad_fn.name()
x = X; z=x*1; y=z.conj(); y.mul_(2j); (z*w).sum().real.backward(); r=x.grad, z, y, z.grad_fn.name(), y.grad_fn.name()
x = X; z=x*1; y=z.conj(); z.mul_(2j); (y*w).sum().real.backward(); r=x.grad, z, y, y.grad_fn.name()
r=repr(x.conj()), x.conj().tolist(), x.conj()[0].item(), x.conj().sum()
x=torch.rand(2,requires_grad=True); r=x.conj() is x, x.conj().is_conj()
x=torch.arange(3); r=x.conj() is x, x.is_conj(), x.is_neg()
x=torch.rand(2); y=torch._neg_view(x); x.fill_(3); r=y, y.is_neg()
x=torch.rand(2); y=torch._neg_view(x); x.fill_(3); r=y.resolve_neg(), y.resolve_neg().is_neg(), y._base is x
x=torch.arange(3); y=torch._neg_view(x); y.add_(1); r=x,y
y=torch._neg_view(x); r=y,y.is_neg(),y.conj().is_neg(),y.conj().is_conj(),y.real.is_neg()
y=torch._neg_view(x); r=y.imag.is_neg(), torch.view_as_real(y).is_neg()
y=copy.deepcopy(x.conj()); r=y,y.is_conj()
y=copy.copy(x.conj()); r=y,y.is_conj()
x.numpy()[0]=0; r=x.conj()
y=x.conj(); x.numpy()[0]=0; r=y
y=x.conj(); x.data[0]=0; r=y
y=torch.empty_like(x.conj()); r=y.is_conj(), torch.zeros_like(x.conj()).is_conj(), x.conj().new_zeros(2).is_conj()
y=torch.zeros(2,dtype=x.dtype); y.copy_(x.conj()); r=y,y.is_conj()
y=x.conj(); y.copy_(torch.tensor([1j,2j])); r=x,y
c = x.conj(); r=c.view(2,1).is_conj(), c.reshape(1,2).is_conj(), c.expand(2,2).is_conj()
c = x.conj(); r=x.conj()[None].is_conj(), c.unbind()[0].is_conj(), c.t().is_conj()
r=[t for t in x.conj().split(1)]
x=torch.tensor([[1+2j,3+4j],[0,1j]]); r=x.t().conj().reshape(-1)
x=torch.tensor([[1+2j,3+4j],[0,1j]]); r=x.t().conj().reshape(-1).is_conj(), x.t().conj().flatten()
r=x.conj().abs(), x.conj().angle(), torch.equal(x.conj(),x), x.conj()==x.conj(), torch.allclose(x.conj(),x.conj())
y=x.conj(); y.conj_physical_(); r=x,y
y=x.conj_physical(); r=y,y.is_conj()
y=x.conj(); r=torch.fft.fft(y), torch.cat([y,y]), torch.stack([y,x]).is_conj()
y=x.conj(); y.zero_(); r=x,y
y=x.conj(); y.resize_(1); r=y
x = m; y=x.conj(); y.t_(); r=y,y.is_conj(),y.shape
y=x.conj(); y._version; x.add_(1); r=y._version==x._version
y=x.conj(); r=y.untyped_storage().data_ptr()==x.untyped_storage().data_ptr(), y.is_contiguous(), y.is_set_to(x)
y=x.conj(); y.data=torch.tensor([1j]); r=y,y.is_conj()
y=torch.zeros(2,dtype=torch.complex64); torch.add(x.conj(),1,out=y); r=y
y=x.conj(); torch.mul(x,1,out=y); r=y,x
r=torch.func.vmap(lambda a: a.conj()*1)(x)
r=torch.func.vmap(lambda a: a.conj())(x)
r=torch.func.jvp(lambda a: a.conj()*a, (x,), (torch.ones_like(x),))
r=torch.func.grad(lambda a: (a.conj()*a).real.sum())(x)
r=torch.from_dlpack(x.conj())
y=x.conj(); r=torch.tensor(y), torch.as_tensor(y) is y, torch.asarray(y).is_conj()
r=x.conj().requires_grad_(), x.conj().dtype, x.conj().bool(), x.conj().real
x = X; x.conj().imag.sum().backward(); r=x.grad
x=x[0].clone(); y=x.conj(); y.add_(1j); r=x,y,y.is_conj(),y.imag,y.imag.is_neg()
y=x.conj(); z=y[0]; z.fill_(5j); y.unbind()[1].mul_(2); r=x,y,z
x=x[:0]; r=x.conj(), x.conj().is_conj(), x.conj().imag.is_neg()
y=x.conj(); x.data=torch.tensor([1j]); r=y,x
"""


@pytest.mark.parametrize("line", LINES.strip().splitlines())
def test_line(line):
    assert _run(rushlight, line) == _run(torch, line)


def _run(library, line):
    numbers, matrix = [1 + 2j, 3 + 4j], [[1 + 2j, 3 + 4j]]
    names = {
        "torch": library,
        "np": np,
        "copy": copy,
        "x": library.tensor(numbers),
        "m": library.tensor(matrix),
        "X": library.tensor(numbers, requires_grad=True),
        "w": library.tensor([1j, 2.0]),
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(line, names)
    except Exception as error:
        return type(error), str(error)[:60]
    return str(names["r"]).replace("-0.j", "+0.j").replace("-0.", "0.")
