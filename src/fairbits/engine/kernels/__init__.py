"""Compiled kernels. Change them only with the benchmark beside you."""
