"""The command line: commands, and the options, checks and waiting that they share."""
