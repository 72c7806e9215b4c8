"""Holds the emulation of bfloat16 and float8 in the interpreter against what a GPU made of the same kernels."""
