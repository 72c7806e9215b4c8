"""Liger-Kernel's group norm with our patch and without it."""
