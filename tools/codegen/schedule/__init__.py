"""Schedules: which operators share a kernel, what actions change, and what stays with the library."""
