"""Measures whole models, a row for each step as it comes; the same command goes on after a kill and leaves out what is done.

python -m benchmarks.whole_models.run --out rows.jsonl --minutes 9       # the large ones; call it until nothing is left
python -m benchmarks.whole_models.run --out rows.jsonl --max-autotune    # then under that mode, too
python -m benchmarks.whole_models.run --out rows.jsonl --size small      # without a GPU: right, packaged and proven; nothing is timed
python -m benchmarks.whole_models.report rows.jsonl
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.kept_rows import KeptRows
from graphs.run.assembly import resolve_target
from graphs.run.settings import RunSettings
from kernelwright.api.rechecking import prove_again
from kernelwright.models.live import ModelProgress
from kernelwright.models.records import ModelSettings, Outcome, Ratio
from kernelwright.models.report import summary
from kernelwright.models.ways import PAIRS
from kernelwright.models.working import work_on_file
from tools.errors import KernelwrightError
from tools.evaluation.several import begin_local
from tools.models.jobs import Proof
from tools.references.processes import PROCESSES
from tools.tracing.finding import default_home

MODELS = Path(__file__).resolve().parents[2] / "data" / "models"
CASES: dict[str, dict[str, str]] = {
    "llama": {"small": "served_decoder.py:make", "large": "served_decoder.py:llama", "full": "served_decoder.py:llama_full"},
    "qwen3": {"small": "served_decoder.py:make_qwen3", "large": "served_decoder.py:qwen3", "full": "served_decoder.py:qwen3_full"},
    "mixture": {"small": "mixture.py:make", "large": "mixture.py:large"},
    "mamba2": {"small": "state_space.py:make", "large": "state_space.py:large"},
    "vit": {"small": "vision.py:make", "large": "vision.py:large"},
    "dit": {"small": "diffusion.py:make", "large": "diffusion.py:large"},
    "unet3d": {"small": "volume.py:make", "large": "volume.py:large"},
    "gnn": {"small": "graph.py:make", "large": "graph.py:large"},
}
"""By name and size: file and factory; a size that a model does not have is its large one."""
ENDED, TUNED = "ended", "tuned"
"""What a model's last rows are called: of all but max-autotune, and of that."""
WAYS = tuple(way for pair in PAIRS for way in pair)


class _Rows:
    """Writes what happens to one model."""

    def __init__(self, rows: KeptRows, model: str, key: dict[str, Any]) -> None:
        self._rows, self._model, self._key = rows, model, key
        self._shown = ModelProgress(quiet=False)
        self._began = time.monotonic()

    def __call__(self, event: dict[str, Any]) -> None:
        """Show all, and keep what was captured and what came of each operator."""
        self._shown(event)
        if event["event"] == "chosen":
            rows = [row.model_dump(mode="json") for row in event["rows"] if row.budget]
            self.add("chosen", us=event["capture"].us, clock=event["capture"].clock, target=event["target"], operators=rows)
        elif event["event"] == "outcome":
            self.add("operator", **event["outcome"].model_dump(mode="json"))
        elif event["event"] == "proving":
            self.add("proving", operators=event["operators"])
        elif event["event"] == "proven":
            self.add("proven", **_all(event["outcome"]))

    def add(self, what: str, **facts: Any) -> None:
        """Keep a row, and say so."""
        row = {"model": self._model, **self._key, "what": what, "seconds": round(time.monotonic() - self._began, 1), **facts}
        self._rows.add(row)
        shown = facts.get("reason") or facts.get("summary") or facts.get("operators") or ""
        print(f"{row['seconds']:7.1f}s {self._model:<8} {what:<9} {facts.get('name', '')} {str(shown)[:160]}", flush=True)


def main(words: Sequence[str] | None = None) -> None:
    """Work on each model that has no last row yet; then, if asked, time those with a package under max-autotune."""
    asked = _asked(words)
    # as the command line does: what operators are judged by is imported while a model is captured
    PROCESSES.start()
    begin_local()
    rows = KeptRows(asked.out)
    key = {"size": asked.size, "budget": asked.budget, "most": asked.most, "against": asked.against}
    until = time.monotonic() + asked.minutes * 60.0 if asked.minutes else float("inf")
    for what, work in ((ENDED, _measure), (TUNED, _autotune)) if asked.max_autotune else ((ENDED, _measure),):
        for name in asked.only or CASES:
            if _last(rows, name, what, key) is not None or (what == TUNED and not (_package(name, asked) / "table.py").is_file()):
                continue
            if time.monotonic() > until:
                print(f"{name} and what comes after it are left for the next call of this command: --minutes are over.")
                return
            work(name, asked, _Rows(rows, name, key))


def _last(rows: KeptRows, name: str, what: str, key: dict[str, Any]) -> dict[str, Any] | None:
    found = [row for row in rows.rows if row["model"] == name and row["what"] == what and row.items() >= key.items()]
    return found[-1] if found else None


def _package(name: str, asked: argparse.Namespace) -> Path:
    place: Path = asked.packages / f"{name}_{asked.size}"
    return place


def _measure(name: str, asked: argparse.Namespace, listener: _Rows) -> None:
    file, _, factory = CASES[name].get(asked.size, CASES[name]["large"]).partition(":")
    settings = ModelSettings(
        run=RunSettings(memory=False, tune=asked.tune, timeout_s=asked.timeout, against=asked.against),
        budget=asked.budget,
        most=asked.most,
        minutes=asked.model_minutes,
        jobs=asked.jobs,
        compiled=not asked.no_compile,
        rounds=asked.rounds,
        proof_s=asked.proof_minutes * 60.0,
    )
    asked.packages.mkdir(parents=True, exist_ok=True)
    try:
        outcome = work_on_file(MODELS / file, factory, _package(name, asked), settings, asked.home, listener)
    except KernelwrightError as error:
        listener.add(ENDED, summary=f"{error.what} {error.mend}", failed=True)
        return
    listener.add(ENDED, **_all(outcome))


def _all(outcome: Outcome) -> dict[str, Any]:
    kept = {"kept": [one.name for one in outcome.operators if one.kept], "expected": outcome.expected}
    taken = {"taken_out": {one.name: one.taken_out for one in outcome.operators if one.taken_out}}
    return {"summary": summary(outcome), **kept, **taken, **_figures(outcome.proof, outcome.ratios, outcome.capture.weights)}


def _autotune(name: str, asked: argparse.Namespace, listener: _Rows) -> None:
    """Time a package's model under max-autotune, which compiles for minutes, beside eager."""
    file, _, factory = CASES[name].get(asked.size, CASES[name]["large"]).partition(":")
    folder, limit_s = _package(name, asked), asked.proof_minutes * 60.0
    model = f"{MODELS / file}:{factory}"
    proof, found = prove_again(folder, model, asked.rounds, compiled=False, max_autotune=True, limit_s=limit_s)
    weights = Outcome.model_validate_json((folder / "report.json").read_text()).capture.weights
    listener.add(TUNED, summary=proof.what or "timed under max-autotune", **_figures(proof, found, weights))


def _figures(proof: Proof, found: Sequence[Ratio], weights: dict[str, float]) -> dict[str, Any]:
    medians = {
        way: {name: sorted(each)[len(each) // 2] for name, each in times.items()} for way, times in proof.times.items() if way in WAYS
    }
    return {
        "device": resolve_target("").title if medians else "",
        "holds": proof.holds,
        "hits": proof.hits,
        "misses": proof.misses,
        "breaks": proof.breaks,
        "weighted_us": {way: sum(weights[name] * us for name, us in each.items()) for way, each in medians.items()},
        "medians_us": medians,
        "ratios": [one.model_dump(mode="json") for one in found],
        "notes": list(proof.notes),
    }


def _asked(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of rows, JSON lines")
    parser.add_argument("--size", choices=("small", "large", "full"), default="large")
    parser.add_argument("--only", nargs="*", choices=tuple(CASES), help="these models alone")
    parser.add_argument("--budget", type=int, default=3, help="evaluations an operator, on average")
    parser.add_argument("--most", type=int, default=4, help="operators of a model")
    parser.add_argument("--tune", type=int, default=8)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds of a phase of an evaluation; less is less interpreting")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--model-minutes", type=float, default=2.0, help="wall time of a model's operators; 0: no limit")
    parser.add_argument("--proof-minutes", type=float, default=4.0, help="wall time of one proof, compiling it too")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin no further model after so many; 0: no limit")
    parser.add_argument("--jobs", type=int, default=0, help="operators worked on at once; 0: one for every four cores, four at most")
    parser.add_argument("--against", choices=("better", "eager"), default="better", help="what an operator by itself must be faster than")
    parser.add_argument("--no-compile", action="store_true", help="eager alone")
    parser.add_argument("--max-autotune", action="store_true", help="then time each package in that mode, too: minutes of compiling")
    parser.add_argument("--packages", type=Path, default=Path("whole_models"), help="folder of the packages")
    parser.add_argument("--home", type=Path, default=default_home())
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
