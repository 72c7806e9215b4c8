"""Writes down every kernel that the generator emits for suites of problems, and compares two such folders byte by byte.

A change of the generator that should not change what it emits is held to that: dump before it, dump after it, compare.

Usage:
    python -m scripts.emitted_kernels dump SUITE… OUT [--eval-mode] [--choices N] [--device h200] [--jobs N]
    python -m scripts.emitted_kernels compare BEFORE AFTER [--renamed old=new …]

A SUITE is a KernelBench clone, one of its levels, or a folder of operator files. OUT holds, for each problem, the source of its initial
schedule and of the cost model's first choices, the choices themselves, and a file `.failed` where nothing was written. A dump that was
stopped goes on where it was. `--eval-mode` also writes the problems that have a batch norm with their modules in eval mode.
`compare` prints the files that differ and exits with 1 where there is one; names that were changed on purpose are given as old=new.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.coder.modelled import choices_of
from agents.coder.traced import traced_graph
from benchmarks.kernelbench.eval_suite import NORMS, in_eval_mode
from tools.codegen import LoweringError, Schedule, emit, initial_schedule
from tools.errors import UserError
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.problems.suite import open_suite
from tools.records import Problem

DONE = ".done"
"""Ending of the file that says a problem is dumped."""
ONE_PROCESS = 8
"""Problems that one process dumps before a fresh one takes its place: tracing leaves memory behind."""


@dataclass(frozen=True)
class Job:
    """One problem to dump."""

    name: str
    """E.g. `level1-31_ELU`: what its files begin with."""
    file: Path
    out: Path
    device: str
    choices: int
    """Choices of the cost model that are written, at most."""


def main() -> None:
    """Dump or compare."""
    given = _parser().parse_args()
    if given.does == "compare":
        differing = differences(given.before, given.after, dict(given.renamed))
        print("\n".join(differing) or f"{len(_files(given.after))} files are the same")
        sys.exit(bool(differing))
    try:
        jobs = list(listed(given.suites, given.out, given.device, given.choices, eval_mode=given.eval_mode))
    except UserError as error:
        sys.exit(str(error))
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=ONE_PROCESS) as pool:
        for said in pool.imap_unordered(dump, jobs):
            print(said, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_subparsers(dest="does", required=True)
    writes = does.add_parser("dump", help="write down what is emitted")
    writes.add_argument("suites", type=Path, nargs="+", metavar="SUITE")
    writes.add_argument("out", type=Path)
    writes.add_argument("--eval-mode", action="store_true", help="also modules with batch norm in eval mode")
    writes.add_argument("--choices", type=int, default=5, help="of the cost model, at most, a problem (default: 5)")
    writes.add_argument("--device", default="h200", help="whose kernels the cost model chooses (default: h200)")
    writes.add_argument("--jobs", type=int, default=1, help="processes side by side (default: 1)")
    reads = does.add_parser("compare", help="say which files of two dumps differ")
    reads.add_argument("before", type=Path)
    reads.add_argument("after", type=Path)
    reads.add_argument("--renamed", type=_renaming, nargs="+", default=[], metavar="OLD=NEW")
    return parser


def _renaming(word: str) -> tuple[str, str]:
    old, equals, new = word.partition("=")
    if not (old and equals and new):
        raise argparse.ArgumentTypeError(f"{word!r} is not written as old=new")
    return old, new


def listed(suites: Iterable[Path], out: Path, device: str, choices: int, *, eval_mode: bool) -> Iterable[Job]:
    """Yield the problems of suites, and their copies in eval mode, which lie under `out`; raises UserError where a suite is none."""
    for suite in suites:
        found = open_suite(suite)
        for item in found.items:
            name = item.name.replace("/", "-") if item.level else f"{found.folder.name}-{item.name}"
            yield Job(name, item.file, out, device, choices)
            text = item.file.read_text()
            if eval_mode and NORMS in text:
                copy = out / "eval-mode" / item.file.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(in_eval_mode(text))
                yield Job(f"eval-{name}", copy, out, device, choices)


def dump(job: Job) -> str:
    """Write what is emitted for one problem and say how much that is; a problem that fails is said, too."""
    done = job.out / f"{job.name}{DONE}"
    if done.exists():
        return f"{job.name}: kept"
    try:
        said = _dump(job)
    except Exception as error:
        # whatever it is, the other problems are dumped, and the comparison sees it
        said = f"{type(error).__name__}: {error}"
        (job.out / f"{job.name}.failed").write_text(said)
    done.touch()
    return f"{job.name}: {said}"


def _dump(job: Job) -> str:
    job.out.mkdir(parents=True, exist_ok=True)
    problem = load_problem(job.file)
    choices = choices_of(problem, load_sheet(job.device))
    expected = (f"{choice.us!r} {choice.schedule.model_dump_json()}\n" for choice in choices)
    (job.out / f"{job.name}.choices").write_text("".join(expected))
    schedules = {"initial": initial_schedule(traced_graph(problem))}
    schedules |= {f"choice{place}": choice.schedule for place, choice in enumerate(choices[: job.choices])}
    for word, schedule in schedules.items():
        (job.out / f"{job.name}.{word}.py").write_text(emitted(problem, schedule))
    return f"{len(schedules)} sources"


def emitted(problem: Problem, schedule: Schedule) -> str:
    """Emit a schedule's source, with what is said about it; where it cannot be emitted, the reason."""
    try:
        emission = emit(problem, traced_graph(problem), schedule)
    except LoweringError as error:
        return f"# not emitted: {error}\n"
    return "\n".join([emission.source, *(f"# {note}" for note in emission.notes), ""])


def differences(before: Path, after: Path, renamed: Mapping[str, str]) -> list[str]:
    """List the files that are not the same in two dumps, once the names of the first are changed as given."""
    mine, other = _files(before), _files(after)
    changed = [f"differs: {name}" for name in sorted(mine & other) if _text(before / name, renamed) != _text(after / name, {})]
    return [
        *changed,
        *(f"only before: {name}" for name in sorted(mine - other)),
        *(f"only after: {name}" for name in sorted(other - mine)),
    ]


def _files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_file() and path.suffix != DONE}


def _text(file: Path, renamed: Mapping[str, str]) -> str:
    text = file.read_text()
    for old, new in renamed.items():
        text = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, text)
    return text


if __name__ == "__main__":
    main()
