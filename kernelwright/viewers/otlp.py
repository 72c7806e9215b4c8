"""Sends a run's spans to a collector of OpenTelemetry by OTLP over HTTP, with the SDK; its standard variables say where and how."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from kernelwright.viewers.facts import SpanFacts, trace_id
from kernelwright.viewers.protocol import SENT
from kernelwright.viewers.spans import SpanReader
from tools.errors import MachineError
from tools.tracing import RunStore
from tools.tracing.secrets import without_secrets
from tools.version import VERSION

BATCH = 512
"""Spans of one request."""
SLACK_S = 2.0
"""What was written shortly before a look is looked at again: a write may show later than its time says."""
LOGGERS = ("opentelemetry.exporter.otlp.proto.http", "opentelemetry.exporter.otlp.common", "opentelemetry.sdk")


class OtlpViewer:
    """A collector, for one run."""

    name = "OpenTelemetry"
    things = "spans"

    def __init__(self, store: RunStore, since: float | None = None) -> None:
        """Connect to nothing yet; `since` is from when on, by default from where the last session ended."""
        self._store = store
        self._reader = SpanReader(store)
        self._exporter = OTLPSpanExporter()
        self._spans = Spans(store)
        self._until = float(store.meta(SENT) or 0.0) if since is None else since
        self._sent: set[int] = set()

    def look(self, *, stopped: bool = False) -> int:
        """Send spans that have ended; what could not be sent is sent again at the next look."""
        now = time.time()
        # nothing was written between two sessions
        slack = SLACK_S if self._sent else 0.0
        new = self._reader.since(max(self._until - slack, 0.0), stopped=stopped)
        found = [one for one in new if one.id not in self._sent]
        for start in range(0, len(found), BATCH):
            self._send(found[start : start + BATCH])
        self._until = now
        self._store.set_meta(SENT, repr(now))
        return len(found)

    def _send(self, batch: list[SpanFacts]) -> None:
        with _quiet() as said:
            if self._exporter.export(self._spans.made(batch)) is not SpanExportResult.SUCCESS:
                why = without_secrets(said[-1]) if said else "the collector did not take them"
                raise MachineError(
                    f"{len(batch)} spans could not be sent: {why.rstrip('.')}.",
                    f"Check OTEL_EXPORTER_OTLP_ENDPOINT; then: kernelwright trace {self._store.meta('run')} --send",
                )
        self._sent.update(one.id for one in batch)


class Spans:
    """Makes the SDK's spans, whose ids are the run's own."""

    def __init__(self, store: RunStore) -> None:
        """Begin none."""
        self._ids = _GivenIds(trace_id(store))
        self._memory = InMemorySpanExporter()
        provider = TracerProvider(resource=_resource(), id_generator=self._ids, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self._tracer = provider.get_tracer("kernelwright", VERSION)

    def made(self, batch: list[SpanFacts]) -> tuple[ReadableSpan, ...]:
        """The spans of a batch, ended."""
        for one in batch:
            self._make(one)
        spans: tuple[ReadableSpan, ...] = self._memory.get_finished_spans()
        self._memory.clear()
        return spans

    def _make(self, one: SpanFacts) -> None:
        self._ids.next = one.id
        kind = SpanKind.CLIENT if one.asks_server else SpanKind.INTERNAL
        span = self._tracer.start_span(one.name, self._inside(one.parent), kind, dict(one.attributes), start_time=_ns(one.started))
        for name, attributes in one.events.items():
            span.add_event(name, dict(attributes), timestamp=_ns(one.ended))
        if one.error:
            span.set_status(Status(StatusCode.ERROR, without_secrets(one.error)))
        span.end(end_time=_ns(one.ended))

    def _inside(self, parent: int) -> trace.Context:
        if not parent:
            return trace.Context()
        context = SpanContext(self._ids.trace, parent, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        return trace.set_span_in_context(NonRecordingSpan(context), trace.Context())


class _GivenIds(IdGenerator):  # type: ignore[misc] # the SDK's types are not read
    """Gives the ids it was told."""

    def __init__(self, trace_: int) -> None:
        self.trace = trace_
        self.next = 0

    def generate_span_id(self) -> int:
        return self.next

    def generate_trace_id(self) -> int:
        return self.trace


def _resource() -> Resource:
    """What the variables say of this service; else its name is ours."""
    found = Resource.create({SERVICE_VERSION: VERSION})
    unnamed = str(found.attributes[SERVICE_NAME]).startswith("unknown_service")
    return found.merge(Resource({SERVICE_NAME: "kernelwright"})) if unnamed else found


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """Collect what the exporter logs instead of having it printed into what a run prints."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [one.propagate for one in loggers]
    for one in loggers:
        one.addHandler(handler)
        one.propagate = False
    try:
        yield said
    finally:
        for one, propagates in zip(loggers, before, strict=True):
            one.removeHandler(handler)
            one.propagate = propagates
