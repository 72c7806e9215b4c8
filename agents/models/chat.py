"""Asking one model: from the store where it was asked before, else from the server, within the budget."""

from __future__ import annotations

import json

from pydantic import BaseModel

from agents.models.calls import CallRecord, CallStore, MemoryCalls
from agents.models.errors import BudgetReached, ModelUnavailable
from agents.models.guard import Forecast, Guard, forecast
from agents.models.messages import Answer, Message
from agents.models.prices import PriceTable
from agents.models.reading import read_json
from agents.models.request import WORKAROUNDS, Feature, Request, make_request
from agents.models.settings import ModelSettings
from agents.models.transport import Rejected, Reply, Transport
from tools.records import content_hash


class ChatModel:
    """One model behind one `ask`. Every finished call is kept by a key made of its contents, and is never made again."""

    def __init__(
        self,
        settings: ModelSettings,
        calls: CallStore | None = None,
        *,
        prices: PriceTable | None = None,
        guard: Guard | None = None,
        scope: str = "",
    ) -> None:
        """Connect to nothing yet. `scope` (a run id) keeps equal questions of different runs apart in a shared store."""
        self.settings = settings
        self.name = settings.name
        self._calls = MemoryCalls() if calls is None else calls
        self._prices = PriceTable.load() if prices is None else prices
        self._guard = guard
        self._scope = scope
        self._transport = Transport(settings)
        self._ahead: dict[int, Forecast] = {}
        self._lacks: frozenset[Feature] | None = None

    async def ask(
        self, role: str, messages: list[Message] | tuple[Message, ...], schema: type[BaseModel] | None = None, *, purpose: str = ""
    ) -> Answer:
        """Put a question; with a schema, a reply that does not fit it is sent back once with what is wrong.

        Raises UserError for what the user must mend, ModelUnavailable when the server gives no reply, BudgetReached before a call
        that could exceed the budget.
        """
        turns = tuple(messages)
        answer, record = await self._exchange(role, turns, schema, purpose)
        if schema is None:
            return answer
        answer = _parse(answer, record, schema)
        if answer.complaint and record.finish != "refusal":
            again = (*turns, Message(role="assistant", content=record.text or "(nothing)"), _correction(answer.complaint))
            second, record = await self._exchange(role, again, schema, purpose)
            answer = _joined(answer, _parse(second, record, schema))
        return answer

    def has_price(self) -> bool:
        """Whether the cost of a call can be told."""
        return self._prices.price(self.name) is not None

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _exchange(
        self, role: str, messages: tuple[Message, ...], schema: type[BaseModel] | None, purpose: str
    ) -> tuple[Answer, CallRecord]:
        """Get one reply, leaving out one by one what the server turns out to lack."""
        known = lacks = self._known_lacks()
        wanted = make_request(role, messages, schema, self.settings, frozenset()).features
        while True:
            request = make_request(role, messages, schema, self.settings, lacks)
            key = request.key(self.name, f"{self._scope}/{purpose}")
            try:
                record, cached = await self._finished(request, key, purpose, tuple(WORKAROUNDS[f] for f in wanted if f in lacks))
            except Rejected as rejection:
                blamed = request.blame(str(rejection))
                if blamed is None:
                    raise ModelUnavailable(
                        f"The model {self.name!r} at {self.settings.endpoint} cannot take the request: {rejection}",
                        "Check the model's context length and the settings sent with it.",
                    ) from rejection
                lacks |= {blamed}
                continue
            if lacks != known:
                self._remember(lacks)
            return _answer(record, key, cached), record

    async def _finished(self, request: Request, key: str, purpose: str, notes: tuple[str, ...]) -> tuple[CallRecord, bool]:
        stored = self._calls.get_call(key)
        if stored is not None:
            return CallRecord.model_validate_json(stored), True
        record = self._record(request, purpose, notes, await self._send(request, purpose))
        self._calls.put_call(key, record.model_dump_json())
        return record, False

    async def _send(self, request: Request, purpose: str) -> Reply:
        """Ask the server, unless this call and those still in flight could exceed the budget."""
        ahead = forecast(request.messages, self.settings.max_output_tokens, self.name, self._prices)
        if self._guard is not None:
            limit = self._guard(sum(self._ahead.values(), ahead))
            if limit is not None:
                raise BudgetReached(
                    f"A call of the {request.role} could use up to {ahead.tokens} tokens, which may exceed the budget of {limit}.",
                    f"Raise the budget of {limit}, or lower the output limit of the model.",
                )
        self._ahead[id(request)] = ahead
        try:
            return await self._transport.send(request, purpose)
        finally:
            del self._ahead[id(request)]

    def _record(self, request: Request, purpose: str, notes: tuple[str, ...], reply: Reply) -> CallRecord:
        return CallRecord(
            role=request.role,
            purpose=purpose,
            model=self.name,
            messages=request.messages,
            schema_name=request.schema.__name__ if request.schema else None,
            parameters=request.parameters,
            text=reply.text,
            finish=reply.finish,
            usage=reply.usage,
            cost_usd=self._prices.cost(self.name, reply.usage),
            seconds=reply.seconds,
            retries=reply.retries,
            notes=notes,
        )

    def _known_lacks(self) -> frozenset[Feature]:
        """What this server lacks, as found out earlier in this process or in the run's own record."""
        if self._lacks is None:
            stored = self._calls.get_call(self._lacks_key)
            names = json.loads(stored)["lacks"] if stored else []
            self._lacks = frozenset(Feature(name) for name in names)
        return self._lacks

    def _remember(self, lacks: frozenset[Feature]) -> None:
        self._lacks = self._known_lacks() | lacks
        record = {"role": "probe", "model": self.name, "lacks": sorted(self._lacks)}
        self._calls.put_call(self._lacks_key, json.dumps(record))

    @property
    def _lacks_key(self) -> str:
        return content_hash("lacks", self.name)


def _correction(complaint: str) -> Message:
    return Message(role="user", content=f"That answer cannot be used. {complaint} Answer again in full, in the form that was asked for.")


def _answer(record: CallRecord, key: str, cached: bool) -> Answer:
    return Answer(
        text=record.text,
        finish=record.finish,
        usage=record.usage,
        cost_usd=record.cost_usd,
        seconds=0.0 if cached else record.seconds,
        cached=cached,
        key=key,
        notes=record.notes,
    )


def _parse(answer: Answer, record: CallRecord, schema: type[BaseModel]) -> Answer:
    if record.finish == "refusal":
        return answer.model_copy(update={"complaint": f"The model declined: {record.text[:300]}"})
    parsed, complaint = read_json(record.text, schema)
    if complaint and record.finish == "length":
        complaint = f"The answer was cut off at the output limit. {complaint}"
    return answer.model_copy(update={"parsed": parsed, "complaint": complaint})


def _joined(first: Answer, second: Answer) -> Answer:
    """The second answer, at the cost of both."""
    costs = (first.cost_usd, second.cost_usd)
    return second.model_copy(
        update={
            "usage": first.usage + second.usage,
            "cost_usd": None if None in costs else sum(c for c in costs if c is not None),
            "seconds": first.seconds + second.seconds,
            "cached": first.cached and second.cached,
            "notes": tuple(dict.fromkeys((*first.notes, f"The first answer did not fit: {first.complaint}", *second.notes))),
        }
    )
