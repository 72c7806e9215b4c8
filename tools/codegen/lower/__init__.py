"""Stage `lower`: from the operators of a region to one kernel as expressions over atoms, a module an operator family."""
