"""One plan: write, evaluate, repair at most N times, then profile what passed or roll back what did not."""
