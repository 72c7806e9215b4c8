"""Seeds: curated strategies from data/knowledge, added to a store once and updated when a newer revision ships."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from knowledge.learning.learn import strategy_event
from knowledge.log.event_log import EventKind, EventLog, Writer
from knowledge.log.fold import Fold
from knowledge.records import Strategy
from tools.errors import UserError
from tools.records import Record, content_hash

SEEDS = Path(__file__).resolve().parents[2] / "data" / "knowledge"
"""In a checkout and in the wheel alike."""


class Seed(Record):
    """A curated strategy with a name that outlives its wording."""

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    revision: int = Field(default=1, ge=1)
    """Raised with every change, so that an older release does not undo it."""
    strategy: Strategy


def read_seeds(folder: Path = SEEDS) -> tuple[Seed, ...]:
    """Read and validate every `*.json` (a list of seeds) and `*.jsonl` (one a line) of a folder."""
    seeds: dict[str, Seed] = {}
    for file in sorted([*folder.glob("*.json"), *folder.glob("*.jsonl")]):
        for seed in _read(file):
            if seed.name in seeds:
                raise UserError(f"Two seeds are called {seed.name}, the second in {file}.", "Rename one of them.")
            seeds[seed.name] = seed
    return tuple(seeds.values())


def plant(log: EventLog, fold: Fold, seeds: tuple[Seed, ...]) -> int:
    """Add the seeds that are new or of a newer revision; return how many. Trials are not touched."""
    fold.follow(log)
    if not any(_wanted(fold, seed) for seed in seeds):
        return 0
    with log.writing() as writer:
        # another process may have been first
        fold.follow(log)
        added = sum(_add(writer, fold, seed) for seed in seeds if _wanted(fold, seed))
    fold.follow(log)
    return added


def _read(file: Path) -> list[Seed]:
    try:
        text = file.read_text(encoding="utf-8")
        raw: list[Any] = [json.loads(line) for line in text.splitlines() if line.strip()] if file.suffix == ".jsonl" else json.loads(text)
        return [Seed.model_validate(item) for item in raw]
    except (OSError, ValueError, TypeError, ValidationError) as error:
        raise UserError(f"The seed file {file} cannot be read: {error}", "Correct it, or reinstall kernelwright.") from error


def _wanted(fold: Fold, seed: Seed) -> bool:
    """Whether a seed is unknown, newer than the known one, or the same revision in other words or figures."""
    entry = fold.entries.get(fold.by_seed.get(seed.name, ""))
    if entry is None or seed.revision > entry.revision:
        return True
    return seed.revision == entry.revision and seed.strategy != entry.written


def _add(writer: Writer, fold: Fold, seed: Seed) -> bool:
    strategy = seed.strategy
    content = content_hash(strategy.model_dump_json())
    body = strategy_event(strategy, "seed", seed=seed.name, revision=seed.revision)
    added = writer.add(EventKind.STRATEGY, f"seed:{seed.name}:{seed.revision}:{content}", strategy.id, body)
    old = fold.by_seed.get(seed.name)
    if added and old is not None and old != strategy.id:
        reason = f"revision {seed.revision} of the seed {seed.name}"
        writer.add(EventKind.REPLACE, f"replace:{old}:{strategy.id}", old, {"by": strategy.id, "reason": reason})
    return added
