"""Asking one model: from the store where it was asked before, else from the server, within the budget."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from pydantic import BaseModel

from agents.models.calls import CallRecord, CallStore, Findings, Hindrance, MemoryCalls, Trouble
from agents.models.deadline import in_time
from agents.models.errors import BudgetReached, ModelUnavailable, NotRecorded
from agents.models.guard import Guard, OverBudget, tokens_of
from agents.models.messages import Answer, Message, ToolSpec, Usage
from agents.models.prices import PriceTable
from agents.models.reading import read_json
from agents.models.recording import Recording
from agents.models.request import WORKAROUNDS, Feature, Request, make_request, question_key
from agents.models.settings import ModelSettings
from agents.models.shared import Shared
from agents.models.transport import Rejected, Reply, Transport
from tools.records import Budget, Record, Spent

TROUBLE = "trouble"
FINDINGS = "findings"
SHOWN_BACK = 8000
"""Characters of an answer that is sent back to be mended: one that repeats itself to the output limit is not paid for again."""


class Question(Record):
    """What one exchange asks."""

    role: str
    messages: tuple[Message, ...]
    schema_type: type[BaseModel] | None
    purpose: str
    odds: bool = False
    """Whether the log-probabilities of the reply's first token are wanted."""
    tools: tuple[ToolSpec, ...] = ()
    may_call: bool = True


class InFlight(NamedTuple):
    """A call that is not answered yet."""

    role: str
    model: str
    limit_s: float
    """For one reply."""
    began: float
    """By the monotonic clock."""
    again: bool = False
    """Whether it follows an answer of the same conversation: one that could not be used, or that called tools."""


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
        shared: Shared | None = None,
        recording: Recording | None = None,
    ) -> None:
        """Connect to nothing yet.

        `scope` (a run id) keeps equal questions of different runs apart in one store; `shared` is what runs know together of servers,
        and answers if it is told to; with a `recording` nothing is ever sent, and every answer is taken from there.
        """
        self.settings = settings
        self.name = settings.name
        self._calls = MemoryCalls() if calls is None else calls
        self._prices = PriceTable.load() if prices is None else prices
        self._guard = guard or Guard(Budget(), Spent)
        self._scope = scope
        self._shared = shared
        self._recording = recording
        self._transport = Transport(settings)
        self._lacks: frozenset[Feature] | None = None
        self.in_flight: dict[str, InFlight] = {}
        """Calls that are not answered yet, by key."""

    async def ask(
        self, role: str, messages: list[Message] | tuple[Message, ...], schema: type[BaseModel] | None = None, *, purpose: str = ""
    ) -> Answer:
        """Put a question; with a schema, a reply that does not fit it is sent back once with what is wrong.

        Raises UserError for what the user must mend before a run can begin, ModelUnavailable when the server gives no reply,
        BudgetReached before a call that could exceed the budget.
        """
        question = Question(role=role, messages=tuple(messages), schema_type=schema, purpose=purpose)
        answer, record = await self._exchange(question)
        if schema is None:
            return answer
        answer = _parse(answer, record, schema)
        if answer.complaint and record.finish != "refusal":
            again = (*question.messages, _shown_back(record.text), _correction(answer.complaint))
            second, record = await self._exchange(question.model_copy(update={"messages": again}))
            answer = _joined(answer, _parse(second, record, schema))
        return answer

    async def ask_with_tools(
        self, role: str, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...], *, may_call: bool = True, purpose: str = ""
    ) -> Answer:
        """Put a question that may be answered with calls of tools first; a server that takes none is asked without, which is noted."""
        question = Question(role=role, messages=messages, schema_type=None, purpose=purpose, tools=tools, may_call=may_call)
        return (await self._exchange(question))[0]

    async def ask_odds(self, role: str, messages: tuple[Message, ...], *, purpose: str = "") -> Answer:
        """Put a question that one token answers, and read that token's log-probabilities beside those of its alternatives.

        A server that gave none is not asked such a question again: the answer is then empty.
        """
        if Feature.LOGPROBS in self._known_lacks():
            return Answer(text="", model=self.name)
        question = Question(role=role, messages=messages, schema_type=None, purpose=purpose, odds=True)
        try:
            answer, record = await self._exchange(question)
        except NotRecorded:
            # the recorded run knew already that the server gives none
            return Answer(text="", model=self.name)
        if not record.odds and record.finish == "stop":
            self._remember(frozenset({Feature.LOGPROBS}))
        return answer

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _exchange(self, question: Question) -> tuple[Answer, CallRecord]:
        """Get one reply: the run's own from before, the recorded one, another run's, or a new one."""
        key = self._key(question, f"{self._scope}/{question.purpose}")
        stored = self._calls.get_call(key)
        if stored is not None:
            return self._answer(CallRecord.model_validate_json(stored), key, cached=True)
        if self._recording is not None:
            record = self._recording.answer(key, question.role, self.name, question.purpose, question.messages)
        elif (known := self._from_other_run(question)) is not None:
            record = known
        else:
            return self._answer(await self._asked(question, key), key, cached=False)
        self._calls.put_call(key, record.model_dump_json())
        return self._answer(record, key, cached=True)

    def _from_other_run(self, question: Question) -> CallRecord | None:
        found = self._shared.answer(self._shared_key(question)) if self._shared else None
        if found is None:
            return None
        free = {"usage": Usage(), "cost_usd": 0.0, "seconds": 0.0, "source": "cache", "saved": found.usage, "saved_usd": found.cost_usd}
        return found.model_copy(update=free)

    async def _asked(self, question: Question, key: str) -> CallRecord:
        """Ask the server, and keep what came of it whichever way it ends."""
        again = any(message.role == "assistant" for message in question.messages)
        self.in_flight[key] = InFlight(question.role, self.name, self.settings.timeout_s, time.monotonic(), again)
        try:
            record = await in_time(lambda: self._paid(question, key), self._guard.time_left(), f"A call of the {question.role}")
        except BudgetReached as error:
            self._keep_trouble(question, key, "budget", error)
            raise
        except ModelUnavailable as error:
            self._keep_trouble(question, key, "unavailable", error)
            raise
        finally:
            del self.in_flight[key]
        if self._shared is not None:
            self._shared.keep(self._shared_key(question), record)
        return record

    async def _paid(self, question: Question, key: str) -> CallRecord:
        """Reserve what the call may cost until it is written down what it did cost."""
        sent, wanted = tokens_of(question.messages), self.settings.max_output_tokens
        try:
            async with self._guard.reserve(sent, wanted, self._prices.price(self.name)) as limit:
                record = await self._shaped(question, limit)
                self._calls.put_call(key, record.model_dump_json())
                return record
        except OverBudget as over:
            raise BudgetReached(
                f"A call of the {question.role} could use more than is left of the budget of {over}.",
                f"Raise the budget of {over}, or lower the output limit of the model.",
            ) from over

    async def _shaped(self, question: Question, limit: int) -> CallRecord:
        """Get a reply, leaving out one by one what the server turns out to lack."""
        role, messages, schema = question.role, question.messages, question.schema_type
        known = lacks = self._known_lacks()
        extras: dict[str, Any] = {"odds": question.odds, "tools": question.tools, "may_call": question.may_call}
        wanted = make_request(role, messages, schema, self.settings, frozenset(), limit, **extras).features
        while True:
            request = make_request(role, messages, schema, self.settings, lacks, limit, **extras)
            try:
                reply = await self._transport.send(request, question.purpose)
                break
            except Rejected as rejection:
                blamed = request.blame(str(rejection))
                if blamed is None:
                    raise ModelUnavailable(
                        f"The model {self.name!r} at {self.settings.endpoint} cannot take the request: {rejection}",
                        "Check the model's context length and the settings sent with it.",
                    ) from rejection
                lacks |= {blamed}
        if lacks != known:
            self._remember(lacks)
        notes = [WORKAROUNDS[f] for f in Feature if f in lacks and (f in wanted or f is Feature.MAX_COMPLETION_TOKENS)]
        if limit != self.settings.max_output_tokens:
            notes.append(f"The budget left room for a reply of {limit:,} tokens only.")
        return self._record(request, question, tuple(notes), reply)

    def _record(self, request: Request, question: Question, notes: tuple[str, ...], reply: Reply) -> CallRecord:
        usage = reply.usage
        if not usage.counted:
            estimated = tokens_of((Message(role="assistant", content=reply.text),))
            usage = Usage(input_tokens=tokens_of(request.messages), output_tokens=estimated, counted=False)
            notes = (*notes, "The server counted no tokens: they were estimated from the text, and the cost is unknown.")
        return CallRecord(
            role=request.role,
            purpose=question.purpose,
            turns=len(question.messages),
            model=self.name,
            server=self.settings.endpoint,
            messages=request.messages,
            schema_name=request.schema.__name__ if request.schema else None,
            parameters=request.parameters,
            text=reply.text,
            odds=reply.odds,
            calls=reply.calls,
            finish=reply.finish,
            usage=usage,
            cost_usd=self._prices.cost(self.name, usage),
            seconds=reply.seconds,
            retries=reply.retries,
            notes=notes,
        )

    def _key(self, question: Question, purpose: str, place: str = "") -> str:
        return question_key(
            question.role, question.messages, question.schema_type, self.settings, purpose, place,
            odds=question.odds, tools=question.tools, may_call=question.may_call,
        )  # fmt: skip

    def _shared_key(self, question: Question) -> str:
        return self._key(question, question.purpose, place=self.settings.endpoint)

    def _keep_trouble(self, question: Question, key: str, kind: Hindrance, error: BudgetReached | ModelUnavailable) -> None:
        trouble = Trouble(
            role=question.role,
            purpose=question.purpose,
            model=self.name,
            turns=len(question.messages),
            kind=kind,
            what=error.what,
            mend=error.mend,
        )
        self._calls.put(TROUBLE, key, trouble)

    def _known_lacks(self) -> frozenset[Feature]:
        """What this server lacks for this model, as found out earlier by this run or another."""
        if self._lacks is None:
            found = self._calls.get(FINDINGS, self._place, Findings)
            if found is None and self._shared is not None:
                found = self._shared.findings(self.name, self.settings.endpoint)
            self._lacks = frozenset(f for f in Feature if found is not None and f.value in found.lacks)
        return self._lacks

    def _remember(self, lacks: frozenset[Feature]) -> None:
        self._lacks = self._known_lacks() | lacks
        found = Findings(model=self.name, server=self.settings.endpoint, lacks=tuple(sorted(self._lacks)))
        self._calls.put(FINDINGS, self._place, found)
        if self._shared is not None:
            self._shared.remember(found)

    @property
    def _place(self) -> str:
        return f"{self.name} at {self.settings.endpoint}"

    def _answer(self, record: CallRecord, key: str, *, cached: bool) -> tuple[Answer, CallRecord]:
        answer = Answer(
            text=record.text,
            model=self.name,
            finish=record.finish,
            usage=record.usage,
            cost_usd=record.cost_usd,
            seconds=0.0 if cached else record.seconds,
            cached=cached,
            odds=record.odds,
            calls=record.calls,
            key=key,
            notes=record.notes,
        )
        return answer, record


def _shown_back(text: str) -> Message:
    shown = text if len(text) <= SHOWN_BACK else f"{text[:SHOWN_BACK]}\n[... {len(text) - SHOWN_BACK} characters left out ...]"
    return Message(role="assistant", content=shown or "(nothing)")


def _correction(complaint: str) -> Message:
    return Message(role="user", content=f"That answer cannot be used. {complaint} Answer again in full, in the form that was asked for.")


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
