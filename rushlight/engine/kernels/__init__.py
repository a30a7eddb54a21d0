"""NumPy bodies that need more than a line: convolution by cache-sized column blocks and BLAS."""
