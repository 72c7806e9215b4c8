"""How the next plan is chosen: search methods behind one `ask`/`tell` protocol.

`protocol.py` is the contract, `archive.py` what a method can look up, `wishes.py` what it may want of planner and memory,
`ledger.py` and `driver.py` what all methods share. A method is a tactic (`tactic.py`) in a file of its own with its options and its
state; add it to `METHODS` under its name on the command line, and to the contract suite in tests/graphs/search.
"""

from __future__ import annotations

from importlib import import_module

from graphs.search.archive import Archive, NoArchive
from graphs.search.driver import Search
from graphs.search.protocol import SearchMethod, SearchSettings
from tools.errors import UserError
from tools.nearest import nearest

METHODS = {
    "greedy": "graphs.search.greedy.Greedy",
    "random": "graphs.search.uniform.Uniform",
    "macro": "graphs.search.macro.Macro",
    "evolution": "graphs.search.evolution.Evolution",
    "world-model": "graphs.search.world_model.WorldModel",
    "memory": "graphs.search.memory.MemoryRollouts",
    "bandit": "graphs.search.bandit.Bandit",
    "tree": "graphs.search.tree.Tree",
    "portfolio": "graphs.search.portfolio.Portfolio",
}
"""Name on the command line to dotted path of the tactic."""


def open_search(name: str, settings: SearchSettings, state: str = "", archive: Archive | None = None) -> SearchMethod:
    """Make the method called `name`, fresh or continued from the JSON of its `state`; UserError for an unknown name or setting."""
    return Search(find_tactic(name), settings, state, archive or NoArchive())


def find_tactic(name: str) -> type:
    """Find the tactic called `name`; UserError with the known ones."""
    if name not in METHODS:
        raise UserError(f"There is no search method {name!r}.", f"{nearest(name, METHODS)}Choose one of: {', '.join(METHODS)}.")
    module, _, attribute = METHODS[name].rpartition(".")
    tactic: type = getattr(import_module(module), attribute)
    return tactic
