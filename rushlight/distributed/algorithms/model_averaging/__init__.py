"""Means of all processes' parameters, now and then."""
