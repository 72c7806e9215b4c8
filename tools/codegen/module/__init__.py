"""Stages `emit_regions` and `link`: the emitted file with its kernels, host functions, and the forward that calls them."""
