"""Small references of products with computed operands, and of several products."""

from __future__ import annotations

HEAD = "import torch\nimport torch.nn.functional as F\n\nROWS = 33\nCOLS = 36\nDIM = 67\n\n"
TAIL = "\n\ndef example_inputs():\n    return ({inputs},)\n"
BF16, HALF = "dtype=torch.bfloat16", "dtype=torch.float16"
WEIGHTS = "torch.randint(-127, 128, (COLS, DIM), dtype=torch.int8)"
BYTES = "torch.randint(0, 256, (COLS, 32), dtype=torch.uint8)"


def reference(body: str, inputs: str, arguments: str) -> str:
    """Write a reference of the plain form with a body of its own."""
    return f"{HEAD}def sample({arguments}):\n    {body}\n{TAIL.format(inputs=inputs)}"


COMPUTED: dict[str, str] = {
    "int4_groups": reference(
        "codes = torch.stack((packed & 15, packed >> 4), dim=-1).reshape(packed.shape[0], -1)\n"
        "    groups = codes.reshape(codes.shape[0], -1, 16).to(x.dtype)\n"
        "    return x @ ((groups - zeros[..., None]) * scales[..., None]).reshape(codes.shape).t()",
        f"torch.randn(ROWS, 64, {HALF}), {BYTES}, torch.rand(COLS, 4).half(), torch.randint(4, 12, (COLS, 4)).half()",
        "x, packed, scales, zeros",
    ),
    "int4_long_groups": reference(
        "codes = torch.stack((packed & 15, packed >> 4), dim=-1).reshape(packed.shape[0], -1)\n"
        "    groups = codes.reshape(codes.shape[0], -1, 64).to(x.dtype)\n"
        "    return x @ ((groups - zeros[..., None]) * scales[..., None]).reshape(codes.shape).t()",
        f"torch.randn(ROWS, 256, {HALF}), torch.randint(0, 256, (COLS, 128), dtype=torch.uint8), torch.rand(COLS, 4).half(), "
        "torch.randint(4, 12, (COLS, 4)).half()",
        "x, packed, scales, zeros",
    ),
    "int4_words": reference(
        "shifts = torch.arange(0, 32, 4, device=packed.device)\n"
        "    codes = ((packed[:, :, None] >> shifts) & 15).reshape(packed.shape[0], -1)\n"
        "    groups = codes.reshape(codes.shape[0], -1, 128).to(x.dtype) - zeros[..., None].to(x.dtype)\n"
        "    return x @ (groups * scales[..., None]).reshape(codes.shape).T",
        f"torch.randn(ROWS, 256, {HALF}), torch.randint(-2**31, 2**31 - 1, (COLS, 32), dtype=torch.int32), torch.rand(COLS, 2).half(), "
        "torch.randint(4, 12, (COLS, 2), dtype=torch.int32)",
        "x, packed, scales, zeros",
    ),
    "int4_rows_of_words": reference(
        "places = torch.arange(0, 32, 4, dtype=torch.int32, device=x.device)[None]\n"
        "    zeros = (packed_zeros[:, :, None] >> places[None]).to(torch.int8) & 15\n"
        "    zeros = (zeros + 1).reshape(scales.shape[0], 1, scales.shape[1])\n"
        "    codes = (packed[:, None].expand(-1, 8, -1) >> places[..., None]).to(torch.int8) & 15\n"
        "    weights = scales[:, None] * (codes.reshape(-1, 128, packed.shape[1]) - zeros)\n"
        "    return x @ weights.reshape(-1, packed.shape[1])",
        f"torch.randn(ROWS, 256, {HALF}), torch.randint(-2**31, 2**31 - 1, (32, 40), dtype=torch.int32), "
        "torch.randint(-2**31, 2**31 - 1, (2, 5), dtype=torch.int32), torch.rand(2, 40).half()",
        "x, packed, packed_zeros, scales",
    ),
    "int8_channels": reference(
        "return x @ (w.to(x.dtype) * scale[:, None]).t()",
        f"torch.randn(ROWS, DIM, {BF16}), {WEIGHTS}, torch.rand(COLS).bfloat16()",
        "x, w, scale",
    ),
    "rounded_rows": reference(
        "rounded = torch.round(x.float() / scale[:, None]).clamp(-127, 127)\n"
        "    return (rounded @ w.to(rounded.dtype).t()) * scale[:, None] + b",
        f"torch.randn(ROWS, DIM, {HALF}), {WEIGHTS}, 0.01 + torch.rand(ROWS), torch.randn(COLS)",
        "x, w, scale, b",
    ),
    "float8": reference(
        "rounded = (x.float() / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn).to(x.dtype)\n"
        "    return ((rounded @ w.to(x.dtype).t()).float() * scale).to(x.dtype)",
        f"torch.randn(ROWS, DIM, {BF16}), torch.randn(COLS, DIM).to(torch.float8_e4m3fn), 0.01 + torch.rand(1)",
        "x, w, scale",
    ),
    "gated": reference(
        "return F.silu(x @ gate + b) * (x @ up.t())",
        "torch.randn(ROWS, DIM), torch.randn(DIM, COLS), torch.randn(COLS, DIM), torch.randn(COLS)",
        "x, gate, up, b",
    ),
    "gated_beside_channels": reference(
        "return z + (F.silu(x @ gate) * (x @ up)).permute(0, 3, 1, 2)",
        "torch.randn(2, 3, ROWS, DIM), torch.randn(DIM, COLS), torch.randn(DIM, COLS), torch.randn(2, COLS, 3, ROWS)",
        "x, gate, up, z",
    ),
    "low_rank": reference(
        "return x @ w + (h @ up) * 2.0",
        f"torch.randn(ROWS, DIM, {BF16}), torch.randn(DIM, COLS, {BF16}), torch.randn(ROWS, 5, {BF16}), torch.randn(5, COLS, {BF16})",
        "x, w, h, up",
    ),
    "logarithms": reference("return torch.log(x) @ torch.log(y)", "torch.rand(ROWS, DIM) + 0.1, torch.rand(DIM, COLS) + 0.1", "x, y"),
    "gated_batches": reference(
        "return F.silu(torch.bmm(x, a)) * torch.bmm(x, b)",
        f"torch.randn(2, ROWS, DIM, {HALF}), torch.randn(2, DIM, COLS, {HALF}), torch.randn(2, DIM, COLS, {HALF})",
        "x, a, b",
    ),
    "block_scales": reference(
        "wide, spread = x.float() * a.repeat_interleave(16, dim=1), b.repeat_interleave(16, dim=0).repeat_interleave(16, dim=1)\n"
        "    return wide @ (w.float() * spread).t()",
        f"torch.randn(ROWS, 64, {BF16}), torch.rand(ROWS, 4), torch.randn(32, 64, {BF16}), torch.rand(2, 4)",
        "x, a, w, b",
    ),
}
"""By name: source text."""
