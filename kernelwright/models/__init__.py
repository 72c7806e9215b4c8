"""Whole models: captures one, has what is hot optimised by ordinary runs, writes the package and proves it."""
