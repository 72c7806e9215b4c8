"""Triton functions that emitted files carry: what several templates call on the device."""
