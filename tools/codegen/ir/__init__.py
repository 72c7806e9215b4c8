"""The compiler's data: operator graphs, sizes, expressions, kernels, schedules. Imports nothing else of the generator."""
