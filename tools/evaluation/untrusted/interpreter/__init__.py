"""What Triton's interpreter is taught in a runner without a GPU: short floats, and scans in the order of a device."""
