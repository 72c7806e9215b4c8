"""Stage `trace`: torch.export of a reference at several sizes, and the traces merged into one operator graph."""
