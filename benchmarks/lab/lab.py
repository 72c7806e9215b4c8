"""A fast evaluator for the built-in coder's own kernels, which need no walls: compiled on many cores, judged in turn on each GPU.

`Lab` serves it to other processes of this machine, which ask through `benchmarks.lab.pool.LabPool`. Each source is judged once, for all
who ask for it, and kept in a file: the next lab on the same file knows it. Errors and limits are those of the evaluator's oracle, on inputs
as the problem makes them and, where it is not large, on hard ones. What the evaluator does beyond that (`benchmarks.lab.device` lists it:
no walls, one process for many candidates, one clock, few calls, one size) is not there: a comparison of search methods needs none of it, a
claim about a kernel does.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from importlib.metadata import version
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.kept_rows import KeptRows
from benchmarks.lab import compiling
from benchmarks.lab import device as lab_device
from benchmarks.lab.compiling import Made
from benchmarks.lab.device import Judged
from benchmarks.lab.devices import keep_for, open_device
from benchmarks.lab.process import HelperDied, HelperPool, end_all
from benchmarks.lab.truth import plan_calls
from tools.errors import MachineError
from tools.evaluation.supervisor.checking.correctness import complaint, size_of, worst_errors
from tools.evaluation.supervisor.timed.statistics import sample, speedup
from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.hardware.detect import device_title
from tools.hardware.devices import visible_devices
from tools.records import Correctness, Evaluation, Packing, Problem, Seeds, Tier, Timing, Verdict, content_hash

COMPILE_S = 300.0
"""What compiling one source may take."""
TRUTH_S = 900.0
"""What making a problem's inputs and running its oracle may take, waiting for the device included."""
JUDGE_S = 300.0
"""What one candidate may take, waiting included; `device_lock.HOLD_S` bounds its time on the device."""
REFERENCE_S = 300.0
"""What torch.compile may take for a reference, waiting included; longer, and the baseline is left out."""
HOW = "Judged by the lab: no sandbox, one size, few calls, one clock."


class References(NamedTuple):
    """How fast a reference is by itself."""

    times: dict[str, list[float]]
    """`eager` and, where it could be timed, `compile`; microseconds."""
    notes: tuple[str, ...] = ()


class Lab:
    """Judges sources on the GPUs that this process may use, all of one problem on the same one, and remembers what came of them."""

    def __init__(
        self, store: Path, target: str, *, device: str = "cuda", compilers: int = 4, references: int = 4, judges: int = 1, kept: int = 0
    ) -> None:
        """Keep results in the file `store`, one JSON line each; `device` is `cuda`, or `cpu` for Triton's interpreter.

        `compilers` processes compile sources; for each device `references` time baselines, of `torch.compile` too, and `judges` judge.
        While something runs on a device, `kept` of this process's cores run nothing else; none where that would leave too few.
        """
        self.title = (device_title() or "") if device == "cuda" else "the interpreter on a CPU"
        self._executor: Literal["gpu", "interpreter"] = "gpu" if device == "cuda" else "interpreter"
        self._kept = KeptRows(store)
        self._known: dict[str, Future[Any]] = {}
        for row in self._kept.rows:
            self._known[row["key"]] = _done(row["value"])
        self._folder = tempfile.TemporaryDirectory(prefix="kernelwright-lab-", ignore_cleanup_errors=True)
        scratch = Path(self._folder.name)
        cache = {"TRITON_CACHE_DIR": str(scratch / "cache")}
        self._compilers = HelperPool(compilers, compiling.serve, (target,), cache | {"CUDA_VISIBLE_DEVICES": ""})
        # many processes share the cores
        common = cache | {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "4")}
        if device == "cpu":
            places = [{"TRITON_INTERPRET": "1"}]
        else:
            places = [{"CUDA_VISIBLE_DEVICES": str(index), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"} for index in visible_devices()]
        kept_cores = keep_for(kept, len(places))
        self._devices = [
            open_device(device, target, scratch / f"device{number}", common | place, references, judges, kept_cores[number])
            for number, place in enumerate(places)
        ]
        self._place_of: dict[str, int] = {}
        self._calls_of: dict[str, tuple[CallSpec, ...]] = {}
        self._turn = threading.Lock()
        self._listener = Listener(str(scratch / "socket"), "AF_UNIX", backlog=256)
        self._versions = {name: version(name) for name in ("torch", "triton")} | {"python": sys.version.split()[0]}
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where others reach it."""
        return str(self._listener.address)

    def evaluation(self, problem: Problem, source: str, stage: str) -> Evaluation:
        """Judge a source; another stage is another measurement. What says nothing about the source is not kept."""
        # a row of a lab that held sources against eager alone has another key
        key = content_hash(problem.id, source, stage, "oracle")
        found = self._once(
            key,
            lambda: self._timed(problem, source).model_dump(mode="json"),
            lasts=lambda value: value["verdict"] != Verdict.INFRASTRUCTURE,
        )
        return Evaluation.model_validate(found)

    def baselines(self, problem: Problem) -> References:
        """Time eager and torch.compile, once."""
        key = content_hash(problem.id, "baselines")
        # memory that others had at the time says nothing about the next time
        kept = self._once(key, lambda: self._reference(problem)._asdict(), lasts=lambda value: "OutOfMemory" not in str(value))
        # rows of earlier labs hold the times alone
        return References(kept["times"], tuple(kept["notes"])) if "notes" in kept else References(dict(kept))

    def close(self) -> None:
        """End every process at once, whatever it is doing, and remove the sources; who still waits for an answer gets an error."""
        self._listener.close()
        end_all([self._compilers, *(pool for device in self._devices for pool in (*device.judges, device.references))])
        self._folder.cleanup()

    def _once(self, key: str, work: Callable[[], Any], lasts: Callable[[Any], bool] = lambda value: True) -> Any:
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
            if not lasts(value):
                del self._known[key]
            else:
                self._kept.add({"key": key, "value": value})
        mine.set_result(value)
        return value

    def _timed(self, problem: Problem, source: str) -> Evaluation:
        """Judge, and say how long it took."""
        began = time.monotonic()
        phases: dict[str, float] = {}
        found = self._judge(problem, source, phases)
        return found.model_copy(update={"seconds": time.monotonic() - began, "phase_seconds": phases})

    def _judge(self, problem: Problem, source: str, phases: dict[str, float]) -> Evaluation:
        began = time.monotonic()
        made = self._compiled(problem, source)
        phases["build"] = time.monotonic() - began
        if isinstance(made, Judged):
            return self._failed(problem, made)
        found = self._on_device(problem, source)
        if found.verdict is Verdict.INFRASTRUCTURE and found.poisoned:
            # once more in a new process, which keeps no memory
            found = self._on_device(problem, source)
        phases["check"] = time.monotonic() - began - phases["build"]
        if found.verdict is not Verdict.PASS:
            return self._failed(problem, found)
        # waited for at the end alone: it is compiled while the candidate is judged
        baselines = self.baselines(problem)
        timing = Timing(
            tier=Tier.IN_PROCESS,
            candidate=sample(found.times_us),
            baselines={name: sample(times) for name, times in baselines.times.items()},
            speedups={name: speedup(times, found.times_us) for name, times in baselines.times.items()},
            device=self.title,
            packing=Packing(time=sample(found.packing_us), tier=Tier.IN_PROCESS) if found.packing_us else None,
        )
        return self._evaluation(
            problem,
            found,
            timing=timing,
            launches=made.launches,
            kernels=made.kernels,
            notes=(HOW, *found.notes, *baselines.notes),
        )

    def _compiled(self, problem: Problem, source: str) -> Made | Judged:
        scratch = Path(self._folder.name) / "compiled" / content_hash(problem.id, source)
        with self._compilers.borrowed() as helper:
            try:
                made: Made | str = helper.ask((problem.model_dump_json(), source, str(scratch)), COMPILE_S)
            except HelperDied as death:
                verdict = Verdict.TIMED_OUT if death.hung else Verdict.BUILD_FAILED
                return Judged(verdict, notes=(f"The process that compiled it {death}.",))
        return Judged(Verdict.BUILD_FAILED, notes=(made,)) if isinstance(made, str) else made

    def _failed(self, problem: Problem, found: Judged) -> Evaluation:
        wrong = [(call, error) for call in found.calls for error in call.outputs if not error.passed]
        reasons = [complaint(error, f"{size_of(problem)}, inputs “{call.group}”") for call, error in wrong[:3]]
        return self._evaluation(problem, found, notes=(*reasons, HOW, *found.notes))

    def _evaluation(self, problem: Problem, found: Judged, **more: Any) -> Evaluation:
        correctness: Correctness | None = None
        seeds: tuple[Seeds, ...] = ()
        if found.calls:
            judged = len({call.group for call in found.calls} - {lab_device.AFTER})
            correctness = Correctness(outputs=worst_errors(found.calls), calls=judged, sizes=(size_of(problem),), executor=self._executor)
            sitting = CallPlan(problem="", shake=None, calls=self._calls(problem))
            seeds = (sitting.published("check", size_of(problem)),)
        return Evaluation(
            candidate="",
            verdict=found.verdict,
            correctness=correctness,
            seeds=seeds,
            versions=self._versions,
            gpu_seconds=found.seconds,
            **more,
        )

    def _on_device(self, problem: Problem, source: str) -> Judged:
        """Have the problem's process judge a source; one that may have been broken is replaced."""
        place = self._place(problem)
        judges = self._devices[place % len(self._devices)].judges
        with judges[place // len(self._devices) % len(judges)].borrowed() as helper:
            try:
                found = helper.ask((problem.model_dump_json(), source, self._calls(problem)), TRUTH_S)
            except HelperDied as death:
                return Judged(Verdict.INFRASTRUCTURE, notes=(f"The process that ran the reference {death}.",), poisoned=True)
            try:
                found = helper.more(JUDGE_S) if found == lab_device.READY else found
            except HelperDied as death:
                return Judged(Verdict.TIMED_OUT if death.hung else Verdict.CRASHED, notes=(f"The process that ran it {death}.",))
            assert isinstance(found, Judged)
            if found.poisoned:
                helper.stop()
            return found

    def _reference(self, problem: Problem) -> References:
        device = self._devices[self._place(problem) % len(self._devices)]
        with device.references.borrowed() as helper:
            try:
                eager = helper.ask((problem.model_dump_json(), self._calls(problem)[0]), TRUTH_S)
            except HelperDied as death:
                eager = f"the process {death}"
            if isinstance(eager, str):
                helper.stop()
                what = f"The lab's device gave no time for the reference of {problem.name}: {eager}."
                raise MachineError(what, "Run the problem's file by itself there.")
            try:
                compiled = helper.more(REFERENCE_S)
            except HelperDied as death:
                compiled = f"its process {death}"
            if isinstance(compiled, str):
                # memory that a failure has left behind goes with it
                helper.stop()
                return References({"eager": list(eager)}, (f"torch.compile was not timed: {compiled}",))
        return References({"eager": list(eager), "compile": list(compiled)})

    def _place(self, problem: Problem) -> int:
        with self._turn:
            return self._place_of.setdefault(problem.id, len(self._place_of))

    def _calls(self, problem: Problem) -> tuple[CallSpec, ...]:
        """Draw a problem's calls once, so that all of its candidates are held against the same."""
        with self._turn:
            return self._calls_of.setdefault(problem.id, plan_calls(problem))

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
                channel.send(self.evaluation(problem, source, stage).model_dump_json() if source else tuple(self.baselines(problem)))
            except Exception as error:
                channel.send(RuntimeError(f"{type(error).__name__}: {error}"))


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future
