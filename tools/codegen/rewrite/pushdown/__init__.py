"""Sums taken before what they sum: a product or a convolution then needs sums of its operands alone."""
