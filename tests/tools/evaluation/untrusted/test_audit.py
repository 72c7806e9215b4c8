"""Listening to a call: what it costs the process that listens."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import torch
from tools.evaluation.untrusted.audit import heard_in

print([heard.name for heard in heard_in(lambda: torch.ones(2) + 1)])
print("torch._dynamo" in sys.modules)
"""


def test_listening_does_not_import_torchs_compiler() -> None:
    """It would cost every zygote of the interpreter a second; what ran is heard all the same."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    heard, imported = done.stdout.splitlines()
    assert "aten.add.Tensor" in heard
    assert imported == "False"
