"""What each phase is told and what it answers, one file a phase."""
