"""Sections: what the forward of a module that is too large for one operator does between the modules that it calls."""
