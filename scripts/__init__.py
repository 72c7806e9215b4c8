"""What maintainers run by hand: comparisons of what the generator emits, and writers of pages."""
