"""The supervisor's side: no CUDA, no candidate code; requests, deadlines, verdicts."""
