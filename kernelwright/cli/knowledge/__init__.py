"""The group `kernelwright knowledge`: what looks into memory, tends it and says what it is worth."""
