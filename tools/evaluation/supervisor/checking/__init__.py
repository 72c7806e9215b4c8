"""What a candidate is checked by: its calls, the runner that makes them, how tensors come and go, and the verdict."""
