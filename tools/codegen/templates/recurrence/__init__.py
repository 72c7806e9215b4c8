"""Loops over a dimension: one program walks all steps of a tile of sequences, with what is carried on the chip."""
