"""Records that planner and coder share."""
