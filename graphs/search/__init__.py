"""How the next plan is chosen: search methods behind one `ask`/`tell` protocol.

A method is one file with its settings and its serialisable state; add it to `METHODS` under its name on the command line.
"""

from __future__ import annotations

from importlib import import_module

from graphs.search.protocol import SearchMethod, SearchSettings
from tools.errors import UserError

METHODS = {"greedy": "graphs.search.greedy.Greedy"}
"""Name on the command line to dotted path."""


def open_search(name: str, settings: SearchSettings, state: str = "") -> SearchMethod:
    """Make the method called `name`, fresh or continued from the JSON of its `state`; UserError for an unknown name."""
    if name not in METHODS:
        raise UserError(f"There is no search method {name!r}.", f"Choose one of: {', '.join(METHODS)}.")
    module, _, attribute = METHODS[name].rpartition(".")
    method: SearchMethod = getattr(import_module(module), attribute).open(settings, state)
    return method
