"""Tensors that stay with the oracle server, and those in shared memory: a runner and a judgement are the same with both."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import torch

from tools.errors import MachineError
from tools.evaluation.processes.oracle_client import OracleClient
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.checking import device_store_client
from tools.evaluation.supervisor.checking.carriers import NONE
from tools.evaluation.supervisor.checking.device_store_client import DeviceStoreClient, device_stores, shared
from tools.evaluation.supervisor.checking.runner_client import RunError, RunnerClient
from tools.evaluation.trusted import timekeeper
from tools.evaluation.trusted.timekeeper import Timekeeper
from tools.evaluation.wire.byte_views import same_bytes
from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.evaluation.wire.chain_board import BOARD_BYTES, VALUES_BYTES, ChainBoard, Word, packed
from tools.evaluation.wire.channel import Command, Load, Order, Reply, State
from tools.evaluation.wire.distributions import AS_MADE
from tools.evaluation.wire.jobs.inputs import InputsAnswer, InputsJob
from tools.evaluation.wire.jobs.oracle import CallVerdict, OracleAnswer, OracleJob
from tools.evaluation.wire.jobs.runner import RunnerJob
from tools.evaluation.wire.memory import Memory
from tools.evaluation.wire.tensor_store import HostStore
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import Problem, Verdict

OPEN = Load.OPEN
RIGHT = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None
        self.seen = []

    def forward(self, x):
        BODY
"""

INTEGERS = """
import torch


def add_one(x):
    return x + 1


def example_inputs():
    return (torch.arange(9),)
"""

BEST = """
import torch


def best(x):
    return torch.topk(x, 4, dim=-1)


def example_inputs():
    return (torch.rand(64, 16).argsort(dim=-1).float(),)
"""
FEW = """
import torch


def doubled(x):
    return x * 2


def example_inputs():
    return (torch.rand(4),)
"""
LAST_FIRST = (
    "values, order = x.flip(-1).sort(stable=True, descending=True); "
    "return torch.return_types.topk((values[:, :4].clone(), 15 - order[:, :4]))"
)

CALLS = (
    CallSpec(seed=1, distribution=AS_MADE, group=AS_MADE, slots=2),
    CallSpec(seed=2, distribution=AS_MADE, group=AS_MADE, follows=True),
    CallSpec(seed=3, distribution=AS_MADE, group=AS_MADE),
)


class Trial:
    """A plan of calls on one problem, its tensors kept in one of the two ways."""

    def __init__(self, workers: WorkerPool, problem: Problem, store: HostStore | DeviceStoreClient) -> None:
        self.store = store
        self._workers, self._problem = workers, problem
        self._sequence = 0
        self.call_plan = CallPlan(problem=problem.model_dump_json(), shake=None, calls=CALLS)

    def ask(self, phase: str, job: InputsJob | OracleJob) -> bytes:
        """Have a trusted process do something."""
        fds = shared([self.store])
        done = self._workers.ask(phase, job.model_dump_json().encode(), fds, time.monotonic() + 60, -1, problem=self._problem)
        assert done.answer, done.log
        return done.answer

    def make_inputs(self, calls: int = len(CALLS)) -> None:
        """Have the inputs of the first calls made."""
        call_plan = self.call_plan.model_copy(update={"calls": CALLS[:calls]})
        answer = self.ask("inputs", InputsJob(call_plans=(call_plan,), device="cpu", device_stores=device_stores([self.store])))
        assert all(InputsAnswer.model_validate_json(answer).usable[0])

    @contextmanager
    def running(self, body: str, board: Memory | None = None) -> Iterator[RunnerClient]:
        """Talk to a candidate whose forward has this body."""
        job = RunnerJob(abi=self._problem.abi, source=RIGHT.replace("BODY", body), device="cpu", sheet=load_sheet("h200"))
        with RunnerClient(self._workers, job, self.store, time.monotonic() + 60, -1, gpu=False, board=board) as runner:
            yield runner

    def chain(self, runner: RunnerClient, board: Memory, number: int, judged: int, load: Load = OPEN) -> Reply:
        """Have four calls made in a chain, as the timekeeper does, and one of them kept as a call of the plan; with `NONE` none is."""
        values = Memory(VALUES_BYTES)
        self._sequence += 1
        is_open = bool(load & OPEN)
        drawn = runner.draw_chain(random.Random(self._sequence), 1 if is_open else 4, 0 if is_open else judged) + [[]] * (3 * is_open)
        written = packed(drawn, [4])
        values.bytes_at(0, len(written)).data[:] = written
        ChainBoard(board).lay(self._sequence, drawn)
        runner.begin_chain(load)
        timed = Timekeeper(board, values, self._problem.abi, None, "cpu").time(Command(Order.CHAIN, number=5000))
        assert runner.end_chain()
        if judged == NONE:
            runner.collect(None, number=3)
        else:
            runner.collect(number, number=judged)
        return timed

    def feed(self, body: str) -> None:
        """Have a candidate whose forward has this body make every call."""
        self.make_inputs()
        with self.running(body) as runner:
            for number, call in enumerate(CALLS):
                for run in range(call.slots):
                    runner.give(number)
                    runner.call(Load.ALL)
                    runner.collect(number, run)

    def judge(self) -> tuple[CallVerdict, ...]:
        """Have all calls judged."""
        job = OracleJob(
            call_plans=(self.call_plan,), skip=((False,) * len(CALLS),), device="cpu", device_stores=device_stores([self.store])
        )
        return OracleAnswer.model_validate_json(self.ask("oracle", job)).calls


@pytest.fixture
def view(workers: WorkerPool) -> Iterator[WorkerPool]:
    """The worker_pool with an oracle server, which is gone afterwards."""
    made = copy.copy(workers)
    made.keeps = True
    made._oracle = OracleClient()
    yield made
    made._oracle.close()


@pytest.fixture(params=["host", "store"])
def trial(request: pytest.FixtureRequest, view: WorkerPool, problem: Problem) -> Iterator[Trial]:
    """One trial a way."""
    store = DeviceStoreClient(view, problem, -1) if request.param == "store" else HostStore(problem.abi, CALLS)
    yield Trial(view, problem, store)
    store.close()


def test_a_right_kernel_is_right(trial: Trial) -> None:
    """Inputs reach the runner, outputs the oracle: of fresh calls, of one that follows another, and of two runs."""
    trial.feed("return x * 2")
    found = trial.judge()
    assert [call.call for call in found] == [0, 1, 2]
    assert all(error.passed for call in found for error in call.outputs)
    assert all(call.repeat_agrees for call in found)


def test_an_answer_kept_from_the_call_before_is_wrong(trial: Trial) -> None:
    """Each call is judged by its own inputs, the one that differs in a few elements, too."""
    trial.feed("self.kept = x * 2 if self.kept is None else self.kept; return self.kept.clone()")
    assert [all(error.passed for error in call.outputs) for call in trial.judge()] == [True, False, False]


def test_changed_elements_reach_the_runner_and_the_judge(trial: Trial) -> None:
    """Elements change between calls, and a call that is kept is judged with all changes up to it, right or wrong."""
    trial.make_inputs(calls=1)
    for body, right in (("return x * 2", True), ("self.kept = x * 2 if self.kept is None else self.kept; return self.kept.clone()", False)):
        chance = random.Random(7)
        with trial.running(body) as runner:
            runner.give(0)
            runner.call(Load.ALL)
            runner.collect(0)
            runner.collect(0, 1)
            for number in (1, 2):
                for _ in range(3):
                    changed = runner.patch(chance)
                    runner.call(Load.PATCHES, changed)
                assert changed == 48
                runner.collect(number)
        assert [all(error.passed for error in call.outputs) for call in trial.judge()] == [True, right, right]


def test_a_few_elements_change_for_as_long_as_there_are_calls(view: WorkerPool, tmp_path: Path) -> None:
    """Who answers as before once hundreds of changes may have made all elements equal is wrong: they take values that were given."""
    (tmp_path / "few.py").write_text(FEW)
    problem = load_problem(tmp_path / "few.py")
    for most, right in ((10_000, True), (250, False)):
        trial = Trial(view, problem, HostStore(problem.abi, CALLS))
        trial.make_inputs(calls=1)
        with trial.running(
            f"self.seen.append(0); self.kept = x * 2 if len(self.seen) < {most} else self.kept; return self.kept.clone()"
        ) as runner:
            runner.give(0)
            for run in range(2):
                runner.call(Load.ALL)
                runner.collect(0, run)
            chance = random.Random(5)
            for number in (1, 2):
                for _ in range(150):
                    runner.call(Load.PATCHES, runner.patch(chance))
                runner.collect(number)
        assert [all(error.passed for error in call.outputs) for call in trial.judge()] == [True, True, right]
        trial.store.close()


def test_changed_elements_that_equal_others_may_stand_in_any_order(view: WorkerPool, tmp_path: Path) -> None:
    """Elements become those of other rows: the reference names the first of equal ones, and who names the last is as right."""
    (tmp_path / "best.py").write_text(BEST)
    problem = load_problem(tmp_path / "best.py")
    trial = Trial(view, problem, HostStore(problem.abi, CALLS))
    for body, right in ((LAST_FIRST, True), (LAST_FIRST.replace("15 - order[:, :4]", "15 - order[:, 1:5]"), False)):
        trial.make_inputs(calls=1)
        with trial.running(body) as runner:
            runner.give(0)
            for run in range(2):
                runner.call(Load.ALL)
                runner.collect(0, run)
            for number in (1, 2):
                runner.call(Load.PATCHES, runner.patch(random.Random(number)))
                runner.collect(number)
        found = trial.judge()
        assert any((row.unique().numel() < 16) for row in trial.store.input_tensors(1)[0])
        assert [all(error.passed for error in call.outputs) for call in found] == [right] * 3
    trial.store.close()


@pytest.mark.parametrize("judged", [0, 2, 3])
def test_any_call_of_a_chain_is_judged_by_its_own_inputs(trial: Trial, judged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs change before each of its calls; who answers from the call before is found, whichever is chosen."""
    # calls on the host cannot be issued before the gate opens: it is waited for no longer than needed
    monkeypatch.setattr(timekeeper, "HOLD_S", 0.05)
    trial.make_inputs(calls=1)
    for body, right in (("return x * 2", True), ("self.kept, kept = x * 2, self.kept; return self.kept if kept is None else kept", False)):
        board = Memory(BOARD_BYTES)
        with trial.running(body, board) as runner:
            runner.give(0)
            runner.call(Load.ALL)
            runner.collect(0)
            runner.collect(0, 1)
            timed = [trial.chain(runner, board, number, judged, Load(0)) for number in (1, 2)]
        assert [all(error.passed for error in call.outputs) for call in trial.judge()] == [True, right, right]
        assert all(reply.state is State.DONE and reply.late for reply in timed)


def test_chains_that_keep_no_call_leave_the_inputs_right_for_those_that_do(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changed in a chain that was only looked at, or not even that, is in the inputs of the calls that are judged later."""
    monkeypatch.setattr(timekeeper, "HOLD_S", 0.05)
    trial.make_inputs(calls=1)
    board = Memory(BOARD_BYTES)
    with trial.running("return x * 2", board) as runner:
        runner.give(0)
        runner.call(Load.ALL)
        runner.collect(0)
        runner.collect(0, 1)
        for number, judged in ((0, NONE), (1, 2), (0, NONE), (0, NONE), (2, 0)):
            trial.chain(runner, board, number, judged, Load(0))
    assert all(error.passed for call in trial.judge() for error in call.outputs)


def test_a_chain_takes_as_long_as_its_caller_waits(trial: Trial) -> None:
    """The timekeeper's clock, outside of the candidate's process, has what every call took."""
    trial.make_inputs(calls=1)
    board = Memory(BOARD_BYTES)
    with trial.running("import time; time.sleep(0.02); return x * 2", board) as runner:
        runner.give(0)
        runner.call(Load.ALL)
        runner.collect(0)
        assert trial.chain(runner, board, 1, 3).event_us > 4 * 20_000


def test_new_values_are_on_the_board_only_once_the_gate_is_open(trial: Trial) -> None:
    """What a candidate finds there before a call of a chain is what the chain before left."""
    trial.make_inputs(calls=1)
    board = Memory(BOARD_BYTES)
    with trial.running("return x * 2", board) as runner:
        runner.give(0)
        runner.call(Load.ALL)
        runner.collect(0)
        ChainBoard(board).lay(1, runner.draw_chain(random.Random(1), 4, 0))
        runner.begin_chain(Load.OPEN)
        while ChainBoard(board).get(Word.READY) != 1:
            time.sleep(0.001)
        assert not ChainBoard(board).values.any()


def test_outputs_that_change_after_the_call_are_told(trial: Trial) -> None:
    """Work that goes on after forward has returned is a violation with a name of its own."""
    trial.make_inputs(calls=1)
    late = "import threading; out = x * 0; threading.Timer(0.05, lambda: out.copy_(x * 2)).start(); return out"
    with trial.running(late) as runner:
        runner.give(0)
        runner.call(Load.ALL)
        time.sleep(0.2)
        with pytest.raises(RunError) as caught:
            runner.collect(0)
    assert (caught.value.verdict, caught.value.rule) == (Verdict.CHEATED, "work-in-flight")


def test_calls_that_are_kept_without_a_change_have_the_inputs_that_were_given(trial: Trial) -> None:
    """Whoever switches the changes off still gets calls that are judged."""
    trial.make_inputs(calls=1)
    with trial.running("return x * 2") as runner:
        runner.give(0)
        for number, run in ((0, 0), (0, 1), (1, 0), (2, 0)):
            runner.call(Load.ALL)
            runner.collect(number, run)
    assert all(error.passed for call in trial.judge() for error in call.outputs)


def test_a_changed_input_is_found(trial: Trial) -> None:
    """An input that the call wrote to is named, in a call whose elements changed before, too, and when the outputs are not kept."""
    trial.make_inputs(calls=1)
    with trial.running("x.view(-1)[-1] += len(self.seen); self.seen.append(1); return x * 2") as runner:
        runner.give(0)
        runner.call(Load.ALL)
        runner.collect(0)
        runner.call(Load.PATCHES, runner.patch(random.Random(7)))
        with pytest.raises(RunError) as caught:
            runner.collect(None)
    assert caught.value.verdict is Verdict.CHEATED
    assert caught.value.rule == "input-mutation"


def test_the_place_of_the_outputs_is_poisoned_whenever_they_were_taken(trial: Trial) -> None:
    """What a candidate can see there before a call is neither its last answer nor the same poison twice: only then it answers."""
    look = (
        "import gc; r = next(t for t in gc.get_objects() if type(t).__name__ == 'Runner'); "
        "self.seen.append(r._exchange.outputs.tensors(r._tensors)[0].view(torch.uint8).flatten()[:4].tolist()); "
        "return x * 2 * float(self.seen[-1] in ([255] * 4, [127] * 4) and self.seen[-1] not in self.seen[-2:-1])"
    )
    trial.feed(look)
    assert all(error.passed for call in trial.judge() for error in call.outputs)


def test_inputs_without_floats_never_change(view: WorkerPool, tmp_path: Path) -> None:
    """A store whose problem has integers alone has nothing to draw from, and its calls are made all the same."""
    file = tmp_path / "add.py"
    file.write_text(INTEGERS)
    problem = load_problem(file)
    store = DeviceStoreClient(view, problem, -1)
    trial = Trial(view, problem, store)
    trial.make_inputs(calls=1)
    with trial.running("return x + 1") as runner:
        runner.give(0)
        runner.call(Load.ALL)
        assert runner.patch(random.Random(1)) == 0
        runner.call(Load.PATCHES, 0)
        runner.collect(0)
    store.close()


def test_an_oracle_that_does_not_answer_is_the_machines_failure(
    view: WorkerPool, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes too long, and what the oracle cannot do, is a MachineError with a mend, and no verdict on a candidate."""
    store = DeviceStoreClient(view, problem, -1)
    with pytest.raises(MachineError, match="could not be moved on the device: KeyError"):
        store.ask("give", call=0)
    monkeypatch.setattr(device_store_client, "ORDER_S", 0.0)
    with pytest.raises(MachineError, match="did not give tensors"):
        store.ask("give", call=0)
    monkeypatch.undo()
    store.close()


def test_a_vault_is_gone_when_it_is_closed(view: WorkerPool, problem: Problem) -> None:
    """Nothing can be asked of it afterwards, and other stores stay."""
    with ExitStack() as stack:
        first, second = (
            Trial(view, problem, DeviceStoreClient(view, problem, -1)),
            Trial(view, problem, DeviceStoreClient(view, problem, -1)),
        )
        stack.callback(second.store.close)
        first.make_inputs()
        second.make_inputs()
        first.store.close()
        assert isinstance(second.store, DeviceStoreClient)
        assert second.store.ask("pool").answer
        job = OracleJob(call_plans=(first.call_plan,), skip=((False,) * 3,), device="cpu", device_stores=device_stores([first.store]))
        with pytest.raises(AssertionError, match="KeyError"):
            first.ask("oracle", job)


@pytest.mark.parametrize("numel", [1, 7, 4096, 100_001])
def test_bits_are_compared_not_values(numel: int) -> None:
    """NaN equals itself, zero of the other sign does not, and the last element counts."""
    value = torch.full((numel,), float("nan"))
    assert same_bytes(value, value.clone())
    other = value.clone()
    other[-1] = 0.0
    assert not same_bytes(value, other)
    assert not same_bytes(torch.zeros(numel), -torch.zeros(numel))


def test_the_only_element_of_a_slice_has_bytes() -> None:
    """Its stride says nothing, and may be any."""
    assert same_bytes(torch.ones(1, 2)[:, ::2], torch.ones(1, 1))
