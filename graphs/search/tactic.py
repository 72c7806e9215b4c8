"""A tactic: how one method chooses. The driver around it keeps the ledger, so that tactics of a portfolio can share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Generic, TypeVar

from pydantic import JsonValue, ValidationError

from graphs.search.archive import Archive, Offer
from graphs.search.draws import generator
from graphs.search.ledger import Ledger
from graphs.search.protocol import Ask, SearchSettings, Survey, Told
from graphs.search.wishes import AnswerT, Wish
from tools.errors import UserError
from tools.records import Record

OptionsT = TypeVar("OptionsT", bound=Record)
StateT = TypeVar("StateT", bound=Record)


class Nothing(Record):
    """No options, or no state."""


class UnansweredError(LookupError):
    """A tactic needs a survey or an answer that the archive lacks; the driver turns it into a wish."""

    def __init__(self, wish: Survey | Wish) -> None:
        """Wish for `wish`."""
        super().__init__(repr(wish))
        self.wish = wish


@dataclass(frozen=True)
class View:
    """What a tactic sees: the ledger, the archive, and how many plans it may ask for."""

    ledger: Ledger
    archive: Archive
    seed: int
    batch: int

    def rng(self, *what: object) -> Random:
        """Make the generator for one purpose in this round."""
        return generator(self.seed, self.ledger.rounds, *what)

    def offers(self, parent: str, *, rated: bool = True, fresh: bool = False) -> tuple[Offer, ...]:
        """Steps not tried on `parent`, best first; raises UnansweredError where they are not listed yet."""
        found = self.archive.offers(parent, fresh=fresh, rated=rated)
        if found is None:
            raise UnansweredError(Survey(parent=parent, rated=rated, fresh=fresh))
        return found

    def answer(self, wish: Wish, type_: type[AnswerT]) -> AnswerT:
        """What came of a wish; raises UnansweredError where it was not granted yet."""
        found = self.archive.answer(wish)
        if found is None:
            raise UnansweredError(wish)
        assert isinstance(found, type_)
        return found

    def with_batch(self, batch: int) -> View:
        """The same view with another number of plans."""
        return replace(self, batch=batch)


class Tactic(Generic[OptionsT, StateT]):
    """Base of all tactics: reads its options and its state; a subclass chooses in `ask` and learns in `tell`."""

    name: str
    Options: type[OptionsT]
    State: type[StateT]
    nothing_left = "no untried step on any right version"
    """Why the search ends where nothing can be asked for."""

    def __init__(self, settings: SearchSettings, own: dict[str, JsonValue]) -> None:
        """Take the run's settings and the tactic's own state; an empty one starts afresh."""
        self.settings = settings
        self.options: OptionsT = read_options(self.name, self.Options, settings.options)
        self.state: StateT = self.State.model_validate(own)

    def prepare(self, view: View) -> None:
        """Bring the state up to date before an ask, from the surveys; may raise UnansweredError, and is then called again."""

    def ask(self, view: View) -> tuple[Ask, ...]:
        """Return the next asks and change nothing; may raise UnansweredError, and then is called again with the survey made."""
        raise NotImplementedError

    def tell(self, view: View, fresh: Sequence[Told]) -> None:
        """Learn from new results; `view` has the ledger with them in it."""

    def reason(self, view: View) -> str:
        """Say why nothing is asked for."""
        return self.nothing_left

    def dump(self) -> dict[str, Any]:
        """Return the own state as plain values."""
        return self.state.model_dump(mode="json")

    def update(self, **changes: Any) -> None:
        """Replace fields of the state."""
        self.state = self.state.model_copy(update=changes)


def read_options(name: str, type_: type[OptionsT], written: dict[str, str]) -> OptionsT:
    """Read a method's own settings; UserError for an unknown name or an impossible value, with those it has."""
    known = ", ".join(f"{key}={field.default}" for key, field in type_.model_fields.items())
    try:
        return type_.model_validate(written)
    except ValidationError as error:
        first = error.errors()[0]
        setting = ".".join(map(str, first["loc"]))
        what = f"The search method {name} has no setting {setting}"
        if setting in type_.model_fields:
            what = f"The search method {name} cannot have {setting}={written.get(setting, '')}: {first['msg']}"
        raise UserError(f"{what}.", f"Its settings, with their defaults: {known}." if known else "It has no settings of its own.") from None
