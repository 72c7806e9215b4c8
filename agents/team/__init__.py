"""Who plays which role in a run: the variants there are, the settings that choose among them, the words for these, and the team."""
