"""What is seen of model calls under trouble."""
