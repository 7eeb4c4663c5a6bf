"""Compiling kernels: signatures from annotations, machine code, its cache, and calls without Numba."""
