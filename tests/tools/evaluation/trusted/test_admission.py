"""Admission: problems that cannot tell right from wrong are found, and told why."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tools.evaluation import LocalPool
from tools.evaluation.processes.child import Child, DeadlineError
from tools.evaluation.processes.worker_pool import WorkerPool
from tools.evaluation.supervisor.admission_client import Admissions
from tools.evaluation.trusted.admission import admission
from tools.evaluation.trusted.null_kernels import chosen, dropping
from tools.evaluation.wire.jobs.admission import AdmissionJob
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants
from tools.records import Admission, NullPass

OPERATORS = Path(__file__).parents[4] / "data" / "operators"


def examined(folder: Path, body: str) -> Admission:
    """Examine a function of `x` (and `y`) at the sizes of a file."""
    file = folder / "work.py"
    file.write_text(f"import torch\nrows, columns = 64, 96\n{body}")
    problem = load_problem(file)
    return admission(AdmissionJob.of(small_variants(problem), "cpu"))


def passed(found: Admission, where: str = "everywhere") -> set[str]:
    """Names of the null kernels that passed."""
    return {one.null for one in found.passed if one.where == where}


@pytest.mark.parametrize("name", ["cross_entropy", "gelu_bias", "matmul_bias_gelu", "max_pool2d", "rms_norm_residual", "softmax"])
def test_sound_problems_are_admitted(name: str) -> None:
    """On an ordinary operator every null kernel fails and every input and parameter matters."""
    found = admission(AdmissionJob.of(small_variants(load_problem(OPERATORS / f"{name}.py")), "cpu"))

    assert found.admitted, found.reasons
    assert found.marks == ()
    assert {"zeros", "its previous value", "unwritten memory (A)", "unwritten memory (B)"} <= set(found.nulls)


def test_constant_answers_are_found(tmp_path: Path) -> None:
    """What is zero for every input passes as zeros, as its previous value, and depends on nothing."""
    body = "def work(x):\n    m = x.max(1, keepdim=True).values\n    return m - m.mean(1, keepdim=True)\n"
    found = examined(tmp_path, body + "def example_inputs():\n    return (torch.randn(rows, columns),)\n")

    assert {"zeros", "its previous value", "all but the last tile"} <= passed(found)
    assert found.ignored == ("x",)
    assert not found.admitted
    assert any("zeros" in reason for reason in found.reasons)


def test_operator_that_does_nothing_is_found(tmp_path: Path) -> None:
    """An operator whose absence changes nothing is named."""
    body = "def work(x):\n    return torch.relu(x.abs() * 2)\ndef example_inputs():\n    return (torch.randn(rows, columns),)\n"

    assert passed(examined(tmp_path, body)) == {"the result without aten.relu.default (operator 3 of 3)"}


def test_identity_passes_as_its_input(tmp_path: Path) -> None:
    """A reference that gives its input back needs no kernel."""
    body = "def work(x):\n    return x.clone()\ndef example_inputs():\n    return (torch.randn(rows, columns),)\n"

    assert "input x" in passed(examined(tmp_path, body))


def test_weak_inputs_are_told_from_weak_problems(tmp_path: Path) -> None:
    """A relu of positive numbers is the identity on its own inputs alone: the battery tells, so the problem is admitted."""
    body = "def work(x):\n    return torch.relu(x)\ndef example_inputs():\n    return (torch.rand(rows, columns),)\n"
    found = examined(tmp_path, body)

    assert found.admitted
    assert "input x" in passed(found, "own inputs")


def test_input_that_does_not_matter_is_named(tmp_path: Path) -> None:
    """An argument that is read and changes nothing is named; the others are not."""
    body = "def work(x, y):\n    return x * 2 + y * 0\ndef example_inputs():\n    return (torch.randn(rows, 9), torch.randn(rows, 9))\n"
    found = examined(tmp_path, body)

    assert found.ignored == ("y",)
    assert "No output depends on y." in found.reasons


def test_parameter_that_does_not_matter_is_named(tmp_path: Path) -> None:
    """A bias that a normalisation takes away again is named."""
    body = """
class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(1))
        self.scale = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return torch.nn.functional.layer_norm(x + self.bias, x.shape[-1:]) * self.scale

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return [columns]
"""
    assert examined(tmp_path, body).ignored == ("bias",)


def test_dropping_gives_the_first_argument() -> None:
    """An operator that is dropped gives its first argument, in place too, and only that one is."""
    x = torch.tensor([-1.0, 2.0])
    with dropping(-1) as names:
        (x * 2).relu_()
    with dropping(1):
        kept = (x * 2).relu_()

    assert names == ["aten.mul.Tensor", "aten.relu_.default"]
    assert kept.tolist() == [-2.0, 4.0]
    assert len(chosen(500)) == 16


def test_pool_examines_with_the_baselines(pool: LocalPool, tmp_path: Path) -> None:
    """The baselines say whether the problem was admitted, at which sizes; what could not be examined says why."""
    file = tmp_path / "large.py"
    file.write_text(
        "import torch\nSMALL_SIZES = []\ndef double(x):\n    return x * 2\ndef example_inputs():\n    return (torch.randn(4096, 4096),)\n"
    )
    sheet = load_sheet("h200")
    sound = asyncio.run(pool.baselines(load_problem(OPERATORS / "softmax.py"), sheet)).admission
    large = asyncio.run(pool.baselines(load_problem(file), sheet)).admission

    assert sound.admitted
    assert "rows=7, columns=1021" in sound.examined
    assert not large.admitted
    assert large.marks == ("The problem was not examined: it has no small variants and is too large as written.",)


def test_reasons_are_short_however_many_pass() -> None:
    """Three null kernels are named, the others counted."""
    passes = tuple(NullPass(null=f"null {n}", output="output0", where="everywhere") for n in range(9))

    assert Admission(examined=("as written",), passed=passes).reasons == (
        "A kernel that gives null 0, null 1, null 2 (and 6 more) as output0 passes.",
    )


@pytest.mark.parametrize(
    ("answers", "said"),
    [(["", '{"examined": ["N=3"]}'], ("N=3",)), (["", "", ""], ())],
    ids=["the second time", "never"],
)
def test_an_answer_that_did_not_come_is_asked_for_once_more(answers: list[str], said: tuple[str, ...]) -> None:
    """What others had on the device may have failed it; what came at last, or did not come, is known from then on."""
    left = list(answers)
    asked: Any = lambda *_, **__: SimpleNamespace(answer=left.pop(0).encode(), log="out of memory")  # noqa: E731
    problem: Any = load_problem(OPERATORS / "softmax.py")
    admissions = Admissions(SimpleNamespace(device=0, ask=asked))  # type: ignore[arg-type]
    assert [admissions.admission(problem, -1).examined for _ in range(2)] == [said] * 2
    assert not left
    assert bool(said) or "out of memory" in admissions.admission(problem, -1).notes[0]


def test_a_problem_that_takes_too_long_is_not_examined_again() -> None:
    """The limit is said, and the problem goes on without its examination."""

    def over(*_: Any, **__: Any) -> Any:
        raise DeadlineError

    problem = load_problem(OPERATORS / "softmax.py")
    found = Admissions(SimpleNamespace(device=0, ask=over)).admission(problem, -1)  # type: ignore[arg-type]
    assert found.notes == ("The problem was not examined: that takes longer than 60 s.",)


def test_variants_that_are_not_known_are_sought_where_the_problem_is_examined(workers: WorkerPool) -> None:
    """The supervisor runs no reference for it; the process can be made to rest meanwhile, and answers all the same."""
    states: list[str] = []

    @contextmanager
    def resting(child: Child) -> Iterator[None]:
        child.pause()
        states.append(_state(child, "T"))
        child.resume()
        yield

    job = AdmissionJob.of((), "cpu", load_problem(OPERATORS / "softmax.py"))
    done = workers.ask("admission", job.model_dump_json().encode(), {}, time.monotonic() + 60, -1, holding=resting)
    assert states == ["T"]
    assert len(Admission.model_validate_json(done.answer).examined) == 4


def _state(child: Child, wanted: str) -> str:
    """The state of a phase's process as the kernel tells it, once it is the wanted one or two seconds have gone by."""
    pid = Path(f"/proc/self/fdinfo/{child._inner}").read_text().partition("Pid:")[2].split()[0]
    for _ in range(200):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == wanted:
            break
        time.sleep(0.01)
    return state
