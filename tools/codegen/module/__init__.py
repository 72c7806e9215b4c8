"""The emitted file: kernels, host functions, and the forward that calls them."""
