"""What a delivered package carries: its files are copied into it, so they import torch and one another alone."""
