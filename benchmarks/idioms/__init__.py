"""Judging and timing every idiom on this machine's GPU."""
