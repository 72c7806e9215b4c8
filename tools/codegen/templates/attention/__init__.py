"""Attention with online softmax."""
