"""Compiles what our own coder wrote for a target, in this process and without walls, and says what the compiler made of it."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

from tools.hardware import load_sheet
from tools.records import HardwareSheet, KernelResources, Launch, Problem, Record


class Made(Record):
    """What the compiler made of one source."""

    launches: tuple[Launch, ...]
    kernels: tuple[KernelResources, ...]


class Compiler:
    """Takes the place of the device for the rest of this process; what is compiled goes to Triton's cache, for those who run it."""

    def __init__(self, sheet: HardwareSheet) -> None:
        """Compile for the device of `sheet`, which need not be there."""
        from tools.evaluation.untrusted import gpu_stand_in
        from tools.evaluation.untrusted.launch_recorder import Recorder

        self._sheet = sheet
        gpu_stand_in.install(sheet)
        self._recorder = Recorder(sheet)
        self._recorder.install()

    def compile(self, problem: Problem, source: str, scratch: Path) -> Made:
        """Import a source, which is kept in `scratch`, and call it on tensors without contents; what the compiler raises is raised.

        Host code that needs a device, such as the capture of a graph, is followed no further: nothing is known then of its launches.
        """
        from tools.evaluation.untrusted import loading
        from tools.evaluation.untrusted.builder import _dry_run, _is_cause
        from tools.machine_code.resources import read_resources

        scratch.mkdir(parents=True, exist_ok=True)
        self._recorder.binaries.clear()
        self._recorder.failure = None
        module = loading.import_candidate(source, scratch)
        try:
            _dry_run(module, problem.abi, self._recorder)
        except Exception as error:
            if _is_cause(self._recorder.failure, error):
                raise
            return Made(launches=(), kernels=())
        found = self._recorder.binaries.values()
        kernels = tuple(read_resources(one.code, one.name, self._sheet.arch, one.shared_bytes) for one in found)
        return Made(launches=tuple(self._recorder.launches), kernels=kernels)


def serve(channel: Connection, target: str) -> None:
    """In a process that sees no device: answer (problem, source, scratch) with a Made, or with why it does not compile."""
    compiler = Compiler(load_sheet(target))
    while True:
        problem, source, scratch = channel.recv()
        found: Made | str
        try:
            found = compiler.compile(Problem.model_validate_json(problem), source, Path(scratch))
        except Exception as error:
            found = f"{type(error).__name__}: {str(error)[:300]}"
        channel.send(found)
