"""Kernels that reduce or scan along rows."""
