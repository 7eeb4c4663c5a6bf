"""Arrays that grow, arrays of lists, and bit sets for kernels."""
