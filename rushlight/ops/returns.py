"""Results with named parts: tuples that unpack and print as ``torch.return_types`` do.

>>> rushlight.tensor([1.0, 3.0, 2.0]).max(dim=0)
torch.return_types.max(
values=tensor(3.),
indices=tensor(1))
"""

from __future__ import annotations

from operator import itemgetter

__all__ = ["named"]


class Named(tuple):
    """A tuple whose items also have names."""

    __slots__ = ()
    __match_args__: tuple = ()

    def __repr__(self) -> str:
        parts = ",\n".join(f"{name}={value!r}" for name, value in zip(self.__match_args__, self))
        return f"torch.return_types.{type(self).__name__}(\n{parts})"


def named(name: str, *fields: str) -> type:
    """The result type ``name``, made as PyTorch's are: from one sequence, ``named("qr", "Q", "R")((q, r))``."""
    parts = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    count = len(fields)
    sizes = {"n_fields": count, "n_sequence_fields": count, "n_unnamed_fields": 0}
    return type(name, (Named,), {"__slots__": (), "__match_args__": fields, "__module__": __name__, **parts, **sizes})


def _values_and_indices(name: str) -> type:
    return named(name, "values", "indices")


max, min, median, nanmedian, mode, kthvalue, sort, topk, cummax, cummin = map(
    _values_and_indices,
    ["max", "min", "median", "nanmedian", "mode", "kthvalue", "sort", "topk", "cummax", "cummin"],
)
aminmax = named("aminmax", "min", "max")
histogram = named("histogram", "hist", "bin_edges")
histogramdd = named("histogramdd", "hist", "bin_edges")
frexp = named("frexp", "mantissa", "exponent")

qr = named("qr", "Q", "R")
svd = named("svd", "U", "S", "V")
slogdet = named("slogdet", "sign", "logabsdet")
geqrf = named("geqrf", "a", "tau")
_lu_with_info = named("_lu_with_info", "LU", "pivots", "info")
lu_unpack = named("lu_unpack", "P", "L", "U")
triangular_solve = named("triangular_solve", "solution", "cloned_coefficient")
linalg_cholesky_ex = named("linalg_cholesky_ex", "L", "info")
linalg_eig = named("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = named("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_inv_ex = named("linalg_inv_ex", "inverse", "info")
linalg_ldl_factor = named("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex = named("linalg_ldl_factor_ex", "LD", "pivots", "info")
linalg_lstsq = named("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_lu = named("linalg_lu", "P", "L", "U")
linalg_lu_factor = named("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = named("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_qr = named("linalg_qr", "Q", "R")
linalg_slogdet = named("linalg_slogdet", "sign", "logabsdet")
linalg_solve_ex = named("linalg_solve_ex", "result", "info")
linalg_svd = named("linalg_svd", "U", "S", "Vh")
_linalg_det = named("_linalg_det", "result", "LU", "pivots")
_linalg_eigh = named("_linalg_eigh", "eigenvalues", "eigenvectors")
_linalg_slogdet = named("_linalg_slogdet", "sign", "logabsdet", "LU", "pivots")
_linalg_solve_ex = named("_linalg_solve_ex", "result", "LU", "pivots", "info")
_linalg_svd = named("_linalg_svd", "U", "S", "Vh")
_unpack_dual = named("_unpack_dual", "primal", "tangent")
