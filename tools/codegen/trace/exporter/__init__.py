"""How torch.export is told to go about a reference, for as long as it is traced: what it leaves out, and what it takes as a whole."""
