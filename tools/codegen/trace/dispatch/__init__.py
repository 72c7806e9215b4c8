"""Loops over experts: rows that are picked by a condition, traced as what they are, and recognised as one operator."""
