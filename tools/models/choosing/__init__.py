"""What of a model is worth the work: rows of what could be replaced, ranked, and which of them are chosen."""
