"""What Triton's interpreter is taught in a runner without a GPU: short floats, libdevice, scans and reductions as a device does them."""
