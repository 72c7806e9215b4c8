"""A home folder with something for every page: runs of each state, one of them measured, a memory, a bench, and work on models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kernelwright.bench.row import Status
from kernelwright.models.operators import Listener
from kernelwright.models.recording import Recording
from kernelwright.models.records import OperatorOutcome, Outcome, Ratio
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import open_embedder
from tests.kernelwright.bench.rows import HEADER, kernel, row, settings
from tests.support.loop import small_problem, small_services
from tests.support.makers import passed, resources, timing
from tests.support.recorded import restored
from tools.models.choosing.chosen import Chosen
from tools.models.jobs import EAGER, OURS, OutputProof, Proof
from tools.models.records import Capture, Group
from tools.records import (
    ROOT,
    Action,
    ActionKind,
    Baselines,
    Bottleneck,
    Candidate,
    Evaluation,
    Figure,
    FigureSource,
    Plan,
    Profile,
    RawTimes,
    Verdict,
)
from tools.tracing import RunStore
from tools.tracing.places import note_place

MEASURED, BEGUN, SCRIPTED, DAMAGED = "measured-1", "begun-1", "scripted", "damaged"
BENCH = "small-bench"
HINT = "<b>Mind</b> the tail."


def fill(home: Path) -> None:
    """Make all of it in `home`."""
    restored("scripted", home / "runs" / SCRIPTED)
    small_services(home / "runs" / BEGUN).store.close()
    (home / "runs" / DAMAGED).mkdir()
    (home / "runs" / DAMAGED / "run.db").write_bytes(b"no database at all, but long enough to look like one" * 40)
    measured(home / "runs" / MEASURED).close()
    base = KnowledgeBase(home / "knowledge", open_embedder("hashing"))
    base.all()
    base.close()
    bench(home)
    model(home)


def measured(folder: Path) -> RunStore:
    """A run under way whose candidates were timed on a GPU: one of 100 µs, a wrong one, and one of 50 µs below the first."""
    store = small_services(folder).store
    store.open_session()
    times = timing(100.0)
    store.put("baselines", small_problem().id, Baselines(samples=dict(times.baselines), tier=times.tier, device=times.device))
    store.put("profile", ROOT, profile(ROOT, 250.0))
    first = candidate(store, ROOT, 64, "Right. <script>alert(1)</script>")
    judge(store, first, 100.0)
    wrong = candidate(store, ROOT, 32, "It is small.")
    store.put("evaluation", f"{wrong}/1", Evaluation(candidate=wrong, verdict=Verdict.WRONG, log="max error 3.2 at row 7"), subject=wrong)
    second = candidate(store, first, 128, "It fills the device.")
    store.put_call("k", json.dumps(call(second)))
    judge(store, second, 50.0)
    confirm(store, second, 48.0)
    return store


def candidate(store: RunStore, parent: str, size: int, why: str) -> str:
    """Plan and write a candidate of a block size."""
    action = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK": size})
    plan = Plan(parent=parent, action=action, rationale=why, planner="a-model", predicted_gain=1.5)
    store.put("plan", plan.id, plan, subject=parent)
    source = f"import triton\n\nBLOCK = {size}  # of {parent}\n"
    one = Candidate(problem=small_problem().id, parent=parent, action=action, source=source, coder="a-model")
    store.put_candidate(one)
    return one.id


def judge(store: RunStore, name: str, us: float) -> None:
    """Let a candidate pass, timed and profiled."""
    raw = RawTimes(candidate=tuple(us + place % 3 for place in range(40)), baselines={"eager": tuple(250.0 + n % 5 for n in range(40))})
    timed = timing(us).model_copy(update={"raw": raw})
    store.put(
        "evaluation", f"{name}/1", passed(timing=timed, kernels=(resources(40),)).model_copy(update={"candidate": name}), subject=name
    )
    store.put("profile", name, profile(name, us))


def confirm(store: RunStore, name: str, us: float) -> None:
    """Let a candidate pass again, as it is confirmed."""
    store.put("evaluation", f"{name}/2", passed(timing=timing(us)).model_copy(update={"candidate": name}), subject=name)


def profile(name: str, us: float) -> Profile:
    """Figures with hardware counters."""
    moved = 2.0**23
    figures = {
        "time_us": us,
        "moved_bytes": moved,
        "arithmetic_intensity": 0.125,
        "floor_us": 10.0,
        "stall_long_scoreboard": 6.5,
        "stall_barrier": 1.25,
    }
    found = tuple(Figure(name=key, value=value, unit="", source=FigureSource.COUNTERS) for key, value in figures.items())
    return Profile(candidate=name, target="h200", figures=found, bottleneck=Bottleneck.DRAM_BANDWIDTH, evidence="It moves what it must.")


def call(name: str) -> dict[str, Any]:
    """A model's call about a candidate, for two cents."""
    messages = [{"role": "system", "content": "You write kernels."}, {"role": "user", "content": "Make it faster."}]
    usage = {"input_tokens": 1200, "output_tokens": 300}
    told = {"role": "coder", "purpose": name, "model": "a-model", "messages": messages, "text": "Here it is.", "usage": usage}
    return {**told, "seconds": 2.5, "cost_usd": 0.02, "source": "server"}


def bench(home: Path) -> None:
    """A bench of two problems, noted in the home, with a third under way."""
    folder = home / BENCH
    (folder / "home" / "runs").mkdir(parents=True)
    (folder / "settings.json").write_text(settings().model_dump_json())
    (folder / "header-1of1.json").write_text(HEADER.model_dump_json())
    rows = [kernel("level1/1_relu", 25.0, run="relu-1"), row("level1/2_sum", status=Status.REFERENCE)]
    (folder / "results-1of1.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in rows))
    small_services(folder / "home" / "runs" / "relu-1").store.close()
    small_services(folder / "home" / "runs" / "third-1").store.close()
    note_place(home, "benches", folder)


def model(home: Path, listener: Listener = lambda event: None) -> Recording:
    """Work on a decoder that ended with one operator of two."""
    recording = Recording(home, begun(), listener)
    kept = OperatorOutcome(name="norm", run=SCRIPTED, reason="Right.", delivered=True, speedup=2.0, tier="sealed")
    left = OperatorOutcome(name="gate", run="", reason="It is not faster.", delivered=False)
    proof = Proof(
        oracle="float64", outputs=(OutputProof(workload="w", output=0, dtype="float32", error=1e-7, own=1e-7, limit=4e-7),), restored=True
    )
    ratio = Ratio(over=EAGER, under=OURS, value=1.25, low=1.2, high=1.3)
    recording.end(begun().model_copy(update={"operators": (kept, left), "proof": proof, "ratios": (ratio,), "seconds": 60.0}))
    return recording


def begun() -> Outcome:
    """The same before its first operator is done."""
    groups = (Group(name="norm", title="RMSNorm", paths=("a",), config="", calls={"w": 2}, us=5.0, share=0.3, operators=4),)
    rows = [
        Chosen(
            group=name,
            title=name,
            modules=1,
            calls=2,
            share=share,
            us=5.0,
            eager_us=0.0,
            floor_us=1.0,
            reach_us=2.0,
            gain=1.2,
            budget=8,
            why_not="",
        )
        for name, share in (("norm", 0.3), ("gate", 0.2))
    ]
    capture = Capture(title="Decoder", clock="CUDA events of an eager run", us={"w": 50.0}, weights={"w": 1.0}, modules=3, groups=groups)
    return Outcome(
        file="m.py",
        factory="",
        target="H200",
        device="cuda",
        policy="default",
        capture=capture,
        chosen=tuple(rows),
        operators=(),
        proof=Proof(),
    )
