"""Stages `canonicalize` and `rewrite`: canonical form, then what a schedule asks for: algebra, constant folding, memory layouts."""
