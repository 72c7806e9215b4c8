"""The package that is delivered: kernels, operators, guards, evidence, and exports for other libraries."""
