"""Runs a whole model with a package and without it: outputs, times, and what each operator brings. It meets kernels, so in walls only."""
