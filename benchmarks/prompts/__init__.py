"""What each part of a prompt is worth: the same questions with and without it, answered at the desk and judged."""
