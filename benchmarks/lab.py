"""A fast evaluator for the built-in coder's own kernels, which need no walls: compiled on many cores, judged by one process a GPU.

`Lab` serves it to other processes of this machine, which ask through `benchmarks.lab_pool.LabPool`. Each source is judged once, for all
who ask for it, and kept in a file: the next lab on the same file knows it. What the evaluator's sandbox, battery and clocks are for is
not there: a comparison of search methods needs none of it, a claim about a kernel does.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from benchmarks import lab_device
from benchmarks.compiling import Compiler, Made
from benchmarks.kept_rows import KeptRows
from benchmarks.lab_device import Judged
from benchmarks.trusted import TOLERANCE
from tools.errors import MachineError
from tools.evaluation.statistics import sample, speedup
from tools.hardware import load_sheet
from tools.hardware.detect import device_title
from tools.hardware.devices import visible_devices
from tools.records import Correctness, Evaluation, OutputError, Problem, Tier, Timing, Verdict, content_hash

LIMIT_S = 120.0
"""What one answer of the device's process may take; torch.compile of a sample operator takes about ten seconds."""
_compiler: Compiler | None = None


class Lab:
    """Judges sources on the GPUs that this process may use, all of one problem on the same one, and remembers what came of them."""

    def __init__(self, store: Path, target: str, *, device: str = "cuda", compilers: int = 4) -> None:
        """Keep results in the file `store`, one JSON line each; `device` is `cuda`, or `cpu` for Triton's interpreter."""
        self.title = (device_title() or "") if device == "cuda" else "the interpreter on a CPU"
        self._kept = KeptRows(store)
        self._known: dict[str, Future[Any]] = {}
        for row in self._kept.rows:
            self._known[row["key"]] = _done(row["value"])
        self._folder = tempfile.TemporaryDirectory(prefix="kernelwright-lab-")
        scratch = Path(self._folder.name)
        cache = {"TRITON_CACHE_DIR": str(scratch / "cache")}
        self._compilers = ProcessPoolExecutor(
            compilers, multiprocessing.get_context("spawn"), initializer=_make_compiler, initargs=(target, cache)
        )
        common = cache | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
        if device == "cpu":
            places = [{"TRITON_INTERPRET": "1"}]
        else:
            places = [{"CUDA_VISIBLE_DEVICES": str(index), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"} for index in visible_devices()]
        self._devices = [DeviceProcess(device, target, scratch / f"sources{number}", common | place) for number, place in enumerate(places)]
        self._place_of: dict[str, int] = {}
        self._turn = threading.Lock()
        self._listener = Listener(str(scratch / "socket"), "AF_UNIX", backlog=64)
        self._versions = {name: version(name) for name in ("torch", "triton")} | {"python": sys.version.split()[0]}
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where others reach it."""
        return str(self._listener.address)

    def evaluation(self, problem: Problem, source: str, stage: str) -> Evaluation:
        """Judge a source; another stage is another measurement."""
        key = content_hash(problem.id, source, stage)
        kept = self._once(key, lambda: self._judge(problem, source).model_dump(mode="json"))
        return Evaluation.model_validate(kept)

    def baselines(self, problem: Problem) -> dict[str, list[float]]:
        """Time eager and torch.compile, once; microseconds."""
        return dict(self._once(content_hash(problem.id, "baselines"), lambda: self._reference(problem)))

    def close(self) -> None:
        """End every process and remove the sources."""
        self._listener.close()
        self._compilers.shutdown(cancel_futures=True)
        for device in self._devices:
            device.end()
        self._folder.cleanup()

    def _once(self, key: str, work: Any) -> Any:
        with self._turn:
            known = self._known.get(key)
            mine: Future[Any] = self._known.setdefault(key, Future())
        if known is not None:
            return known.result()
        try:
            value = work()
        except BaseException as error:
            with self._turn:
                del self._known[key]
            mine.set_exception(error)
            raise
        with self._turn:
            self._kept.add({"key": key, "value": value})
        mine.set_result(value)
        return value

    def _judge(self, problem: Problem, source: str) -> Evaluation:
        scratch = Path(self._folder.name) / "compiled" / content_hash(problem.id, source)
        made = self._compilers.submit(_compile, problem.model_dump_json(), source, scratch).result()
        if isinstance(made, str):
            return Evaluation(candidate="", verdict=Verdict.BUILD_FAILED, notes=(made,), versions=self._versions)
        baselines = self.baselines(problem)
        found = self._on_device(problem, source)
        if found is None:
            return Evaluation(candidate="", verdict=Verdict.TIMED_OUT, versions=self._versions)
        if found.verdict is not Verdict.PASS:
            return Evaluation(candidate="", verdict=found.verdict, notes=(found.note,), versions=self._versions, gpu_seconds=found.seconds)
        timing = Timing(
            tier=Tier.IN_PROCESS,
            candidate=sample(found.times_us),
            baselines={name: sample(times) for name, times in baselines.items()},
            speedups={name: speedup(times, found.times_us) for name, times in baselines.items()},
            device=self.title,
        )
        return Evaluation(
            candidate="",
            verdict=Verdict.PASS,
            correctness=_correctness(problem),
            timing=timing,
            launches=made.launches,
            kernels=made.kernels,
            notes=("Judged by the lab: no sandbox, one input, one clock.",),
            versions=self._versions,
            gpu_seconds=found.seconds,
        )

    def _reference(self, problem: Problem) -> dict[str, tuple[float, ...]]:
        times = self._on_device(problem, "")
        if not isinstance(times, dict):
            raise MachineError(
                f"The lab's device gave no time for the reference of {problem.name}.", "Run the problem's file by itself there."
            )
        return times

    def _on_device(self, problem: Problem, source: str) -> Any:
        """Ask the process of the problem's device; one that may have been broken is replaced, and None says that there was no answer."""
        with self._turn:
            place = self._place_of.setdefault(problem.id, len(self._place_of) % len(self._devices))
        return self._devices[place].ask(problem.model_dump_json(), source)

    def _accept(self) -> None:
        while True:
            try:
                channel = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(channel,), daemon=True).start()

    def _answer(self, channel: Connection) -> None:
        with channel, contextlib.suppress(EOFError, OSError):
            text, source, stage = channel.recv()
            problem = Problem.model_validate_json(text)
            try:
                channel.send(self.evaluation(problem, source, stage).model_dump_json() if source else self.baselines(problem))
            except Exception as error:
                channel.send(RuntimeError(f"{type(error).__name__}: {error}"))


class DeviceProcess:
    """The process that uses one device; started when it is first asked, and again after it has died or hung."""

    def __init__(self, device: str, target: str, scratch: Path, environment: Mapping[str, str]) -> None:
        """Start nothing yet."""
        self._start_with = (device, target, str(scratch))
        scratch.mkdir()
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._process: Any = None
        self._channel: Connection | None = None

    def ask(self, problem: str, source: str) -> Any:
        """Answer one question at a time; None where it died or took longer than `LIMIT_S`."""
        with self._lock:
            channel = self._channel or self._start()
            try:
                channel.send((problem, source))
                found = channel.recv() if channel.poll(LIMIT_S) else None
            except (EOFError, OSError):
                found = Judged(Verdict.CRASHED, note="The process that ran it died.", poisoned=True)
            if found is None or (isinstance(found, Judged) and found.poisoned):
                self._stop()
            return found

    def end(self) -> None:
        """End it."""
        with self._lock:
            self._stop()

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        self._process = context.Process(target=lab_device.serve, args=(theirs, *self._start_with), daemon=True)
        with _with_variables(self._environment):
            self._process.start()
        theirs.close()
        self._channel = mine
        return mine

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._channel is not None:
            self._channel.close()
        self._process = self._channel = None


def _make_compiler(target: str, variables: Mapping[str, str]) -> None:
    """In a compiling process: see no device and take its place."""
    global _compiler  # noqa: PLW0603 - one for the process's life
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", **variables}
    _compiler = Compiler(load_sheet(target))


def _compile(problem: str, source: str, scratch: Path) -> Made | str:
    """In a compiling process: compile, or say why not."""
    assert _compiler is not None
    try:
        return _compiler.compile(Problem.model_validate_json(problem), source, scratch)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


def _correctness(problem: Problem) -> Correctness:
    """What the lab made sure of: a bound, not a figure."""
    bound = {"relative_l2": TOLERANCE, "limit_relative_l2": TOLERANCE, "worst_row": TOLERANCE, "limit_worst_row": float("inf")}
    own = {"reference_relative_l2": 0.0, "reference_worst_row": 0.0}
    outputs = tuple(OutputError(output=f"output{place}", **bound, **own) for place in range(len(problem.abi.outputs)))
    return Correctness(outputs=outputs, calls=1, sizes=("as written",), executor="gpu")


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


@contextlib.contextmanager
def _with_variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Have a process that is started here begin with these variables."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ |= wanted
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
