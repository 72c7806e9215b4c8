"""Capture: which calls a model's modules get, how long they take, and what each does, as a problem file."""
