"""What a bench compares, and the arms that follow from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Literal

from pydantic import Field

from agents import TEAMS, TeamSettings, team_settings
from graphs.run.settings import RunSettings
from tools.errors import UserError
from tools.records import Record, content_hash

MemoryArm = Literal["off", "frozen", "learning"]
"""off: nothing is recalled. frozen: recalled, never learnt. learning: both."""

MEMORY_ARMS: tuple[MemoryArm, ...] = ("off", "frozen", "learning")


class Arm(Record):
    """One way of optimising, compared with others on the same problems at equal budgets."""

    search: str
    memory: MemoryArm
    agents: str
    """As the user wrote it: `builtin`, `llm`, `llm:MODEL`, or `ROLE=VARIANT[:MODEL]` joined by `+`."""

    @property
    def name(self) -> str:
        """Short and unique in a bench."""
        return f"{self.search}/{self.memory}/{self.agents}"


_SELECTION = {"suite", "levels", "problems"}
"""Which problems are done says nothing about what a row means: more of them can be added later, or merged from elsewhere."""


class BenchSettings(Record):
    """Everything that decides what the rows of a bench mean; rows of different settings are never put together unasked."""

    suite: str
    """The suite's folder as the user named it; for people."""
    kind: Literal["kernelbench", "folder"]
    levels: tuple[int, ...] = ()
    problems: str = ""
    """The selection, as the user wrote it."""
    run: RunSettings
    """What every run has in common: target, policy, budget, repairs, time-outs."""
    searches: tuple[str, ...] = ("greedy",)
    memories: tuple[MemoryArm, ...] = ("off",)
    agents: dict[str, TeamSettings] = Field(default_factory=lambda: {"builtin": TeamSettings()})
    """Team by the word the user gave for it."""
    seeds: int = Field(default=1, ge=1)
    """Seeds 0, 1, …: each is a run of its own of every problem and arm."""
    knowledge: str = ""
    """Folder of the knowledge base that remembering arms start from a copy of; empty: the curated seeds alone."""
    max_autotune: bool = False
    """Also time torch.compile's max-autotune mode of each reference."""

    def arms(self) -> tuple[Arm, ...]:
        """Every combination, the first named first: it is what the others are compared with."""
        grid = product(self.searches, self.memories, self.agents)
        return tuple(Arm(search=search, memory=memory, agents=agents) for search, memory, agents in grid)

    def of(self, arm: Arm, seed: int, file: Path, knowledge: Path) -> RunSettings:
        """Settings of one run; its memory, if it has one, is the folder `knowledge`."""
        search = self.run.search_settings.model_copy(update={"seed": seed})
        changes = {
            "problem_file": str(file),
            "search": arm.search,
            "search_settings": search,
            "memory": arm.memory != "off",
            "learns": arm.memory == "learning",
            "knowledge": str(knowledge),
            # what an arm learns stays with it
            "share": "",
            "team": self.agents[arm.agents],
        }
        return self.run.model_copy(update=changes)

    @property
    def id(self) -> str:
        """Hash of what the rows depend on: two shards of one bench agree in it, wherever their suite's folder lies."""
        return content_hash(self._placeless().model_dump_json(exclude={**dict.fromkeys(_SELECTION, True), "run": {"share"}}))

    def differences(self, other: BenchSettings) -> list[str]:
        """Name what differs, outermost first, with both values."""
        mine, theirs = (_flat(one.model_dump(mode="json", exclude={"suite"})) for one in (self._placeless(), other._placeless()))
        names = [name for name in dict.fromkeys([*mine, *theirs]) if mine.get(name) != theirs.get(name)]
        return [f"{name} is {json.dumps(mine.get(name))} here and {json.dumps(theirs.get(name))} there" for name in names]

    def _placeless(self) -> BenchSettings:
        """Leave out where memory's vectors lie: wherever that is, an exact search among the same ones answers a recall."""
        return self.model_copy(update={"run": self.run.model_copy(update={"chroma_server": "", "share": ""})})


def arm_words(word: str, known: tuple[str, ...], option: str) -> tuple[str, ...]:
    """Read a comma list of names out of `known`; an empty list or an unknown name raises UserError."""
    names = tuple(dict.fromkeys(part.strip() for part in word.split(",") if part.strip()))
    for name in names:
        if name not in known:
            raise UserError(f"{option} has no {name!r}.", f"Choose from: {', '.join(known)}.")
    if not names:
        raise UserError(f"{option} is empty.", f"Choose from: {', '.join(known)}.")
    return names


def _flat(value: object, prefix: str = "") -> dict[str, object]:
    if not isinstance(value, dict) or not value:
        return {prefix: value}
    return {name: leaf for key, one in value.items() for name, leaf in _flat(one, f"{prefix}.{key}" if prefix else str(key)).items()}


def read_team(word: str, model: str, base_url: str, key_file: str, prices: str, model_set: Sequence[str] = ()) -> TeamSettings:
    """Read `builtin`, a team or `llm` for the default one (each also as TEAM:MODEL), or roles joined by `+`; else a UserError."""
    if word == "builtin":
        return TeamSettings()
    kind, _, own = word.partition(":")
    if kind in ("llm", *TEAMS):
        if not (own or model):
            raise UserError(f"The agents `{kind}` need a language model.", f"Name one with --model, or write {kind}:MODEL.")
        return team_settings(own or model, base_url, (), key_file, prices, model_set, team="solo" if kind == "llm" else kind)
    if "=" not in word:
        raise UserError(
            f"There are no agents {word!r}.", "Write builtin, solo, pair, full, llm:MODEL, or roles as in planner=llm+coder=builtin."
        )
    return team_settings(model, base_url, word.split("+"), key_file, prices, model_set)
