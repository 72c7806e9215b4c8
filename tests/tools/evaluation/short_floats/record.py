"""Say what comes of every case: `python -m tests.tools.evaluation.short_floats.record cuda > h200.jsonl`, on a GPU.

One line says the device and the versions; each other is a case with its output's bits (base64 of zlib) or the error it raised. Casts are
there a second time as PyTorch does them on the device. With `emulated` and TRITON_INTERPRET=1 the interpreter's emulation takes the
device's place.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from collections.abc import Callable

import torch
import triton

from .cases import FORMATS, cases, codes, inputs, run


def main(device: str) -> None:
    """Print the lines."""
    if device == "emulated":
        from tools.evaluation.untrusted.interpreter import builder, scan_order

        builder.install()
        scan_order.install()
    title = torch.cuda.get_device_name() if device == "cuda" else device
    _write({"device": title, "torch": torch.__version__, "triton": triton.__version__})
    place = "cuda" if device == "cuda" else "cpu"
    for case in cases():
        _write({"case": case.name} | _outcome(lambda case=case: run(case, place)))
        if device == "cuda" and case.kernel == "cast" and case.source == "float32":
            _write({"case": f"torch {case.name}"} | _outcome(lambda case=case: inputs(case)[0].cuda().to(FORMATS[case.target][0])))


def _write(line: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _outcome(made: Callable[[], torch.Tensor]) -> dict[str, str]:
    try:
        found = codes(made().cpu())
    # whatever a compiler refuses is an answer too: that such kernels need no emulation
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"bits": base64.b64encode(zlib.compress(found.tobytes(), 9)).decode()}


if __name__ == "__main__":
    main(sys.argv[1])
