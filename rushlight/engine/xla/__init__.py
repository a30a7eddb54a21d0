"""JAX's arrays and tracers: accelerators and compiled code. ``namespace`` is what rules see; it imports JAX."""
