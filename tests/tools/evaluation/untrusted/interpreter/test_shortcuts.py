"""The interpreter with its shortcuts against the interpreter as Triton ships it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

MODULE = "tests.tools.evaluation.untrusted.interpreter.shortcut_cases"


@pytest.fixture(scope="module")
def told() -> Any:
    """What kernels gave without shortcuts, and with them."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", MODULE]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def test_every_bit_is_the_same(told: Any) -> None:
    """Operations on all pairs of dtypes, broadcast, reduced, scanned and turned, give the same bits, and the same refusals."""
    assert told["shorter"] == told["plain"]


def test_what_the_language_forbids_is_refused(told: Any) -> None:
    """Sizes that do not fit, are odd, fractions or too large, sums of pointers, and a negative number beside unsigned ones."""
    refused = {name: text for name, text in told["plain"].items() if name.startswith("refused")}
    assert len(refused) == 7
    assert all("Error" in text for text in refused.values())
