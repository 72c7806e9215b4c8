"""The local web pages: every run, candidate and strategy to look at, following runs that are under way."""
