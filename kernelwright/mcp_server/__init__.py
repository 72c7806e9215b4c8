"""The commands as tools of the Model Context Protocol, for coding agents: paths in a root, each call a process of its own."""
