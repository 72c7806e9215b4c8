"""No kernel that the built-in coder generates is accused on a GPU: one of each sample operator, timed with all defences on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.honest.corpus import OPERATORS, Honest, generated
from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import detect_sheet, load_sheet
from tools.hardware.devices import first_device
from tools.problems import small_variants
from tools.records import Evaluation

SAMPLES = sorted(path.stem for path in OPERATORS.glob("*.py"))

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.skipif(first_device() is None, reason="this machine has no NVIDIA GPU"),
]


@pytest.fixture(scope="module")
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Evaluation]:
    """What became of the kernels of this session, judged side by side in one pool, which times each alone: no use with `-n`."""
    given = (getattr(item, "callspec", None) for item in request.session.items)
    chosen = {one.params.get("sample") for one in given if one is not None}
    return asyncio.run(_judged([name for name in SAMPLES if name in chosen], tmp_path_factory.mktemp("honest-gpu")))


async def _judged(names: Iterable[str], folder: Path) -> dict[str, Evaluation]:
    pool, sheet = LocalPool(folder / "scratch", first_device(), parallel=4), detect_sheet() or load_sheet("h200")

    async def judge(kernel: Honest) -> Evaluation:
        problem = kernel.load(folder)
        variants = small_variants(problem)
        return await pool.evaluate(
            EvaluationRequest(
                problem=problem, variants=variants, candidate=kernel.name, source=kernel.source, target=sheet, timeout_s=300.0
            )
        )

    try:
        kernels = {name: next(generated(1, (name,))) for name in names}
        return dict(zip(kernels, await asyncio.gather(*map(judge, kernels.values())), strict=True))
    finally:
        await pool.close()


@pytest.mark.parametrize("sample", SAMPLES)
def test_generated_kernel_is_not_accused(judged: dict[str, Evaluation], sample: str) -> None:
    """It passes, and has a measured time."""
    found = judged[sample]

    assert found.verdict == "PASS", (found.rule, found.notes, found.log[-1000:])
    assert found.timing is not None
    assert found.weakened == ()
