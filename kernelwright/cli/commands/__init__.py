"""The commands: one file each, which parses, calls the API and prints."""
