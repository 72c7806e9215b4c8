"""Times Liger-Kernel's group norm from two checkouts, torch's and torch.compile's, and says how far each is from float64.

python -m benchmarks.liger.group_norm WITHOUT WITH    # checkouts at ead96b6, the second with docs/contributions/liger-group-norm.patch

One line of JSON a shape. All ways are called in turn in one process; the L2 is emptied before each call; times are by CUDA events.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

SHAPES = ((2, 4096), (8, 4096), (32, 4096), (64, 4096), (8, 3584), (32, 8192))
"""Batch and channels; the library's benchmark has 4,096 channels for Llama 3, groups of four, and 512 elements of each channel."""
SIZE, A_GROUP, EPS = 512, 4, 1e-6
TURNS = 30
CACHE_BYTES = 256 << 20
"""More than any L2 holds."""
Ways = Mapping[str, Callable[[], Any]]


def main(words: Sequence[str] | None = None) -> None:
    """Compare at each shape."""
    places = sys.argv[1:] if words is None else words
    modules = {name: load(Path(place), name) for name, place in zip(("without", "with"), places, strict=True)}
    for batch, channels in SHAPES:
        print(json.dumps({"shape": [batch, channels, SIZE], **compared(modules, batch, channels, torch.bfloat16, "cuda")}), flush=True)


def load(checkout: Path, name: str) -> ModuleType:
    """Import the operator of a checkout by itself."""
    spec = importlib.util.spec_from_file_location(f"group_norm_{name}", checkout / "src/liger_kernel/ops/group_norm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compared(modules: Mapping[str, Any], batch: int, channels: int, dtype: torch.dtype, device: str) -> dict[str, Any]:
    """Relative L2 distance from float64 of output and gradients by way, and on a GPU microseconds."""
    torch.manual_seed(0)
    groups = channels // A_GROUP
    x, dy = (torch.randn(batch, channels, SIZE, device=device, dtype=dtype) for _ in range(2))
    weight, bias = (torch.randn(channels, device=device, dtype=dtype) for _ in range(2))

    def norm(*given: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.group_norm(given[0], groups, given[1], given[2], EPS)

    def gradients(kind: torch.dtype) -> tuple[list[torch.Tensor], torch.Tensor, Callable[[], Any]]:
        leaves = [one.to(kind).detach().requires_grad_() for one in (x, weight, bias)]
        y, upstream = norm(*leaves), dy.to(kind)
        return leaves, y, lambda: torch.autograd.grad(y, leaves, upstream, retain_graph=True)

    _, y64, backward64 = gradients(torch.float64)
    _, y, backward = gradients(dtype)
    ways: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {"torch": (lambda: norm(x, weight, bias), backward)}
    found = {"torch": (y.detach(), *backward())}
    for name, module in modules.items():
        forward, backward = liger(module, x, dy, weight, bias, groups)
        ways[name], found[name] = (forward, backward), (forward()[0], *backward())
    right = (y64.detach(), *backward64())
    errors = {name: [distance(mine, one) for mine, one in zip(each, right, strict=True)] for name, each in found.items()}
    told: dict[str, Any] = {"errors": errors}
    if device == "cuda":
        del y64, backward64, right
        compiled = torch.compile(norm, dynamic=False)
        first = {name: each[0] for name, each in ways.items()} | {"torch.compile": lambda: compiled(x, weight, bias)}
        told |= {"forward_us": in_turn(first), "backward_us": in_turn({name: each[1] for name, each in ways.items()})}
    return told


def liger(
    module: Any, x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, groups: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Give the library's two functions with their arguments."""
    _, saved, mean, rstd, _ = module.group_norm_forward(x, x.shape[1], groups, weight, bias, EPS)
    return (
        lambda: module.group_norm_forward(x, x.shape[1], groups, weight, bias, EPS),
        lambda: module.group_norm_backward(dy, saved, weight, bias, mean, rstd, x.shape[1], groups),
    )


def in_turn(ways: Ways) -> dict[str, float]:
    """Median microseconds of each way; each comes after each other one."""
    flush = torch.empty(CACHE_BYTES, dtype=torch.int8, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(TURNS + 2):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            first.record()
            ways[name]()
            last.record()
            torch.cuda.synchronize()
            times[name].append(first.elapsed_time(last) * 1e3)
    # the first two calls compile
    return {name: round(statistics.median(each[2:]), 1) for name, each in times.items()}


def distance(mine: torch.Tensor, right: torch.Tensor) -> float:
    """Relative L2."""
    return float((mine.double() - right).norm() / right.norm())


if __name__ == "__main__":
    main()
