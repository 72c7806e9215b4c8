"""What builders are forked with: no import that comes late may meet an operator that is listened to."""

from __future__ import annotations

import subprocess
import sys

WARM_UP = """
import sys, torch
torch.version.cuda = "13.0"
from tools.evaluation.untrusted.warmup import warm_up
warm_up()
print("torch.nn.utils._expanded_weights" in sys.modules)
"""


def test_builders_have_the_tables_by_recurrent_layers_from_the_start(tmp_path: object) -> None:
    """Beside PyTorch for GPUs and without one they had not: an import within a call failed, and nothing compiled was handed on."""
    sees = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", WARM_UP], env=sees, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "True"
