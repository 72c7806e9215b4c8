"""Small references of the compute-bound families: attention, products, convolutions."""

from __future__ import annotations

import re

from tests.tools.codegen.harness import SMALL

HEAD = "import torch\nimport torch.nn.functional as F\n\nROWS = 33\nCOLS = 70\nDIM = 24\nWIDE = 40\n\n"
TAIL = "\n\ndef example_inputs():\n    return ({inputs},)\n"
HEADS = "torch.randn(2, 3, ROWS, DIM), torch.randn(2, 3, COLS, DIM), torch.randn(2, 3, COLS, WIDE)"
HALF = HEADS.replace(")", ", dtype=torch.float16)")


def reference(body: str, inputs: str, arguments: str) -> str:
    """Write a reference of the plain form that returns `body`."""
    return f"{HEAD}def sample({arguments}):\n    return {body}\n{TAIL.format(inputs=inputs)}"


def small(source: str) -> str:
    """Rewrite a reference to odd sizes that no trace of it saw."""
    return re.sub(r"^([A-Z]+) = \d+$", lambda found: f"{found[1]} = {SMALL.get(found[1], 8)}", source, flags=re.MULTILINE)


ATTENTION: dict[str, str] = {
    "scaled": reference("F.scaled_dot_product_attention(q, k, v) * 2", HEADS, "q, k, v"),
    "causal": reference("F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)", HEADS, "q, k, v"),
    "masked": reference(
        "F.scaled_dot_product_attention(q, k, v, attn_mask=m)", HEADS + ", torch.randn(ROWS, COLS) > 0", "q, k, v, m"
    ),
    "empty_rows": reference(
        "F.scaled_dot_product_attention(q, k, v, attn_mask=m)",
        HEADS + ", (torch.arange(ROWS) > 2)[:, None].expand(ROWS, COLS)",
        "q, k, v, m",
    ),
    "written_out": reference(
        "torch.softmax((q @ k.transpose(-2, -1)) * 0.3 + b, -1) @ v + 1.0", HEADS + ", torch.randn(2, 1, 1, COLS)", "q, k, v, b"
    ),
    "filled": reference(
        "torch.softmax(torch.matmul(q, k.transpose(2, 3)).masked_fill(torch.tril(m)[None, None] == 0, float('-inf')), dim=3).matmul(v)",
        HEADS + ", torch.ones(ROWS, COLS)",
        "q, k, v, m",
    ),
    "without_softmax": reference("F.relu((q @ k.transpose(-2, -1)) * 0.3) @ v", HEADS, "q, k, v"),
    "half": reference("F.scaled_dot_product_attention(q, k, v)", HALF, "q, k, v"),
    "heads_apart": reference(
        "F.scaled_dot_product_attention(x.view(2, ROWS, 4, -1).transpose(1, 2), x.view(2, ROWS, 4, -1).transpose(1, 2), "
        "y.view(2, ROWS, 4, -1).transpose(1, 2))".replace("ROWS", "x.shape[1]"),
        "torch.randn(2, ROWS, 4 * DIM), torch.randn(2, ROWS, 4 * DIM)",
        "x, y",
    ),
}  # fmt: skip
"""Attention in its variants."""
