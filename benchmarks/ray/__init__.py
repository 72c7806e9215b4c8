"""What evaluations on a Ray cluster cost and survive."""
