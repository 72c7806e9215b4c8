"""Rewritings around convolutions: norms, poolings and concatenations of what they read and make."""
