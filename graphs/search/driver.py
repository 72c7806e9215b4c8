"""The driver: keeps the ledger around one tactic and speaks the protocol for it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, JsonValue

from graphs.search.archive import Archive
from graphs.search.ledger import Ledger, fold
from graphs.search.protocol import Ask, SearchSettings, Survey, Told
from graphs.search.tactic import Tactic, UnansweredError, View
from graphs.search.wishes import Wish
from tools.records import Record


class SearchState(Record):
    """What a search remembers: the graph keeps it as JSON."""

    ledger: Ledger = Ledger()
    own: dict[str, JsonValue] = Field(default_factory=dict)
    """The tactic's own state."""


class Search:
    """A search method: one tactic over a ledger and an archive."""

    def __init__(self, tactic: type[Tactic[Record, Record]], settings: SearchSettings, state: str, archive: Archive) -> None:
        """Start afresh where `state` is empty, else continue from what `dump` gave."""
        known = SearchState.model_validate_json(state) if state else SearchState()
        self._settings = settings
        self._ledger = known.ledger
        self._archive = archive
        self._tactic = tactic(settings, known.own)

    def scout(self) -> tuple[Survey | Wish, ...]:
        """Let the tactic prepare, and name the next thing that it needs."""
        try:
            self._tactic.prepare(self._view())
            self._tactic.ask(self._view())
        except UnansweredError as need:
            return (need.wish,)
        return ()

    def ask(self) -> tuple[Ask, ...]:
        """Return the tactic's asks: at most a batch of plans, what is fully given first; equal ones become one."""
        given: dict[tuple[str, str], Ask] = {}
        chosen: dict[tuple[object, ...], Ask] = {}
        for ask in self._tactic.ask(self._view()):
            if ask.action:
                given.setdefault((ask.parent, ask.action.id), ask)
            else:
                key = (ask.parent, ask.kinds, ask.regions, ask.tag)
                plans = ask.plans + (chosen[key].plans if key in chosen else 0)
                chosen[key] = chosen.get(key, ask).model_copy(update={"plans": plans})
        return (*given.values(), *chosen.values())

    def tell(self, results: Sequence[Told]) -> None:
        """Fold the results into the ledger and let the tactic learn from the new ones."""
        self._ledger, fresh = fold(self._ledger, results)
        if fresh:
            self._tactic.tell(self._view(), fresh)

    def reason(self) -> str:
        """Let the tactic say why it has nothing more to ask for."""
        return self._tactic.reason(self._view())

    def dump(self) -> str:
        """Return ledger and own state as JSON."""
        return SearchState(ledger=self._ledger, own=self._tactic.dump()).model_dump_json()

    def _view(self) -> View:
        return View(self._ledger, self._archive, self._settings.seed, self._settings.batch)
