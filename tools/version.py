"""The version of all folders, which are released together."""

VERSION = "0.1.0"
