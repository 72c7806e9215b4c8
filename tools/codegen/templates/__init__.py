"""Templates: each lays out one kind of kernel and writes its Triton text."""
