"""Matrix products with prologues and epilogues."""
