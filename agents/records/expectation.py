"""What the cost model expects of an action."""

from __future__ import annotations

from tools.records import Record


class Expectation(Record):
    """What the cost model says of one option, before anything ran; estimated, whatever the parent's time is."""

    words: str
    """A clause for people."""
    gain: float | None = None
    """Modelled time of the parent over that of the child; None where the model does not know one of them."""
    made: str = ""
    """Of a choice of the model: what it makes in words, as memory knows it."""
