"""Rewrites of an operator graph: canonical forms, algebra, folded constants, memory layouts."""
