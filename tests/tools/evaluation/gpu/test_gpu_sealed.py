"""On a GPU: candidates timed without their host code. Run with `pytest -m gpu tests/tools/evaluation/gpu/test_gpu_sealed.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.tools.evaluation import sealable
from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.wire.defences import NONE, Defence
from tools.hardware import detect_sheet
from tools.hardware.devices import first_device
from tools.problems import load_problem, small_variants
from tools.records import Evaluation, HardwareSheet, Problem, Tier

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(first_device() is None, reason="this machine has no NVIDIA GPU"),
    pytest.mark.timeout(900),
]

HONEST = {
    "softmax": (sealable.SOFTMAX, sealable.SOFTMAX_REFERENCE),
    "matmul": (sealable.MATMUL, sealable.MATMUL_REFERENCE),
    "tiles": (sealable.TILES, sealable.MATMUL_REFERENCE),
    "sum": (sealable.sum_with(""), sealable.SUM_REFERENCE),
    "packed": (sealable.PACKED, sealable.MATMUL_REFERENCE),
    "packed by the library": (sealable.PACKED_BY_THE_LIBRARY, sealable.MATMUL_REFERENCE),
    "tuned": (sealable.TUNED, sealable.SOFTMAX_REFERENCE),
    "between calls of torch": (sealable.BETWEEN_CALLS, sealable.SOFTMAX_REFERENCE),
    "graphed": (sealable.GRAPHED, sealable.SOFTMAX_REFERENCE),
    "convolved by cuDNN": (sealable.CONVOLVED, sealable.CONVOLVED_REFERENCE),
    "attention of torch": (sealable.ATTENTION, sealable.ATTENTION_REFERENCE),
}
SIDE_STREAM = sealable.SOFTMAX.replace(
    "        softmax_kernel[",
    "        side = torch.cuda.Stream()\n        with torch.cuda.stream(side):\n            softmax_kernel[",
)
PATCHED_EVENTS = (
    sealable.SOFTMAX
    + """
honest = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda first, last: honest(first, last) / 3
"""
)
OUT_OF_BOUNDS = sealable.SOFTMAX.replace(
    "e / tl.sum(e, 0), mask=mask)",
    "e / tl.sum(e, 0), mask=mask)\n    tl.store(out_ptr + tl.num_programs(0).to(tl.int64) * columns + row % 8, 1.0, mask=row < 8)",
)
"""Writes eight numbers behind its output: in its own process they fall into what torch's allocator rounded its size up to."""


@pytest.fixture(scope="module")
def sheet() -> HardwareSheet:
    """The sheet of this machine's GPU."""
    try:
        found = detect_sheet()
    except UserError as error:
        pytest.skip(str(error))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def problem_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Problem]:
    """Load a reference once."""
    known: dict[str, Problem] = {}

    def load(reference: str) -> Problem:
        if reference not in known:
            file = tmp_path_factory.mktemp("reference") / "reference.py"
            file.write_text(reference)
            known[reference] = load_problem(file)
        return known[reference]

    return load


@pytest.fixture(scope="module")
def gpu_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPool]:
    """The pool of the first GPU."""
    made = LocalPool(tmp_path_factory.mktemp("pool"), first_device())
    yield made
    asyncio.run(made.close())


@pytest.fixture
def confirm(gpu_pool: LocalPool, problem_of: Callable[[str], Problem], sheet: HardwareSheet) -> Callable[..., Evaluation]:
    """Judge a source as a champion is judged."""

    def run(source: str, reference: str = sealable.SOFTMAX_REFERENCE, stage: str = "confirm", off: frozenset[Defence] = NONE) -> Evaluation:
        problem = problem_of(reference)
        request = EvaluationRequest.model_validate(
            {
                "problem": problem.model_dump(),
                "variants": [variant.model_dump() for variant in small_variants(problem)],
                "candidate": "c",
                "source": source,
                "target": sheet.model_dump(),
                "stage": stage,
            }
        )
        return asyncio.run(gpu_pool.weakened(off).evaluate(request))

    return run


@pytest.mark.parametrize("name", HONEST)
def test_honest_kernels_are_sealed(confirm: Callable[..., Evaluation], name: str) -> None:
    """A confirmed kernel's figure is sealed, and its own process's, in a note, agrees with it."""
    found = confirm(*HONEST[name])

    assert found.verdict == "PASS", (found.notes, found.log)
    assert found.timing is not None
    assert found.timing.tier is Tier.SEALED, found.notes
    assert set(found.timing.baselines) == {"eager", "compile"}
    assert any(note.startswith("Sealed: without its host code") for note in found.notes)
    print(name, found.timing.candidate, [note for note in found.notes if "ealed" in note])  # noqa: T201 - for whoever sets the bound


def test_a_search_is_not_sealed(confirm: Callable[..., Evaluation]) -> None:
    """In the search the candidate's own process is enough."""
    found = confirm(*HONEST["softmax"], stage="search")

    assert found.timing is not None
    assert found.timing.tier is not Tier.SEALED


def test_sealed_medians_repeat(confirm: Callable[..., Evaluation]) -> None:
    """The same kernel, confirmed twice, has sealed medians within three per cent."""
    times = [found.timing.candidate.median_us for found in (confirm(*HONEST["softmax"]) for _ in range(2)) if found.timing]

    assert len(times) == 2
    assert max(times) / min(times) < 1.03


def true_time(confirm: Callable[..., Evaluation]) -> float:
    """Sealed median of the honest softmax."""
    found = confirm(*HONEST["softmax"])
    assert found.timing is not None
    return found.timing.candidate.median_us


def sealed_in(note: str) -> float:
    """The sealed median that a note of two different times names."""
    return float(note.partition("the median is ")[2].split()[0])


def test_patched_events_are_found_by_chains(confirm: Callable[..., Evaluation]) -> None:
    """Events that say a third are held against chains of calls before anything is sealed: there is no time, and the verdict says so."""
    found = confirm(PATCHED_EVENTS, off=frozenset([Defence.STATIC_RULES]))

    assert found.verdict == "TIMING_INCONSISTENT", (found.verdict, found.notes)
    assert found.timing is None
    assert "in a chain a call takes" in found.notes[0], found.notes


def test_patched_events_meet_the_true_time(confirm: Callable[..., Evaluation]) -> None:
    """Where no chain looks they are held against the sealed time, which is the honest kernel's, and the verdict says so."""
    found = confirm(PATCHED_EVENTS, off=frozenset([Defence.STATIC_RULES, Defence.CLOCKS_AGREE]))

    assert found.verdict == "TIMING_INCONSISTENT", (found.verdict, found.notes)
    told = [note for note in found.notes if note.startswith("Sealed: without its host code")]
    assert told, found.notes
    assert sealed_in(told[0]) == pytest.approx(true_time(confirm), rel=0.05)


def test_a_side_stream_gains_nothing(confirm: Callable[..., Evaluation]) -> None:
    """Work on another stream is on ours when it is sealed: its own events cannot be published."""
    found = confirm(SIDE_STREAM, off=frozenset([Defence.STATIC_RULES]))

    assert found.verdict in ("TIMING_INCONSISTENT", "WRONG", "UNSTABLE", "IMPOSSIBLE_TIME", "PASS"), found.notes
    if found.timing is not None:
        assert found.timing.tier is Tier.SEALED
        assert found.timing.candidate.median_us == pytest.approx(true_time(confirm), rel=0.05)


def test_writing_out_of_bounds_is_a_crash(confirm: Callable[..., Evaluation]) -> None:
    """What is written behind an output is found by the border, whatever it fell into in the candidate's own process."""
    found = confirm(OUT_OF_BOUNDS)

    assert found.verdict == "CRASHED", (found.verdict, found.notes)
    assert any("outside of its memory" in note for note in found.notes)


def test_what_cannot_be_sealed_keeps_its_tier_and_says_why(confirm: Callable[..., Evaluation]) -> None:
    """An operator that is not on the list leaves the present tier, with the reason, in a search too."""
    for stage in ("confirm", "search"):
        found = confirm(sealable.sum_with("x = torch.special.i0(x * 0) * 0 + x"), sealable.SUM_REFERENCE, stage=stage)
        assert found.verdict == "PASS", (found.notes, found.log)
        assert found.timing is not None
        assert found.timing.tier is not Tier.SEALED
        assert found.timing.unsealed == "its host code calls the library's aten.i0.default"
        assert any(note.startswith("Not sealed: its host code calls the library's aten.i0") for note in found.notes)
