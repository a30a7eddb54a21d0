"""What we tell XLA: compiler options by platform, chosen by measurement, and where compiled programs are kept."""

from __future__ import annotations

import functools

import jax

from ...config import cache_folder

_OPTIONS: dict[str, dict] = {
    # jaxlib 0.10's YNNPACK is good at matrix products (the MLP's step takes 1.8 ms with it, 2.6 without) and several
    # times slower than XLA's own code at convolutions: let it do the former only.
    "cpu": {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_DOT"},
    # cuBLAS beats XLA's Triton matrix products on an H200: GPT-2 18.2 ms a step, not 18.8, the MLP 0.10, not 0.16.
    "gpu": {"xla_gpu_enable_triton_gemm": False},
}


def compiler_options(platform: str, given: dict | None) -> dict | None:
    """The options for a program on ``platform``; what the caller gave wins."""
    chosen = {**(_known(platform)), **(given or {})}
    return chosen or None


@functools.cache
def _known(platform: str) -> dict:
    options = _OPTIONS.get(platform, {})
    try:
        jax.jit(lambda x: x, compiler_options=options)(jax.device_put(0.0, jax.local_devices(backend=platform)[0]))
    except jax.errors.JaxRuntimeError:  # a jaxlib without this option
        return {}
    return options


@functools.cache
def use_cache() -> None:
    """Keep compiled programs in the cache folder, unless JAX was told otherwise."""
    folder = cache_folder()
    if folder is not None and jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(folder / "xla"))
