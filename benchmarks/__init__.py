"""Speed of our own parts, run by hand; nothing here is a test."""
