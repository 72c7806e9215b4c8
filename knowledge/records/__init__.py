"""The records of memory: situations, strategies with their trials, what was recalled, and what a plan led to."""

from knowledge.records.outcome import Outcome
from knowledge.records.situation import Situation
from knowledge.records.strategy import LONGEST, RECORD, SCHEMA, TUNING, Recalled, Strategy, StrategyState
from knowledge.records.trials import Changes, Scope, Trial, changes_of

__all__ = [
    "LONGEST",
    "RECORD",
    "SCHEMA",
    "TUNING",
    "Changes",
    "Outcome",
    "Recalled",
    "Scope",
    "Situation",
    "Strategy",
    "StrategyState",
    "Trial",
    "changes_of",
]
