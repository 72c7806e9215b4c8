"""What is known of the values of an expression: how large, how small, how exact they are, and what they are made of."""
