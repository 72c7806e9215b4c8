"""Operators by family, and what those are that work element by element: formulas over kernel expressions; joined operands."""
