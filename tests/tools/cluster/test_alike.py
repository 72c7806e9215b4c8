"""An evaluator that is unlike what was asked for, or unlike its siblings, is refused with what differs."""

from __future__ import annotations

from typing import Any

import pytest

from tools.cluster.alike import demand_alike
from tools.cluster.records import Facts
from tools.cluster.station import code_hash
from tools.errors import UserError

TITLE = "NVIDIA H100 80GB HBM3"


def _facts(**changed: Any) -> Facts:
    plain = {"host": "gpu1", "node": "a", "device": TITLE, "unit": "0", "code": code_hash(), "versions": {"torch": "2.11", "driver": "580"}}
    return Facts.model_validate(plain | changed)


def test_siblings_that_agree_are_taken() -> None:
    """A kernel version of the system, or Python's, may differ."""
    demand_alike(_facts(), TITLE, [_facts(host="gpu2", versions={"torch": "2.11", "driver": "580", "python": "3.12"})])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"code": "0123"}, r"kernelwright there is other code \(0123\) than here"),
        ({"device": "NVIDIA H100 PCIe"}, "its GPU is NVIDIA H100 PCIe, and the target is NVIDIA H100 80GB HBM3"),
        ({"device": ""}, "its GPU is none"),
        ({"versions": {"torch": "2.12", "driver": "580"}}, "it has torch 2.12, and gpu2 2.11"),
        ({"versions": {"torch": "2.11", "driver": "570"}}, "it has driver 570, and gpu2 580"),
        ({"versions": {"torch": "2.11", "driver": "580", "triton": "3.6"}}, "it has triton 3.6, and gpu2 none"),
    ],
)
def test_what_differs_is_named(changed: dict[str, Any], said: str) -> None:
    """Other code, another GPU or none, other versions than a sibling's."""
    with pytest.raises(UserError, match=said):
        demand_alike(_facts(**changed), TITLE, [_facts(host="gpu2")])
