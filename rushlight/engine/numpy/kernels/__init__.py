"""Bodies for NumPy arrays that need more than a line, one file a family."""
