"""`python -m kernelwright` is the command `kernelwright`."""

from kernelwright.cli.app import main

main()
