"""Kill -9 of runs with four model calls in flight: resumed, each ends as an undisturbed one, and no answered call is paid again.

Usage: python -m benchmarks.models.call_kills [--kills 50] [--seed 0] [--answer 0.4]

A scripted model plays every role; four plans a round are written, repaired and reviewed side by side, and each answer takes
`--answer` seconds, by up to a half more or less. A run is killed when four calls are in flight in a drawn wave, up to one answer's time
later; so some of the four may have been answered by then. Paid is what the server sent, kept is what the run has. An answer that was
sent and not yet kept when the process died is lost, and how long ago it was sent is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.forked_runs import ForkedRuns, process_of
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import Entry, ScriptedServer
from tools.records import Candidate, Evaluation
from tools.tracing import RunStore

CHILD = "benchmarks.models.call_kills_child"
SIDE_BY_SIDE = 4
BLOCKS = ((32, 64, 128, 256), (16, 512))
"""Blocks that are planned on the reference, and then on its first child."""
SETTLED_S = 0.1
"""After which the server has noticed that who asked is gone."""
WAVES = 3
"""Moments to choose from: a run has four calls in flight at least this often, with fewer in between."""
Facts = dict[str, Any]


class Kill(NamedTuple):
    """What one kill led to."""

    in_flight: int
    kept: int
    """Answers that the run had when it died."""
    lost_s: tuple[float, ...]
    """How long before its death each answer was sent that it did not have yet."""
    paid_twice: int
    """Answers that it had and that were paid once more."""
    facts: Facts


def main() -> None:
    """Kill, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--answer", type=float, default=0.4)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    wrong, four, lost = Counter[str](), 0, list[float]()
    with tempfile.TemporaryDirectory(prefix="kernelwright-call-kills-") as folder, ForkedRuns(CHILD) as runs:
        expected = _undisturbed(Path(folder) / "undisturbed", runs, options.answer)
        print(f"undisturbed: {len(expected['calls'])} calls, {len(expected['candidates'])} candidates", flush=True)
        for number in range(options.kills):
            wave, late_s = draw.randint(1, WAVES), draw.uniform(0.0, options.answer)
            kill = _killed(Path(folder) / f"killed{number}", runs, options.answer, wave, late_s)
            found = [name for name in expected if kill.facts[name] != expected[name]]
            found += ["paid twice"] * kill.paid_twice
            wrong.update(found)
            four += kill.in_flight == SIDE_BY_SIDE
            lost += kill.lost_s
            words = "".join(f", one sent {sent * 1e3:.0f} ms before" for sent in kill.lost_s)
            ended = ", ".join(found) or "the same, nothing paid twice"
            print(f"kill {number}: {kill.in_flight} calls in flight, {kill.kept} answers kept{words}: {ended}", flush=True)
    ended = str(dict(wrong)) if wrong else "every run ended as the undisturbed one, and no answer that a run had was paid twice"
    on_the_way = f"; {len(lost)} answers were on the way, sent at most {max(lost) * 1e3:.0f} ms before" if lost else ""
    print(f"{options.kills} kills, {four} of them with all four calls in flight: {ended}{on_the_way}")
    sys.exit(bool(wrong))


def _undisturbed(folder: Path, runs: ForkedRuns, answer_s: float) -> Facts:
    with _model(answer_s) as server:
        runs.begin(folder, server.url)
        assert runs.ended() == 0
        facts = _facts(folder)
        bodies = [entry.body_hash for entry in server.requests]
        assert len(set(bodies)) == len(bodies) == len(facts["calls"]), "each call is asked once where nothing happens"
        return facts


def _killed(folder: Path, runs: ForkedRuns, answer_s: float, wave: int, late_s: float) -> Kill:
    with _model(answer_s) as server:
        runs.begin(folder, server.url)
        _await_wave(server, wave)
        time.sleep(late_s)
        in_flight = server.count(state="received")
        os.kill(process_of(folder), signal.SIGKILL)
        died = time.monotonic()
        assert runs.ended() == -signal.SIGKILL, "the run ended before it was killed: raise --answer"
        time.sleep(SETTLED_S)
        sent, kept = dict(server.sent), len(_facts(folder)["calls"])
        runs.begin(folder, server.url)
        assert runs.ended() == 0
        facts = _facts(folder)
    lost = len(sent) - kept
    paid_again = len(server.sent) - len(facts["calls"])
    return Kill(in_flight, kept, tuple(max(0.0, died - at) for at in sorted(sent.values())[kept:]), paid_again - lost, facts)


def _await_wave(server: _Model, wave: int) -> None:
    """Wait until four calls are in flight for the `wave`-th time."""
    seen, high = 0, False
    end = time.monotonic() + 120
    while time.monotonic() < end:
        now = server.count(state="received") >= SIDE_BY_SIDE
        seen += now and not high
        if seen == wave:
            return
        high = now
        time.sleep(0.002)
    raise SystemExit(f"Four calls were in flight {seen} times in two minutes.")


def _facts(folder: Path) -> Facts:
    """What must be the same, whatever happened on the way."""
    from graphs.run.records import Delivery

    store = RunStore(folder)
    delivery = store.get("delivery", folder.name, Delivery)
    facts = {
        "candidates": sorted(one.source for one in store.all("candidate", Candidate).values()),
        "verdicts": sorted((one.candidate, one.verdict.value) for one in store.all("evaluation", Evaluation).values()),
        "delivery": delivery and delivery.candidate,
        "calls": sorted((str(call["role"]), str(call["purpose"]), int(call["turns"])) for call in store.calls()),
    }
    store.close()
    return facts


class _Model(ScriptedServer):
    """Knows when each of its answers was sent."""

    def __init__(self, rules: list[Rule]) -> None:
        super().__init__(Scenario(rules=rules))
        self.sent: dict[int, float] = {}
        """By the monotonic clock, by the number of the request."""

    def __enter__(self) -> _Model:
        """Start."""
        self.start()
        return self

    def finish(self, entry: Entry, state: Literal["answered", "abandoned"], status: int) -> None:
        """Take down how a request ended, and when."""
        super().finish(entry, state, status)
        if state == "answered":
            self.sent[entry.number] = time.monotonic()


def _model(answer_s: float) -> _Model:
    return _Model(_rules(answer_s))


def _rules(answer_s: float) -> list[Rule]:
    """A slow model for the landscape of tests/support/loop.py: every draft is wrong at first and right when mended."""
    rules = []
    for place, block in enumerate((*BLOCKS[0], *BLOCKS[1])):
        wait = answer_s * (0.5 + place % SIDE_BY_SIDE / SIDE_BY_SIDE)
        rules += [
            Rule(role="repairer", match=f"# block: {block}\\n", answer=_code(block, "PASS"), delay_s=wait),
            Rule(role="coder", match=f'"BLOCK": {block}\\b', answer=_code(block, "WRONG"), delay_s=wait),
        ]
    plans = [Rule(role="planner", answer=_plans(blocks), uses=1, delay_s=answer_s / 4) for blocks in BLOCKS]
    remarks = json.dumps({"concerns": [], "checks": [], "lesson": "Blocks matter."})
    last = [Rule(role="planner", answer=_plans(())), Rule(role="profiler", answer=_diagnosis()), Rule(role="reviewer", answer=remarks)]
    return [*rules, *plans, *(rule.model_copy(update={"delay_s": answer_s}) for rule in last)]


def _plans(blocks: tuple[int, ...]) -> str:
    fixed: Facts = {"kind": "tiling", "region": "exp", "rationale": "try it", "predicted_gain": None, "strategies": []}
    return json.dumps({"plans": [{**fixed, "parameters": [{"name": "BLOCK", "value": block}]} for block in blocks]})


def _code(block: int, verdict: str) -> str:
    return f"```python\n# block: {block}\n# verdict: {verdict}\nclass ModelNew:\n    pass\n```"


def _diagnosis() -> str:
    return json.dumps({"bottleneck": "dram-bandwidth", "evidence": "It is.", "figures": []})


if __name__ == "__main__":
    assert threading.active_count() == 1
    main()
