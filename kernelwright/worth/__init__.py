"""What memory is worth: problems held out from it, solved with and without; `kernelwright knowledge worth` prints it."""
