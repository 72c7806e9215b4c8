"""What stands in a candidate's source: kernels in Triton and in CUDA C++. Planner and coder both read it."""
