"""Repeating a finished run from its record: no key, no server, the same plans and sources, or where it first went another way.

`pool` and `services` stand in for what the run worked with, `comparison` says what differs. Nothing here writes into the record.
"""

from graphs.replay.comparison import Divergence, Repetition
from graphs.replay.services import Evaluate, repeat

__all__ = ["Divergence", "Evaluate", "Repetition", "repeat"]
