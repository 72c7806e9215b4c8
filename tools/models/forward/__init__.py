"""What the forward of a module's call does: its operators by torch.export, loops over time found and written as loops."""
