"""How processes are started, kept and ended; what they share on one machine."""
