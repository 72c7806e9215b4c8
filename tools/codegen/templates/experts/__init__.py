"""Rows sent to experts: sorted by expert on the device, then grouped products with what follows them, then a sum over a row's places."""
