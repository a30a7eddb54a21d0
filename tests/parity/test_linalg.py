"""Matrix products, linear algebra and Fourier transforms line by line against PyTorch: node names, results, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import rushlight

# Evaluated in both libraries. r is randn, with the same numbers in both; R the same with gradients.
AGREE = """
R(3)@R(3) | R(2,3)@R(3) | R(3)@R(3,4) | R(2,3)@R(3,4) | R(5,2,3)@R(3,4) | R(5,2,3)@R(5,3,4) | R(5,2,3)@R(3)
R(3)@R(5,3,4) | R(2,3)@R(5,3,4) | r(2,3)@R(5,3,4) | R(6,5,2,3)@R(5,3,4) | F.linear(R(3),R(4,3),R(4))
F.linear(R(2,3),R(4,3),R(4)) | F.linear(R(2,3),R(4,3)) | F.linear(R(5,2,3),R(4,3),R(4)) | F.linear(R(5,2,3),R(4,3))
F.linear(R(3),R(4,3)) | F.linear(R(2,3),R(3)) | torch.linalg.cholesky(S) | torch.linalg.inv(A) | A.inverse()
torch.det(A) | A.logdet() | A.slogdet() | torch.linalg.slogdet(A) | torch.linalg.eigvalsh(S) | torch.linalg.svdvals(A)
torch.linalg.solve(A,R(3,2)) | torch.linalg.solve(A,R(3)) | torch.linalg.lu(A) | torch.linalg.lu_factor(A)
torch.linalg.lu_factor_ex(A) | torch.linalg.lu_solve(*torch.linalg.lu_factor(A),R(3,2))
torch.linalg.solve_triangular(A,R(3,2),upper=True) | torch.triangular_solve(R(3,2),A)[0] | torch.linalg.pinv(A)
A.pinverse() | torch.linalg.householder_product(A,R(3)) | A.matrix_exp() | A.matrix_power(3)
torch.linalg.vector_norm(A)
torch.linalg.matrix_norm(A) | torch.linalg.norm(A) | torch.cross(R(3),R(3),0) | torch.kron(A,A) | torch.outer(R(3),R(2))
torch.vdot(R(3),R(3)) | torch.linalg.vecdot(A,A) | A.trace() | torch.cdist(A,A*2) | torch.cholesky_inverse(A)
torch.cholesky_solve(R(3,2),A) | torch.ormqr(A,R(3),R(3,2)) | torch.addmm(A,A,A) | torch.addmm(A,A,A,beta=0,alpha=2)
torch.addmv(R(3),A,R(3)) | torch.addr(A,R(3),R(3)) | torch.addbmm(A,R(2,3,3),R(2,3,3)) | torch.inner(A,A)
torch.baddbmm(A,R(2,3,3),R(2,3,3)) | torch.fft.fft(R(4)) | torch.fft.rfft(R(4)) | torch.fft.irfft(torch.fft.rfft(R(4)))
torch.fft.hfft(R(4)) | torch.fft.fft2(A) | torch.fft.fftshift(A) | torch.linalg.diagonal(A) | torch.mv(A,R(3))
torch.tensordot(A,A,1) | torch.linalg.cholesky_ex(S) | torch.linalg.inv_ex(A) | torch.linalg.matrix_rank(A)
torch.linalg.lstsq(A,R(3,2)).solution | torch.einsum("ij,jk->ik",A,A) | torch.linalg.ldl_factor(S.detach())
r(2,3)@r(4,5) | r(3)@r(4) | r(2,3)@r(4) | r(3)@r(4,5) | r(5,2,3)@r(4,5) | r(5,2,3)@r(5,4,5) | r(5,2,3)@r(6,3,5)
r(5,2,3)@r(4) | r(2,3)@r(3,4).double() | r(3)@r(3).double() | r(2,3)@r(3).double() | r(5,2,3)@r(3,4).double()
r(5,2,3)@r(5,3,4).double() | torch.tensor(1.)@r(3) | r(3)@torch.tensor(1.) | torch.mm(r(3),r(3)) | torch.mm(r(2,3),r(3))
torch.bmm(r(2,3),r(2,3)) | torch.bmm(r(2,3,4),r(3,4,5)) | torch.mv(r(2,3),r(4)) | torch.mv(r(3),r(3))
torch.dot(r(2,3),r(3)) | torch.dot(r(2),r(3)) | torch.dot(r(2),r(2).double()) | torch.outer(r(2,3),r(3))
torch.addmm(r(7),r(2,3),r(4,5)) | torch.addmm(r(7),r(2,3),r(3,5)) | torch.addmm(r(2,5).double(),r(2,3),r(3,5))
torch.baddbmm(r(7),r(2,3,4),r(2,4,5)) | torch.addmv(r(5),r(2,3),r(3)) | torch.addr(r(2),r(2),r(3))
torch.addbmm(r(7),r(2,3,4),r(2,4,5)) | F.linear(r(2,3),r(4,5)) | F.linear(r(2,3),r(4,3),r(5)) | F.linear(r(3),r(4,5))
F.linear(r(2,3),r(4,3).double()) | F.linear(r(2,3),r(4,3),r(4).double()) | F.linear(r(2,3),r(2,4,3)) | r(2,3)@3
torch.ones(2,3,dtype=torch.int64)@r(3,4) | torch.ones(2,3,dtype=torch.bool)@torch.ones(3,2,dtype=torch.bool)
torch.matmul(r(2,3),3) | torch.inner(r(3),r(4)) | torch.vdot(r(2),r(3)) | torch.linalg.inv(r(2,3))
torch.linalg.inv(r(2))
torch.linalg.inv(torch.zeros(2,2)) | torch.linalg.inv(torch.zeros(2,2,2)) | torch.linalg.cholesky(-torch.eye(2))
torch.linalg.solve(torch.zeros(2,2),r(2)) | torch.linalg.solve(r(2,2),r(3,3)) | torch.linalg.det(r(2,3))
torch.linalg.inv(torch.eye(2).half()) | torch.linalg.inv(torch.ones(2,2,dtype=torch.int64)) | torch.trace(r(2))
torch.einsum("ij,jk->ik",r(2,3),r(4,5)) | torch.einsum("ij",r(2)) | torch.einsum("ij->k",r(2,3))
torch.einsum("ij,jk",r(2,3))
torch.fft.fft(r(3),n=0) | torch.fft.fft(r(3),dim=3) | torch.fft.rfft(r(3)+0j) | torch.fft.fft(r(3),norm="x")
torch.fft.fftn(r(3),s=(2,2)) | torch.linalg.eigh(r(2,3)) | torch.linalg.svd(r(2)) | torch.linalg.qr(r(2,2),mode="x")
torch.linalg.cross(r(2),r(2)) | torch.linalg.matrix_power(r(2,3),2) | torch.tensordot(r(2,3),r(4,5),1)
torch.linalg.norm(r(2,2,2),"fro") | torch.linalg.vector_norm(torch.ones(2,dtype=torch.int64)) | torch.cross(r(4),r(4))
torch.linalg.lu_factor(torch.zeros(2,2)) | torch.linalg.matrix_norm(r(3)) | torch.linalg.norm(r(3),"fro")
torch.cdist(r(3),r(3)) | torch.cdist(r(3,2),r(3,3)) | torch.stft(r(64),16) | torch.linalg.cond(r(2,3),1)
"""


def _run(library, line):
    """(what came out, its node's name) or the error, as text."""
    numbers = np.random.RandomState(0)

    def r(*shape):
        return library.tensor(numbers.randn(*shape).astype(np.float32))

    def gradient(*shape):
        return r(*shape).requires_grad_()

    from rushlight.ops.linalg import linear

    f = torch.nn.functional if library is torch else type("F", (), {"linear": staticmethod(linear)})
    a = gradient(3, 3)
    names = {"torch": library, "F": f, "r": r, "R": gradient, "A": a, "S": a @ a.T + library.eye(3)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = eval(line, names)
    except Exception as error:
        return f"{type(error).__name__.strip('_')}: {str(error).split(chr(10) + 'Exception raised')[0]}", []
    parts = out if isinstance(out, tuple) else (out,)
    kind = type(out).__name__ if isinstance(out, tuple) else "Tensor"
    nodes = [kind, *[(list(t.shape), t.grad_fn.name() if t.grad_fn is not None else None) for t in parts]]
    return str(nodes), [
        t.detach().resolve_conj().numpy() if library is torch else np.asarray(t.detach()) for t in parts
    ]


@pytest.mark.parametrize("line", [line.strip() for line in AGREE.replace("\n", "|").split("|") if line.strip()])
def test_line(line):
    theirs, expected = _run(torch, line)
    ours, found = _run(rushlight, line)
    assert ours == theirs
    for x, y in zip(found, expected):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("shapes", [((5, 5, 0), (0, 5)), ((2, 0, 3), (3, 5)), ((0, 2, 3), (3, 0)), ((2, 3, 4), (4, 0))])
def test_products_of_batches_without_elements(shapes):
    outcomes = []
    for f in (torch, rushlight):
        a, b = (f.ones(s).requires_grad_() for s in shapes)
        weight, bias = f.ones(shapes[1][::-1]).requires_grad_(), f.ones(shapes[1][1]).requires_grad_()
        made = [a @ b, f.nn.functional.linear(a, weight, bias)]
        sum(y.sum() for y in made).backward()
        outcomes.append([t.tolist() for t in (*made, a.grad, b.grad, weight.grad, bias.grad)])
    assert outcomes[0] == outcomes[1]


# Factorizations lie by columns in memory, as LAPACK leaves them, and so does what is computed from them.
STRIDES = """
L.inv(sq)|L.inv(sq.mT)|L.inv_ex(sq)|L.solve(sq, b)|L.solve(sq, b.mT, left=False)|L.solve(sq, v.expand(2, 3))
L.solve_ex(sq, b)|L.cholesky(spd)|L.cholesky(spd, upper=True)|L.qr(re)|L.qr(re, 'complete')|L.qr(re, 'r')|L.qr(wide)
L.svd(re)|L.svd(re, False)|L.svd(wide)|L.svd(wide, False)|L.eigh(spd)|L.eig(sq)|L.lu(re)|L.lu(wide)|L.lu_factor(re)
L.lu_solve(*L.lu_factor(sq), b)|L.lu_solve(*L.lu_factor(sq), b, adjoint=True)|L.pinv(re)|L.pinv(spd, hermitian=True)
L.lu_solve(*L.lu_factor(sq), b.mT, left=False)|L.lstsq(wide, b)|L.matrix_power(sq, 3)|L.matrix_power(sq, -2)
L.matrix_exp(sq)|L.ldl_factor(spd)|L.ldl_solve(*L.ldl_factor(spd), b)|L.solve_triangular(sq, b, upper=True)
L.solve_triangular(sq, b, upper=False)|L.solve_triangular(sq, b.mT, upper=True, left=False)|torch.geqrf(wide)
L.householder_product(*torch.geqrf(re))|torch.ormqr(*torch.geqrf(re), torch.ones(2, 4, 2))|torch.svd(re)
torch.cholesky_inverse(L.cholesky(spd))|torch.cholesky_solve(b, L.cholesky(spd))|torch.lu_unpack(*L.lu_factor(re))
L.tensorinv(torch.eye(4).reshape(4, 2, 2), 1)|L.cross(b.mT, b.mT)|L.inv(sq[0])|L.svd(re.to(torch.complex64))
L.inv(sq) + 1|L.inv(sq) @ sq|L.inv(sq) * sq|L.inv(sq).exp()|L.inv(sq).clone()|L.solve(sq, b).sum(0)
"""


@pytest.mark.parametrize("line", [line.strip() for line in STRIDES.replace("\n", "|").split("|") if line.strip()])
def test_strides(line):
    assert _strides(torch, line) == _strides(rushlight, line)


def _strides(library, line):
    re = library.arange(24.0).reshape(2, 4, 3).cos()
    sq = re[:, :3] + 3 * library.eye(3)
    names = {"sq": sq, "spd": sq @ sq.mT, "re": re, "wide": re.mT.clone(), "b": re[:, :3, :2], "v": re[0, 0]}
    made = eval(line, {"torch": library, "L": library.linalg, **names})
    return [t.stride() for t in (made if isinstance(made, tuple) else (made,))]
