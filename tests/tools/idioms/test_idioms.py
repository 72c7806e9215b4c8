"""Idioms: what fits which problem, and that each is right."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator

import pytest

from tests.support import breadth
from tests.support.makers import problem
from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import load_sheet
from tools.idioms.choice import fitting, within
from tools.idioms.idiom import Idiom, all_idioms, folder
from tools.problems import load_problem, small_variants
from tools.records import Bottleneck, OperatorFamily, Problem
from tools.syntax import parsed

FAMILY = OperatorFamily
CASES: dict[str, tuple[Problem, Bottleneck | None, str]] = {
    "a recurrence, unrolled": (
        problem(operators=("aten.mul.Tensor", "aten.add.Tensor") * 40, families=(FAMILY.POINTWISE,)), None, "linear_recurrence",
    ),
    "a running sum": (problem(operators=("aten.cumsum.default",), families=(FAMILY.SCAN,)), None, "linear_recurrence"),
    "a float32 product at the arithmetic's rate": (
        problem(operators=("aten.mm.default",), families=(FAMILY.MATMUL,)), Bottleneck.COMPUTE_UNIT, "fp16x3_product",
    ),
    "a product that fills few multiprocessors": (
        problem(operators=("aten.mm.default",), families=(FAMILY.MATMUL,)), Bottleneck.PARALLELISM, "split_k",
    ),
    "sums by index": (problem(operators=("aten.index_add.default",), families=(FAMILY.INDEXING,)), None, "segment_sum"),
    "experts": (
        problem(operators=("aten.index.Tensor", "aten.bmm.default"), families=(FAMILY.MATMUL, FAMILY.INDEXING)), None, "grouped_product",
    ),
    "softmax": (problem(operators=("aten._softmax.default",), families=(FAMILY.SOFTMAX,)), None, "online_softmax"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_idiom_is_chosen_by_the_situation(case: str) -> None:
    """The idiom that a problem calls for is the first, or one of two that fit as well."""
    one, bottleneck, wanted = CASES[case]
    assert wanted in [found.name for found in fitting(one, bottleneck)[: 2 if "unrolled" in case else 1]]


CHEAP = "segment_sum"
"""The one that `make test` judges, since each takes the interpreter some seconds."""
JUDGED = tuple(one for one in all_idioms() if breadth.ALL or one.name == CHEAP)


def test_what_does_not_fit_is_not_shown() -> None:
    """A pointwise operator calls for none, and what an idiom needs must be there."""
    assert fitting(problem()) == ()
    half = problem(operators=("aten.mm.default",), families=(FAMILY.MATMUL,), dtype="float16")
    assert "fp16x3_product" not in {one.name for one in fitting(half, Bottleneck.COMPUTE)}
    assert fitting(half, Bottleneck.COMPUTE)[0].name == "descriptor_product"


def test_a_budget_of_tokens_keeps_the_best() -> None:
    """Only as many are shown as fit together, from the first on."""
    first = len(all_idioms()[0].text) // 3 + 1
    assert within(all_idioms(), first) == all_idioms()[:1]
    assert within(all_idioms(), first - 1) == ()


@pytest.mark.parametrize("idiom", all_idioms(), ids=lambda one: one.name)
def test_an_idiom_is_a_small_candidate(idiom: Idiom) -> None:
    """Each has a kernel with a docstring and a module, is short enough to be shown, and its text has no imports."""
    tree = parsed((idiom.folder / "kernel.py").read_text())
    assert "ModelNew" in {getattr(node, "name", "") for node in tree.body}
    assert len(idiom.text) < 5200
    assert not re.search(r"^(?:import|from) ", idiom.text, re.MULTILINE)
    assert "SMALL_SIZES" in (idiom.folder / "reference.py").read_text()


def test_every_folder_is_in_the_list() -> None:
    """The list names each folder once."""
    names = [one["name"] for one in json.loads((folder() / "index.json").read_text())]
    assert sorted(names) == sorted(path.name for path in folder().iterdir() if path.is_dir() and not path.name.startswith("_"))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPool]:
    """A pool without a GPU."""
    made = LocalPool(tmp_path_factory.mktemp("idioms"), None, parallel=1)
    yield made
    asyncio.run(made.close())


@pytest.mark.slow
@pytest.mark.parametrize("idiom", JUDGED, ids=lambda one: one.name)
def test_an_idiom_is_right(pool: LocalPool, idiom: Idiom) -> None:
    """It compiles for an H200, spills nothing to speak of, and is within float64's limits at its small sizes."""
    one, source = load_problem(idiom.folder / "reference.py"), (idiom.folder / "kernel.py").read_text()
    request = EvaluationRequest(
        problem=one, variants=small_variants(one), candidate=idiom.name, source=source, target=load_sheet("h200"), depth="check"
    )
    found = asyncio.run(pool.evaluate(request))
    assert found.verdict == "PASS", (found.notes, found.log[-800:])
    assert found.kernels
    assert max(kernel.spill_bytes for kernel in found.kernels) <= 64
