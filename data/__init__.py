"""Data, never code: sample problems, seed strategies, device sheets, prices."""
