"""Bodies for XLA arrays that need more than a line, one file a family."""
