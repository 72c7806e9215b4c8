"""Compiles one operator's first choices in this process, for `benchmarks.wild.compiles`, and the row that it fills."""

from __future__ import annotations

import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.lab.compiling import Compiler
from tools.codegen import OperatorGraph, emit, trace
from tools.cost.choice import Choice
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import DEFAULT_POLICY, Problem, Record


class CompiledChoice(Record):
    """One choice."""

    made: str
    kernels: int = 0
    shared_kib: float = 0.0
    """The most that a kernel of it takes of a block's shared memory."""
    spill_bytes: int = 0
    """The most that a kernel of it spills."""
    unfollowed: bool = False
    """Whether its host code launched nothing that could be recorded without a device."""
    why: str = ""
    """What the compiler said; empty where everything compiles."""


class CompiledRow(Record):
    """One operator."""

    operator: str
    why: str = ""
    """Why there is nothing; empty where there is."""
    choices: tuple[CompiledChoice, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether something did not come to its end."""
        return bool(self.why) or any(one.why for one in self.choices)

    @property
    def line(self) -> str:
        """The operator in a line."""
        each = [one.why or f"{one.kernels} kernels, {one.shared_kib:.0f} KiB, {one.spill_bytes} B spilled" for one in self.choices]
        return f"{self.operator}: {self.why or '; '.join(each) or 'no choice'}"


def serve(channel: Connection, name: str, file: Path, device: str, most: int) -> None:
    """Send the row as JSON; what goes wrong before there is a source is in it, too."""
    try:
        row = compiled(name, file, device, most)
    except Exception as error:
        row = CompiledRow(operator=name, why=_said(error))
    channel.send(row.model_dump_json())


def compiled(name: str, file: Path, device: str, most: int) -> CompiledRow:
    """Trace, choose and write, and only then let the device's stand-in take this process."""
    sheet = load_sheet(device)
    problem = load_problem(file, DEFAULT_POLICY)
    graph = trace(problem)
    if graph.blocked:
        return CompiledRow(operator=name, why="; ".join(graph.blocked)[:300])
    choices = modelled_choices(graph, sheet, problem.policy, most=most)
    compiler = Compiler(sheet)
    return CompiledRow(operator=name, choices=tuple(_made(compiler, problem, graph, choice) for choice in choices))


def _made(compiler: Compiler, problem: Problem, graph: OperatorGraph, choice: Choice) -> CompiledChoice:
    row = CompiledChoice(made=choice.made)
    try:
        # a graph holds the same kernels, and is captured on a device alone
        source = emit(problem, graph, choice.schedule.model_copy(update={"captured": False})).source
        with tempfile.TemporaryDirectory(prefix="compiles-") as scratch:
            made = compiler.compile(problem, source, Path(scratch))
    except Exception as error:
        return row.model_copy(update={"why": _said(error)})
    shared = max((one.shared_bytes for one in made.kernels), default=0) / 1024
    spilled = max((one.spill_bytes for one in made.kernels), default=0)
    unfollowed = not made.launches
    return row.model_copy(update={"kernels": len(made.kernels), "shared_kib": shared, "spill_bytes": spilled, "unfollowed": unfollowed})


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
