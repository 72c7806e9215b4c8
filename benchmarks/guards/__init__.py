"""Wrong uses of delivered kernels, and what the checks that catch them cost."""
