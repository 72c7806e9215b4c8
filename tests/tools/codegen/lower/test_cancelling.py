"""Products with an inverse are multiplied in plain float32, whatever way they are read."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.schedule.plan import plan_region
from tools.hardware import load_sheet

READ = {
    "left": "torch.linalg.inv(x.T @ x) @ x.T",
    "transposed": "x @ torch.linalg.inv(x.T @ x).T",
    "shifted": "torch.matmul(x * 2 + 1, torch.linalg.pinv(x).T.contiguous().T)",
    "letters": "torch.einsum('ij,jk->ik', x, torch.linalg.inv(x.T @ x))",
}
PLAIN = {"none": "x @ x.T", "solved": "x @ torch.linalg.solve(x.T @ x, x.T)"}


def _precisions(text: str) -> set[object]:
    """Precisions in which the last product may be multiplied: the first that is tried, and all others that are offered."""
    graph = traced_text(function(text))[1]
    name = [node.name for node in graph.nodes if node.op in ("mm", "matmul", "einsum")][-1]
    planned, sheet = plan_region(graph, (name,)), load_sheet("h100")
    first = planned.defaults(sheet.sms)
    changed = ({**first, "precision": value} for value in planned.template.knobs["precision"].values)
    return {first["precision"], *(each["precision"] for each in changed if planned.fits(each, "precision", sheet))}


@pytest.mark.parametrize("name", READ)
def test_products_with_an_inverse_stay_in_float32(name: str) -> None:
    """No parts of an operand are multiplied: the terms are larger than their sum, and what parts leave out is, too."""
    assert _precisions(READ[name]) == {"ieee"}


@pytest.mark.parametrize("name", PLAIN)
def test_other_products_may_be_taken_in_parts(name: str) -> None:
    """Without an inverse, products of parts are tried first."""
    assert "tf32x3" in _precisions(PLAIN[name])
