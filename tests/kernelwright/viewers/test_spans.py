"""Spans of runs as a collector of OpenTelemetry receives them over HTTP: joined by ids, in the conventions' words, only where asked for."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Received
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, server_attributes

from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from kernelwright.viewers.genai import CAPTURE
from kernelwright.viewers.otlp import OtlpViewer
from kernelwright.viewers.settings import TRACKING, open_viewers
from kernelwright.viewers.watching import Watch, see_through
from tests.kernelwright.conftest import Refused
from tests.support.collector import Collector, attributes
from tests.support.interrupted import Interrupted, InterruptedStore
from tests.support.loop import small_services
from tests.support.recorded import restored
from tools.errors import MachineError
from tools.records import Budget
from tools.tracing import RunStore

SETTINGS = RunSettings(target="h200", memory=False, budget=Budget(evaluations=4))
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture(autouse=True)
def _nothing_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", CAPTURE, TRACKING):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the standard variable names."""
    with Collector() as found:
        monkeypatch.setenv(ENDPOINT, found.url)
        yield found


@pytest.fixture
def scripted(tmp_path: Path) -> RunStore:
    """A finished run in which a model played roles."""
    return RunStore(restored("scripted", tmp_path / "runs" / "scripted"))


def _named(spans: list[Received], name: str) -> list[Received]:
    return [one for one in spans if one.name == name]


def _demand_joined(spans: list[Received]) -> None:
    """One trace, one root, no id twice, and every parent is there and holds its children."""
    by_id = {one.span_id: one for one in spans}
    assert len(by_id) == len(spans)
    assert len({one.trace_id for one in spans}) == 1
    assert len([one for one in spans if not one.parent_span_id]) == 1
    for one in spans:
        if one.parent_span_id:
            parent = by_id[one.parent_span_id]
            assert parent.start_time_unix_nano <= one.start_time_unix_nano <= one.end_time_unix_nano


def test_a_run_is_received_as_one_tree(tmp_path: Path, collector: Collector) -> None:
    """Run, rounds, nodes and evaluations, each in what it happened in, and each with the run's own ids."""
    services = small_services(tmp_path / "exp-1", SETTINGS)
    asyncio.run(see_through(services, lambda event: None))
    spans = collector.spans
    _demand_joined(spans)
    names = {one.span_id: one.name for one in spans}
    assert {names[one.parent_span_id] for one in _named(spans, "evaluation")} == {"evaluate", "confirm"}
    assert {names[one.parent_span_id] for one in _named(spans, "write")} == {"round 1", "round 2"}
    root = attributes(*_named(spans, "invoke_workflow kernelwright.optimize"))
    judged = [attributes(one) for one in _named(spans, "evaluation")]
    assert {one["kernelwright.id"] for one in judged} == set(services.store.names("evaluation"))
    assert root["kernelwright.delivered"] in {one["kernelwright.candidate"] for one in judged}
    assert root["kernelwright.speedup"] == max(one.get("kernelwright.speedup", 0.0) for one in judged)
    assert {one["kernelwright.plan"] for one in judged} <= set(services.store.names("plan"))
    (resource,) = {
        one.value.string_value for one in collector.requests[0].resource_spans[0].resource.attributes if one.key == "service.name"
    }
    assert resource == "kernelwright"


def test_a_resumed_run_joins_and_sends_nothing_twice(tmp_path: Path, collector: Collector) -> None:
    """The second session's spans have the first one's trace, and close the round that was cut short."""
    small_services(tmp_path / "exp-1", SETTINGS).store.close()
    store = InterruptedStore(tmp_path / "exp-1")
    store.node = "review"
    with pytest.raises(Interrupted):
        asyncio.run(see_through(small_services(tmp_path / "exp-1", SETTINGS, store=store), lambda event: None))
    store.close()
    first = len(collector.spans)
    assert first > 0
    assert not _named(collector.spans, "round 1")
    asyncio.run(see_through(small_services(tmp_path / "exp-1", SETTINGS), lambda event: None))
    assert len(collector.spans) > first
    (failed,) = [one for one in collector.spans if one.status.message]
    assert (failed.name, failed.status.message) == ("review", "Interrupted: ")
    _demand_joined(collector.spans)


def test_a_run_that_is_stopped_is_not_held_up_and_joins_later(tmp_path: Path, collector: Collector) -> None:
    """Ctrl-C waits for no collector; what was not sent then is sent by the session that goes on."""

    async def stopped() -> None:
        services = small_services(tmp_path / "exp-1", SETTINGS)
        work = asyncio.create_task(see_through(services, lambda event: event["event"] == "reviewed" and work.cancel()))
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(stopped())
    assert collector.spans == []
    asyncio.run(see_through(small_services(tmp_path / "exp-1", SETTINGS), lambda event: None))
    assert _named(collector.spans, "round 1")
    _demand_joined(collector.spans)


def test_a_model_call_is_told_in_the_conventions_words(scripted: RunStore, collector: Collector) -> None:
    """Operation, provider, model, server, tokens and why it ended; a repeated call has its purpose."""
    OtlpViewer(scripted, since=0.0).look(stopped=True)
    calls = [attributes(one) for one in _named(collector.spans, "chat scripted")]
    assert len(calls) == len(scripted.calls())
    one = next(call for call in calls if call["gen_ai.agent.name"] == "coder")
    assert one["gen_ai.operation.name"] == "chat"
    assert one["gen_ai.provider.name"] == "openai"
    assert one["gen_ai.request.model"] == one["gen_ai.response.model"] == "scripted"
    assert one["server.address"] == "127.0.0.1"
    assert one["gen_ai.response.finish_reasons"] == ["stop"]
    assert one["gen_ai.usage.input_tokens"] > 0
    assert one["gen_ai.conversation.id"] == scripted.meta("run")
    assert {one.kind for one in _named(collector.spans, "chat scripted")} == {Received.SPAN_KIND_CLIENT}
    _demand_joined(collector.spans)


class BrokenViewer:
    """Meets what nobody thought of."""

    name = "Broken"
    things = "nothing"

    def look(self, *, stopped: bool = False) -> int:
        """Fail."""
        raise KeyError("surprise")


def test_a_viewer_that_breaks_is_a_note(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed into what the run prints, and the other viewers are told."""
    watch = Watch([BrokenViewer()], every_s=0.01)
    watch.close()
    assert watch.said == ["Broken was not told: KeyError: 'surprise'."]
    assert capfd.readouterr().err == ""


def test_every_name_of_the_conventions_is_one_of_theirs(scripted: RunStore, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """No attribute below `gen_ai.` or `server.` was made up here."""
    monkeypatch.setenv(CAPTURE, "true")
    OtlpViewer(scripted, since=0.0).look(stopped=True)
    known = {value for module in (gen_ai_attributes, server_attributes) for value in vars(module).values() if isinstance(value, str)}
    used = {one.key for span in collector.spans for one in span.attributes if one.key.startswith(("gen_ai.", "server."))}
    assert used
    assert used - known == set()


@pytest.mark.parametrize(("asked", "shown"), [("", False), ("event_only", False), ("true", True), ("SPAN_ONLY", True)])
def test_prompts_are_sent_only_where_they_are_asked_for(
    scripted: RunStore, collector: Collector, monkeypatch: pytest.MonkeyPatch, asked: str, shown: bool
) -> None:
    """Without the variable neither prompts nor answers leave the machine; with it they are messages of parts."""
    monkeypatch.setenv(CAPTURE, asked)
    OtlpViewer(scripted, since=0.0).look(stopped=True)
    assert any(b"You are the" in body for body in collector.bodies) is shown
    if shown:
        call = next(attributes(one) for one in collector.spans if one.name == "chat scripted")
        first = json.loads(call["gen_ai.input.messages"])[0]
        assert (first["role"], first["parts"][0]["type"]) == ("system", "text")
        assert json.loads(call["gen_ai.output.messages"])[0]["finish_reason"] == "stop"


def test_no_secret_is_sent(scripted: RunStore, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in a prompt, in an error and in an address is left out, with prompts captured too; headers go to the collector alone."""
    monkeypatch.setenv(CAPTURE, "true")
    monkeypatch.setenv("MY_SERVICE_TOKEN", "tok3n-in-the-environment")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=key-of-the-c0llector")
    row = scripted.call_rows()[0]
    call = json.loads(row.json)
    call["text"] = "sk-proj-0123456789abcdefghij and tok3n-in-the-environment"
    call["server"] = "http://me:hunter2@host/v1"
    scripted.put_call_row(row._replace(json=json.dumps(call)))
    with pytest.raises(RuntimeError), scripted.span("measure", "round 0", "{}"):
        raise RuntimeError("refused: hf_0123456789abcdefghijklm")
    OtlpViewer(scripted, since=0.0).look(stopped=True)
    sent = b"".join(collector.bodies)
    assert b"[secret]" in sent
    assert b"refused: [secret]" in sent
    planted = (b"sk-proj-0123456789", b"tok3n-in-the", b"hunter2", b"hf_0123456789", b"key-of-the-c0llector")
    assert [one for one in planted if one in sent] == []
    assert collector.headers[0]["x-api-key"] == "key-of-the-c0llector"


def test_nothing_is_sent_unless_a_variable_asks_for_it(scripted: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an endpoint, with the SDK disabled, and with another exporter there is no viewer."""
    assert open_viewers(scripted) == ([], ())
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    assert len(open_viewers(scripted)[0]) == 1
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    assert open_viewers(scripted) == ([], ())
    monkeypatch.delenv("OTEL_TRACES_EXPORTER")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert open_viewers(scripted) == ([], ())


def test_a_missing_extra_is_named(scripted: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without the SDK goes on, and says what to install."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setenv(TRACKING, "http://127.0.0.1:1")
    for library, viewer in (("opentelemetry.sdk.trace", "otlp"), ("mlflow", "mlflow_runs")):
        monkeypatch.delitem(sys.modules, f"kernelwright.viewers.{viewer}", raising=False)
        monkeypatch.setitem(sys.modules, library, None)
    viewers, (spans, runs) = open_viewers(scripted)
    assert viewers == []
    assert "kernelwright[otel]" in spans
    assert "kernelwright[mlflow]" in runs


def test_a_protocol_that_is_not_spoken_is_named(scripted: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent in another one than was asked for."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    viewers, notes = open_viewers(scripted)
    assert viewers == []
    assert "grpc" in notes[0]


def test_a_collector_that_refuses_is_a_note_and_no_failure(tmp_path: Path, collector: Collector, capfd: pytest.CaptureFixture[str]) -> None:
    """The run ends as it would have, says it once, and its spans can be sent later."""
    collector.status = 400
    services = small_services(tmp_path / "exp-1", SETTINGS)
    events: list[dict[str, str]] = []
    delivery = asyncio.run(see_through(services, events.append))
    (note,) = [one["said"] for one in events if one["event"] == "viewed"]
    assert delivery.candidate != "root"
    assert "spans could not be sent" in note
    assert "kernelwright trace exp-1 --send" in note
    assert capfd.readouterr().err == ""
    collector.status = 200
    OtlpViewer(services.store).look()
    _demand_joined(collector.spans)


def test_a_run_cut_short_can_be_sent_whole(tmp_path: Path, collector: Collector) -> None:
    """A node that a kill cut short, its round and the run are closed, so that nothing hangs in the air."""
    small_services(tmp_path / "exp-1", SETTINGS).store.close()
    store = InterruptedStore(tmp_path / "exp-1")
    store.node = "evaluate"
    with pytest.raises(Interrupted):
        asyncio.run(execute(small_services(tmp_path / "exp-1", SETTINGS, store=store), lambda event: None))
    store._db.execute("UPDATE spans SET ended = NULL, error = NULL WHERE node = 'evaluate'")
    OtlpViewer(store, since=0.0).look(stopped=True)
    assert {one.status.message for one in _named(collector.spans, "evaluate")} == {"cut short"}
    _demand_joined(collector.spans)


def test_a_finished_run_is_sent_by_a_command(scripted: RunStore, refused: Refused, tmp_path: Path) -> None:
    """Without a variable that names where, it says which there are; where nobody listens, that too."""
    (tmp_path / "home").mkdir()
    (tmp_path / "runs").rename(tmp_path / "home" / "runs")
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in refused("trace", "scripted", "--send")


def test_nobody_listening_is_said_in_a_line(scripted: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason and what to check."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    with pytest.raises(MachineError, match="spans could not be sent"):
        OtlpViewer(scripted, since=0.0).look()
