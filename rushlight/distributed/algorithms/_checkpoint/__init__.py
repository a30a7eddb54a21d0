"""Modules whose intermediate values are computed again, or kept elsewhere, until backward needs them."""
