"""`python -m kernelwright` is the command `kernelwright`."""

from kernelwright.cli.entry import main

main()
