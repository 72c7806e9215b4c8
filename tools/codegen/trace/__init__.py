"""From a reference to an operator graph: torch.export at several sizes, and the traces merged."""
