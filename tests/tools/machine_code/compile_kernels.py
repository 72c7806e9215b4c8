"""Cross-compiles the kernels of these tests into a folder, for several targets and without a GPU: `python compile_kernels.py FOLDER`."""

# ruff: noqa: ANN001, ANN201, D103, N803 - jit code has no types, and constants are named as Triton names them

from __future__ import annotations

import json
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.jit
def softmax(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + i, i < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(o + tl.program_id(0) * n + i, e / tl.sum(e, 0), i < n)


@triton.jit
def matmul(a, b, c, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums, input_precision=PRECISION)
    tl.store(c + rows[:, None] * N + columns[None, :], sums)


POINTWISE = {"x": "*fp32", "y": "*fp32", "o": "*fp32", "n": "i32"}
ROWWISE = {"x": "*fp32", "o": "*fp32", "n": "i32"}
PRODUCT = {"a": "*fp32", "b": "*fp32", "c": "*fp32", "N": "i32", "K": "i32"}
TILE = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
SM80, SM90, SM100 = (GPUTarget("cuda", arch, 32) for arch in (80, 90, 100))
GFX942 = GPUTarget("hip", "gfx942", 64)

KERNELS = {
    "add_sm80": (add, POINTWISE, {"BLOCK": 1024}, SM80, {"num_warps": 4}, 16),
    "add_sm90": (add, POINTWISE, {"BLOCK": 1024}, SM90, {"num_warps": 4}, 16),
    "add_sm100": (add, POINTWISE, {"BLOCK": 1024}, SM100, {"num_warps": 4}, 16),
    "add_gfx942": (add, POINTWISE, {"BLOCK": 1024}, GFX942, {"num_warps": 4}, 16),
    "add_unaligned_sm90": (add, POINTWISE, {"BLOCK": 1024}, SM90, {"num_warps": 4}, 4),
    "add_half_sm90": (add, {**POINTWISE, "x": "*fp16", "y": "*fp16", "o": "*fp16"}, {"BLOCK": 128}, SM90, {"num_warps": 4}, 2),
    "softmax_sm90": (softmax, ROWWISE, {"BLOCK": 1024}, SM90, {"num_warps": 4}, 16),
    "softmax_spilling_sm90": (softmax, ROWWISE, {"BLOCK": 4096}, SM90, {"num_warps": 1, "maxnreg": 64}, 16),
    "softmax_spilling_gfx942": (softmax, ROWWISE, {"BLOCK": 8192}, GFX942, {"num_warps": 1, "waves_per_eu": 8}, 16),
    "matmul_tensor_sm80": (matmul, PRODUCT, {**TILE, "PRECISION": "tf32"}, SM80, {"num_warps": 4}, 16),
    "matmul_tensor_sm90": (matmul, PRODUCT, {**TILE, "PRECISION": "tf32"}, SM90, {"num_warps": 4}, 16),
    "matmul_tensor_sm100": (matmul, PRODUCT, {**TILE, "PRECISION": "tf32"}, SM100, {"num_warps": 4}, 16),
    "matmul_ordinary_sm90": (matmul, PRODUCT, {**TILE, "PRECISION": "ieee"}, SM90, {"num_warps": 4}, 16),
}
"""Function, argument types, constants, target, options, and the alignment in bytes that every argument is promised."""


def compile_into(folder: Path) -> None:
    """Write each kernel's machine code to `folder`, and the shared memory each asks for to `shared.json`."""
    shared = {}
    for name, (function, arguments, constants, target, options, alignment) in KERNELS.items():
        signature = {**arguments, **dict.fromkeys(constants, "constexpr")}
        aligned = {(i,): [["tt.divisibility", 16]] for i in range(len(arguments))} if alignment == 16 else {}
        source = ASTSource(function, signature=signature, constexprs=constants, attrs=aligned)
        compiled = triton.compile(source, target=target, options=options)
        (folder / name).write_bytes(compiled.asm["hsaco" if target.backend == "hip" else "cubin"])
        shared[name] = compiled.metadata.shared
    (folder / "shared.json").write_text(json.dumps(shared))


if __name__ == "__main__":
    compile_into(Path(sys.argv[1]))
