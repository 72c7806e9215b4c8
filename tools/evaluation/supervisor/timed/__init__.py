"""What is timed of a candidate that is right: its sessions, their clocks and chains, and what the times amount to."""
