"""The writer of lessons: a language model words what memory's outcomes teach."""
