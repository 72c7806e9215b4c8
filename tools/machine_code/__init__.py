"""What a compiler made of a kernel, read from its machine code without running it; and the compilers that this machine has."""
