"""Operators whose operands are laid out otherwise: filled up, or sorted."""
