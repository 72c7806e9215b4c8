"""The walls around untrusted processes, and how a process enters them."""
