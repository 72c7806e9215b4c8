"""Operators whose operands are given otherwise: filled up, sorted, or chosen among a few numbers."""
