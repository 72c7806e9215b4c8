"""Models that run under torch.autocast: which operators it rounds for, how a trace says so, and how a CPU does as a GPU would."""
