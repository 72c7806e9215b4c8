"""What calls came to: tokens by kind and money, added up by whatever they are grouped by."""

from __future__ import annotations

from collections.abc import Iterable

from agents.models.calls import CallRecord
from tools.records import Record


class Bill(Record):
    """The sum of some calls; what is shared between several plans is shared equally, so the sums agree."""

    calls: float = 0.0
    input_tokens: float = 0.0
    cached_tokens: float = 0.0
    """Of the input: those the server had in its prompt cache."""
    output_tokens: float = 0.0
    reasoning_tokens: float = 0.0
    """Of the output: thinking."""
    usd: float = 0.0
    """Of the calls whose price and usage are known."""
    unpriced: float = 0.0
    """Calls of which the cost is not known."""
    uncounted: float = 0.0
    """Calls whose tokens the server did not count: estimated from their text."""
    from_cache: float = 0.0
    """Calls answered by what another run had paid for; they count no tokens and no money."""
    seconds: float = 0.0

    def __add__(self, other: Bill) -> Bill:
        """Add up two bills."""
        return Bill(**{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields})

    def share(self, parts: int) -> Bill:
        """One of `parts` equal shares."""
        return Bill(**{name: getattr(self, name) / parts for name in type(self).model_fields})


def bill(call: CallRecord) -> Bill:
    """Write the bill of one call."""
    used = call.usage
    return Bill(
        calls=1,
        input_tokens=used.input_tokens,
        cached_tokens=used.cached_tokens,
        output_tokens=used.output_tokens,
        reasoning_tokens=used.reasoning_tokens,
        usd=call.cost_usd or 0.0,
        unpriced=float(call.cost_usd is None),
        uncounted=float(not used.counted),
        from_cache=float(call.source == "cache"),
        seconds=call.seconds,
    )


def total(calls: Iterable[CallRecord]) -> Bill:
    """Add up calls."""
    return sum(map(bill, calls), Bill())
