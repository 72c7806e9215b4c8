"""Record what a GPU makes of every case: `python -m tests.tools.evaluation.short_floats.record > h200.jsonl`.

One line says the device and the versions; each other is a case with its output's bits (base64 of zlib) or the error it raised.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib

import torch
import triton

from .cases import Case, cases, codes, run


def main() -> None:
    """Print the lines."""
    header = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}
    _write(header)
    for case in cases():
        _write({"case": case.name} | _outcome(case))


def _write(line: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _outcome(case: Case) -> dict[str, str]:
    try:
        made = codes(run(case, "cuda"))
    # whatever a compiler refuses is an answer too: that such kernels need no emulation
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"bits": base64.b64encode(zlib.compress(made.tobytes(), 9)).decode()}


if __name__ == "__main__":
    main()
