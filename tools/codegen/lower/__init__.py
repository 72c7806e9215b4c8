"""From the operators of a region to one kernel: a module a family."""
