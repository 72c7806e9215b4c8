"""What every rule works on: a region whose values are found, made and given out."""
