"""What all templates are written with: iteration spaces, expressions as text, frames of kernels, prepacked weights, work of a launch."""
