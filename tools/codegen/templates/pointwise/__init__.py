"""Kernels without a reduction: every element by itself."""
