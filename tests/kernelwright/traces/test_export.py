"""A run as one file: joined by ids, of a published form, the same when it is read elsewhere, without secrets, and refused in a line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agents.models.calls import recorded_calls
from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from kernelwright.screen.costs import cost_facts
from kernelwright.screen.facts import candidate_facts, node_facts, tree_facts
from kernelwright.screen.report.report import write_report
from kernelwright.traces.exporting import trace_of
from kernelwright.traces.files import SCHEMA, as_text, read_trace, schema_text
from kernelwright.traces.importing import import_run
from kernelwright.traces.records import Trace
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import open_embedder
from tests.kernelwright.conftest import Refused
from tests.support.interrupted import Interrupted, InterruptedStore
from tests.support.loop import small_services
from tests.support.recorded import restored
from tools.errors import UserError
from tools.records import Budget
from tools.tracing import RunStore

Changed = Callable[..., Path]
SETTINGS = RunSettings(target="h200", memory=False, budget=Budget(evaluations=4))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a run in which a model played roles, and one of four evaluations with its nodes."""
    place = tmp_path_factory.mktemp("home")
    restored("scripted", place / "runs" / "scripted")
    services = small_services(place / "runs" / "exp-1", SETTINGS)
    asyncio.run(execute(services, lambda event: None))
    services.store.close()
    return place


@pytest.fixture(scope="module")
def trace(home: Path) -> Trace:
    """The run with a model, exported."""
    return trace_of(RunStore(home / "runs" / "scripted"))


@pytest.fixture
def changed(trace: Trace, tmp_path: Path) -> Changed:
    """Write the exported run with some fields changed."""

    def write(**fields: Any) -> Path:
        file = tmp_path / "changed.json"
        file.write_text(json.dumps(json.loads(as_text(trace)) | fields))
        return file

    return write


def _without_words(schema: Any) -> Any:
    """A schema without its descriptions, which may be reworded."""
    if isinstance(schema, list):
        return [_without_words(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _without_words(one) for name, one in schema.items() if name != "description" or not isinstance(one, str)}


def test_the_form_of_a_trace_does_not_change_unnoticed() -> None:
    """What is exported has the published schema.

    Where a change is meant: raise VERSION in kernelwright/traces/records.py if older versions could not read what is written now, then
    `python -m kernelwright runs --schema > data/schemas/trace.json`.
    """
    assert _without_words(json.loads(schema_text())) == _without_words(json.loads(SCHEMA.read_text()))


def test_an_exported_run_fits_the_published_schema(trace: Trace) -> None:
    """Another program can check the file by the schema alone."""
    jsonschema.validate(json.loads(as_text(trace)), json.loads(SCHEMA.read_text()))


def test_the_parts_are_joined_by_ids(trace: Trace) -> None:
    """Rounds name plans, plans name candidates and calls, candidates name evaluations, and each is there once."""
    plans = {one.id: one for one in trace.plans}
    candidates = {one.id: one for one in trace.candidates}
    evaluations = {one.id for one in trace.evaluations}
    assert sorted(name for one in trace.rounds for name in one.plans) == sorted(plans)
    assert {plans[one.plan].id for one in trace.candidates} == set(plans)
    assert {name for one in trace.plans for name in one.candidates} == set(candidates)
    assert all(one.evaluations and set(one.evaluations) <= evaluations for one in trace.candidates)
    roles = {call.call.value.role for call in trace.calls if call.plans}
    assert roles == {"planner", "coder", "repairer", "profiler", "reviewer"}
    assert all(call in {one.id for one in trace.calls} for one in trace.plans for call in one.calls)
    assert sum(line.calls for line in trace.cost.lines) == len(trace.calls)


def test_a_plan_names_what_memory_learnt_of_it(tmp_path: Path) -> None:
    """The strategies that its outcome made are there under those ids, after importing too."""
    base = KnowledgeBase(tmp_path / "knowledge", open_embedder("hashing"))
    services = small_services(tmp_path / "runs" / "exp-1", SETTINGS.model_copy(update={"memory": True}), memory=base)
    asyncio.run(execute(services, lambda event: None))
    made = trace_of(services.store)
    learnt = {name for plan in made.plans for name in plan.learnt}
    assert learnt
    assert learnt <= {one.id for one in base.all()}
    assert all(plan.learnt for plan in made.plans if plan.review)
    copy = trace_of(import_run(made, tmp_path / "elsewhere", "x.json"))
    assert copy.plans == made.plans
    assert copy.rounds == made.rounds
    base.close()


@pytest.mark.parametrize("name", ["scripted", "exp-1"])
def test_an_imported_run_shows_what_the_original_does(home: Path, tmp_path: Path, name: str) -> None:
    """Tree, candidates, nodes and costs are the same, with the difference of each source."""
    original = RunStore(home / "runs" / name)
    file = tmp_path / "run.json"
    file.write_text(as_text(trace_of(original)))
    copy = import_run(read_trace(file), tmp_path / "elsewhere", str(file))

    def shown(store: RunStore) -> Any:
        candidates = [candidate_facts(store, one) for one in store.names("candidate")]
        nodes = {name: one for name, one in node_facts(store).items() if name != "calls"}
        facts = json.dumps([tree_facts(store), candidates, nodes, cost_facts(store)])
        return json.loads(facts.replace(str(store.folder), "FOLDER")), recorded_calls(store)

    assert shown(copy) == shown(original)


def test_a_run_that_goes_on_can_be_exported(tmp_path: Path) -> None:
    """A run cut short in its second round has what it did so far; its copy is not gone on with."""
    settings = RunSettings(target="h200", memory=False, budget=Budget(evaluations=6))
    services = small_services(tmp_path / "runs" / "cut", settings)
    services.store.close()
    store = InterruptedStore(tmp_path / "runs" / "cut")
    store.at = 2
    with pytest.raises(Interrupted):
        asyncio.run(execute(small_services(tmp_path / "runs" / "cut", settings, store=store), lambda event: None))
    made = trace_of(RunStore(tmp_path / "runs" / "cut"))
    assert made.run.state == "unfinished"
    assert made.delivery is None
    assert made.rounds[1].started is not None
    copy = import_run(made, tmp_path / "elsewhere", "cut.json")
    with pytest.raises(UserError, match="imported from cut"):
        asyncio.run(execute(small_services(copy.folder, settings, store=copy), lambda event: None))


def test_an_exported_run_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in addresses, in the environment and of known shapes are left out, wherever they were written."""
    planted = ("pass-of-mine-1", "sk-proj-0123456789abcdefghij", "tok3n-in-the-environment", "hf_0123456789abcdefghijklm")
    monkeypatch.setenv("MY_SERVICE_TOKEN", planted[2])
    store = RunStore(restored("scripted", tmp_path / "scripted"))
    settings = json.loads(store.meta("settings"))
    settings["chroma_server"] = f"http://me:{planted[0]}@localhost:8000"
    store.set_meta("settings", json.dumps(settings))
    with pytest.raises(RuntimeError), store.span("write", "", json.dumps({"said": planted[1]})):
        raise RuntimeError(f"no access with {planted[2]}")
    (name,) = store.names("candidate")[:1]
    (store.folder / "candidates" / f"{name}.py").write_text(f"KEY = '{planted[3]}'")
    text = as_text(trace_of(store))
    assert [one for one in planted if one in text] == []
    assert Trace.model_validate_json(text).nodes[-1].error == "RuntimeError: no access with [secret]"


def test_a_report_holds_no_secret(tmp_path: Path) -> None:
    """What a kernel's source has of them is left out of the page."""
    store = RunStore(restored("scripted", tmp_path / "scripted"))
    for name in store.names("candidate"):
        file = store.folder / "candidates" / f"{name}.py"
        file.write_text(f"{file.read_text()}# hf_0123456789abcdefghijklm\n")
    write_report(store, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "hf_0123456789" not in page
    assert "[secret]" in page


def test_a_trace_of_a_newer_form_is_refused_in_a_line(changed: Changed, refused: Refused) -> None:
    """Its version and the one that is read are named."""
    said = refused("runs", "--import", str(changed(version=2, surprise=1)))
    assert "has version 2 of the form of traces, and this kernelwright reads version 1" in said
    assert len(said.splitlines()) == 2


def test_a_damaged_trace_is_refused_in_a_line(changed: Changed, refused: Refused) -> None:
    """A missing part is named, and half a file is told from a whole one."""
    file = changed(plans=[{"id": 1}])
    assert "is damaged at plans.0" in refused("runs", "--import", str(file))
    file.write_text(file.read_text()[:1000])
    assert "no whole JSON" in refused("runs", "--import", str(file))
    file.write_text("[" * 100_000)
    assert "no whole JSON" in refused("runs", "--import", str(file))
    file.write_text("[]")
    assert "is no exported run" in refused("runs", "--import", str(file))
    assert "cannot be read" in refused("runs", "--import", str(file.parent))


def test_an_import_writes_nowhere_but_into_its_run(trace: Trace, changed: Changed, refused: Refused) -> None:
    """A name that leads out of the folder is refused, and so is one that is taken."""
    run = trace.run.model_dump(mode="json") | {"id": "../outside"}
    assert "no name of a run" in refused("runs", "--import", str(changed(run=run)))
    candidates = [json.loads(one.model_dump_json()) for one in trace.candidates]
    candidates[0]["candidate"]["id"] = "../../outside"
    assert "no name of a run" in refused("runs", "--import", str(changed(candidates=candidates)))


def test_an_imported_run_steers_no_terminal(trace: Trace, changed: Changed, tmp_path: Path) -> None:
    """Control characters of a stranger's file are replaced, in what is JSON inside of it, too."""
    plans = [json.loads(one.model_dump_json()) for one in trace.plans]
    plans[0]["plan"]["value"]["rationale"] = "\x1b[2Jgone"
    run = json.loads(trace.run.model_dump_json())
    run["facts"]["settings"] = json.dumps(json.loads(run["facts"]["settings"]) | {"problem_file": "\x1b[2Jgone"})
    store = import_run(read_trace(changed(plans=plans, run=run)), tmp_path / "elsewhere", "x.json")
    facts = tree_facts(store)
    assert facts["problem_file"] == "\ufffd[2Jgone"
    assert "\ufffd[2Jgone" in {line["rationale"] for line in facts["candidates"]}
    assert "\\u001b" not in json.dumps(facts)


def test_a_run_is_not_imported_over_another(home: Path, trace: Trace) -> None:
    """The run that is there stays."""
    with pytest.raises(UserError, match="already"):
        import_run(trace, home, "x.json")


def test_export_names_a_run_that_is_not_there(refused: Refused) -> None:
    """One clear line."""
    assert "There is no run 'nosuch'" in refused("trace", "nosuch", "--export", "-")


def test_a_record_that_this_version_cannot_read_is_a_line(tmp_path: Path) -> None:
    """The kind of record and the field are named, where a run is exported and where it is shown."""
    store = RunStore(restored("scripted", tmp_path / "scripted"))
    row = next(one for one in store.rows() if one.kind == "plan")
    store.put_row(row._replace(json=json.dumps(json.loads(row.json) | {"mood": "bright"})))
    with pytest.raises(UserError, match=r"holds a record of kind plan that this version cannot read \(mood"):
        trace_of(store)
    with pytest.raises(UserError, match=r"holds a Plan that this version cannot read \(mood"):
        tree_facts(store)


def test_settings_that_this_version_does_not_know_are_a_line(tmp_path: Path) -> None:
    """A run of a newer version is named with the setting, where it is shown."""
    store = RunStore(restored("scripted", tmp_path / "scripted"))
    store.set_meta("settings", json.dumps(json.loads(store.meta("settings")) | {"colour": "blue"}))
    with pytest.raises(UserError, match=r"has settings that this version cannot read \(colour"):
        tree_facts(store)


def test_what_grows_with_a_run_is_not_written_at_every_node(home: Path) -> None:
    """Nodes write down this round's results, and the search's state only where they change it."""
    inputs = [(one.node, json.loads(one.input)) for one in RunStore(home / "runs" / "exp-1").spans()]
    assert not [node for node, given in inputs if "search" in given]
    assert {one.node for one in RunStore(home / "runs" / "exp-1").spans() if '"search"' in (one.output or "")} == {
        "measure",
        "recall",
        "review",
    }
    assert all(set(given["results"]) <= set(given["plans"]) for _, given in inputs if "results" in given and "plans" in given)
    assert any(given.get("results") for node, given in inputs if node == "learn")
