"""Times the library's fused epilogues beside the same calls with a kernel of ours after them, on one GPU, and holds all against float64.

Usage: python -m benchmarks.library_epilogues --out FILE.jsonl [--repeat 30]

Three ways of each layer, float32 with TF32 off, from a cold L2, in turns: the library's call with its bias and the activation after it
(apart); the library's call without a bias and one Triton kernel that adds it and activates, as the built-in coder emits it (ours after it);
and the library's call with all of that in its epilogue (fused): cuBLASLt's by `torch._addmm_activation`, cuDNN's by
`torch.cudnn_convolution_relu` and `torch.cudnn_convolution_add_relu`. Layers are those of KernelBench's levels 2 and 3. Only our own code
runs, so without a sandbox.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import triton
from torch.nn import functional

from benchmarks.trusted import load_source
from tools.evaluation.wire.lead_in import ColdCache, flush_bytes, lead_in
from tools.hardware import detect_sheet

LINEAR = (
    (1024, 8192, 8192),
    (128, 16384, 16384),
    (128, 32768, 32768),
    (1024, 8192, 4096),
    (10, 25088, 4096),
    (128, 4096, 4096),
    (32768, 256, 1024),
)
"""Rows, summed elements and columns."""
CONVOLUTION = (
    # images, channels, height, filters, kernel, stride, padding: ResNet, VGG, SqueezeNet, GoogLeNet, DenseNet, AlexNet and level 2
    (10, 3, 224, 64, 7, 2, 3),
    (10, 64, 56, 64, 3, 1, 1),
    (10, 128, 28, 128, 3, 1, 1),
    (10, 512, 7, 512, 3, 1, 1),
    (10, 256, 56, 64, 1, 1, 0),
    (10, 64, 56, 256, 1, 1, 0),
    (10, 1024, 14, 256, 1, 1, 0),
    (10, 64, 224, 64, 3, 1, 1),
    (10, 512, 14, 512, 3, 1, 1),
    (64, 96, 54, 256, 5, 1, 2),
    (64, 96, 127, 16, 1, 1, 0),
    (128, 64, 128, 128, 3, 1, 1),
)


KERNEL = '''
import torch
import triton
import triton.language as tl


@triton.jit
def bias_activation_kernel(x_ptr, bias_ptr, z_ptr, out_ptr, n, inner, channels, ADD: tl.constexpr, GELU: tl.constexpr, BLOCK: tl.constexpr):
    """x + bias, with a second tensor added or not, then relu or gelu."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    y = tl.load(x_ptr + offs, mask=mask) + tl.load(bias_ptr + offs // inner % channels, mask=mask)
    if ADD:
        y += tl.load(z_ptr + offs, mask=mask)
    if GELU:
        inside = 1.5957691216057308 * (y + 0.044715 * y * y * y)
        y = y / (1.0 + tl.exp(-inside))
    else:
        y = tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + offs, y, mask=mask)


def finished(x, bias, z, inner, gelu=False):
    out = torch.empty_like(x)
    bias_activation_kernel[(triton.cdiv(x.numel(), 1024),)](
        x, bias, x if z is None else z, out, x.numel(), inner, len(bias), ADD=z is not None, GELU=gelu, BLOCK=1024, num_warps=4
    )
    return out
'''
"""What stands after the library's call in the second way."""
Ways = dict[str, Callable[[], torch.Tensor]]


@functools.cache
def finished() -> Any:
    """Load that kernel: its host function takes a result of the library's in whatever order it lies."""
    return load_source(KERNEL, Path(tempfile.mkdtemp())).finished


def linear_ways(rows: int, inner: int, cols: int, *, gelu: bool) -> tuple[Ways, torch.Tensor]:
    """Three ways of a linear layer with an activation, and the answer in float64."""
    x, w = torch.randn(rows, inner, device="cuda"), torch.randn(cols, inner, device="cuda") / inner**0.5
    b = torch.randn(cols, device="cuda")
    act: Callable[[torch.Tensor], torch.Tensor] = (lambda y: functional.gelu(y, approximate="tanh")) if gelu else torch.relu
    ways: Ways = {
        "apart": lambda: act(functional.linear(x, w, b)),
        "ours after it": lambda: finished()(functional.linear(x, w), b, None, 1, gelu=gelu),
        "fused": lambda: torch._addmm_activation(b, x, w.t(), use_gelu=gelu),
    }
    step = max(1, 2**27 // inner)
    answer = torch.cat(
        [act(functional.linear(x.double(), w[at : at + step].double(), b[at : at + step].double())) for at in range(0, cols, step)], 1
    )
    return ways, answer


def convolution_ways(
    images: int, channels: int, height: int, filters: int, size: int, stride: int, padding: int, *, last: bool, add: bool
) -> tuple[Ways, torch.Tensor]:
    """Three ways of a convolution with bias, a second tensor or not, and relu; contiguous or with channels last."""
    order = torch.channels_last if last else torch.contiguous_format
    x = torch.randn(images, channels, height, height, device="cuda").to(memory_format=order)
    w = (torch.randn(filters, channels, size, size, device="cuda") / (channels * size * size) ** 0.5).to(memory_format=order)
    b = torch.randn(filters, device="cuda")
    z = torch.randn_like(functional.conv2d(x, w, None, stride, padding)) if add else None
    inner = 1 if last else functional.conv2d(x, w, None, stride, padding)[0, 0].numel()

    def apart() -> torch.Tensor:
        made = functional.conv2d(x, w, b, stride, padding)
        return torch.relu(made if z is None else made + z)

    def fused() -> torch.Tensor:
        pair = [stride, stride], [padding, padding], [1, 1]
        if z is None:
            return torch.cudnn_convolution_relu(x, w, b, *pair, 1)
        return torch.cudnn_convolution_add_relu(x, w, z, 1.0, b, *pair, 1)

    exact = functional.conv2d(x.double(), w.double(), b.double(), stride, padding)
    ways = {
        "apart": apart,
        "ours after it": lambda: finished()(functional.conv2d(x, w, None, stride, padding), b, z, inner),
        "fused": fused,
    }
    return ways, torch.relu(exact if z is None else exact + z.double())


def measured(ways: Ways, answer: torch.Tensor, cold: ColdCache, repeat: int) -> dict[str, Any]:
    """Median and quartiles of each way in microseconds, and its relative L2 error; what a way raises stands in its place."""
    found: dict[str, Any] = {}
    times: dict[str, list[float]] = {}
    for name, call in ways.items():
        try:
            for _ in range(3):
                made = call()
            error = ((made.double() - answer).norm() / answer.norm()).item()
            found[name] = {"error": error}
            times[name] = []
        except RuntimeError as failure:
            found[name] = {"raised": str(failure).strip().splitlines()[0][:200]}
    for turn in range(repeat):
        for name in list(times) if turn % 2 == 0 else reversed(list(times)):
            lead_in(cold, primed=True)
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            ways[name]()
            last.record()
            torch.cuda.synchronize()
            times[name].append(first.elapsed_time(last) * 1e3)
    for name, all_us in times.items():
        low, _, high = statistics.quantiles(all_us, n=4)
        found[name] |= {"us": statistics.median(all_us), "low_us": low, "high_us": high}
    return found


def layers() -> Iterator[tuple[dict[str, Any], tuple[Ways, torch.Tensor]]]:
    """Make every layer in turn."""
    for rows, inner, cols in LINEAR:
        for gelu in (False, True):
            what = {"layer": "linear", "shape": (rows, inner, cols), "after": "gelu (tanh)" if gelu else "relu"}
            yield what, linear_ways(rows, inner, cols, gelu=gelu)
    for shape in CONVOLUTION:
        for last in (False, True):
            for add in (False, True):
                which: dict[str, Any] = {"layer": "conv2d", "shape": shape, "channels_last": last}
                yield which | {"after": "add, relu" if add else "relu"}, convolution_ways(*shape, last=last, add=add)


def main() -> None:
    """Measure every layer, print a line for each and keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="a file of JSON lines")
    parser.add_argument("--repeat", type=int, default=30, help="timed calls of each way")
    given = parser.parse_args()
    sheet = detect_sheet()
    if sheet is None:
        parser.error("there is no GPU whose sheet is known")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    cold = ColdCache(flush_bytes(sheet))
    versions = {"torch": torch.__version__, "triton": triton.__version__, "cudnn": str(torch.backends.cudnn.version())}
    for what, (ways, answer) in layers():
        row = {**what, "device": torch.cuda.get_device_name(), "versions": versions, **measured(ways, answer, cold, given.repeat)}
        print(json.dumps({name: value for name, value in row.items() if name not in ("device", "versions")}), flush=True)
        with given.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
