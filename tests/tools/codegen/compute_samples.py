"""Small references of the compute-bound families: attention, products, convolutions."""

from __future__ import annotations

HEAD = "import torch\nimport torch.nn.functional as F\n\nROWS = 33\nCOLS = 70\nDIM = 24\nWIDE = 40\n\n"
TAIL = "\n\ndef example_inputs():\n    return ({inputs},)\n"
HEADS = "torch.randn(2, 3, ROWS, DIM), torch.randn(2, 3, COLS, DIM), torch.randn(2, 3, COLS, WIDE)"
HALF = HEADS.replace(")", ", dtype=torch.float16)")


def reference(body: str, inputs: str, arguments: str) -> str:
    """Write a reference of the plain form that returns `body`."""
    return f"{HEAD}def sample({arguments}):\n    return {body}\n{TAIL.format(inputs=inputs)}"


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
    "wide_heads": reference("F.scaled_dot_product_attention(q, k, v) + 1", HEADS.replace("DIM", "272"), "q, k, v"),
    "half": reference("F.scaled_dot_product_attention(q, k, v)", HALF, "q, k, v"),
    "heads_apart": reference(
        "F.scaled_dot_product_attention(x.view(2, ROWS, 4, -1).transpose(1, 2), x.view(2, ROWS, 4, -1).transpose(1, 2), "
        "y.view(2, ROWS, 4, -1).transpose(1, 2))".replace("ROWS", "x.shape[1]"),
        "torch.randn(2, ROWS, 4 * DIM), torch.randn(2, ROWS, 4 * DIM)",
        "x, y",
    ),
}  # fmt: skip
"""Attention in its variants."""

PRODUCTS: dict[str, str] = {
    "plain": reference("F.relu(x @ y - 1)", "torch.randn(ROWS, COLS), torch.randn(COLS, DIM)", "x, y"),
    "turned": reference("x.T @ y.T", "torch.randn(COLS, ROWS), torch.randn(DIM, COLS)", "x, y"),
    "batched": reference(
        "torch.tanh(torch.bmm(x, y) * b)", "torch.randn(3, ROWS, COLS), torch.randn(3, COLS, DIM), torch.randn(DIM)", "x, y, b"
    ),
    "shared_right": reference("x @ y", "torch.randn(2, 3, ROWS, COLS), torch.randn(COLS, DIM)", "x, y"),
    "one_new_token": reference("F.linear(x, w, b)", "torch.randn(ROWS, 1, COLS), torch.randn(DIM, COLS), torch.randn(DIM)", "x, w, b"),
    "einsum": reference("torch.einsum('bijl,lk->bijk', x, y)", "torch.randn(2, 3, ROWS, COLS), torch.randn(COLS, DIM)", "x, y"),
    "written_out_view": reference(
        "F.linear(x.view(2, x.shape[1], 4, -1).permute(0, 3, 1, 2).reshape(2, x.shape[1], -1), w)",
        "torch.randn(2, ROWS, 4 * DIM), torch.randn(WIDE, 4 * DIM)",
        "x, w",
    ),
    "beside_channels": reference(
        "z + F.linear(x, w).permute(0, 3, 1, 2)",
        "torch.randn(2, 3, ROWS, COLS), torch.randn(DIM, COLS), torch.randn(2, DIM, 3, ROWS)",
        "x, w, z",
    ),
    "wide_range": reference("x @ y", "torch.randn(ROWS, COLS) ** 9 * 1e18, torch.randn(COLS, DIM) ** 9 * 1e-30", "x, y"),
    "lower_triangle": reference("torch.tril(x @ x.T) * 2", "torch.randn(COLS, DIM)", "x"),
    "upper_triangle": reference("torch.triu(x @ y, diagonal=1)", "torch.randn(ROWS, DIM), torch.randn(DIM, COLS)", "x, y"),
}
"""Products that have tiles."""

THIN: dict[str, str] = {
    "matrix_vector": reference("x @ y", "torch.randn(ROWS, COLS), torch.randn(COLS, 1)", "x, y"),
    "vector": reference(
        "(torch.mv(x, y), torch.dot(y, y), z @ x)", "torch.randn(ROWS, COLS), torch.randn(COLS), torch.randn(ROWS)", "x, y, z"
    ),
    "one_row": reference("F.linear(x, w, b)", "torch.randn(1, COLS), torch.randn(ROWS, COLS), torch.randn(ROWS)", "x, w, b"),
    "outer": reference("torch.relu(x @ y)", "torch.randn(ROWS, 1), torch.randn(1, COLS)", "x, y"),
    "batched_vector": reference("torch.bmm(x, y)", "torch.randn(3, ROWS, COLS), torch.randn(3, COLS, 1)", "x, y"),
}
"""Products without: reductions and outer products."""

DIAGONAL = reference("torch.diag(a) @ x + x @ torch.diag(b)", "torch.randn(ROWS), torch.randn(COLS), torch.randn(ROWS, COLS)", "a, b, x")


def module(constructor: str, forward: str, inputs: str) -> str:
    """Write a reference of the module form; its first constructor argument is the number of channels, 8."""
    lines = "\n        ".join(constructor.split("; "))
    body = "\n        ".join(forward.split("; "))
    return (
        f"{HEAD}class Model(torch.nn.Module):\n    def __init__(self, c):\n        super().__init__()\n        {lines}\n\n"
        f"    def forward(self, x):\n        {body}\n\n\ndef get_inputs():\n    return [{inputs}]\n\n\n"
        "def get_init_inputs():\n    return [8]\n"
    )


CONVOLUTIONS: dict[str, str] = {
    "chain": module(
        "self.conv = torch.nn.Conv2d(c, 12, 3, padding=1); self.up = torch.nn.ConvTranspose2d(12, 6, 2, stride=2); "
        "self.bias = torch.nn.Parameter(torch.randn(12, 1, 1))",
        "y = torch.tanh(torch.relu(self.conv(x)) + self.bias) * 2; z = torch.sigmoid(self.up(y)); "
        "return z, z.mean(dim=(2, 3)), torch.softmax(y, dim=1)",
        "torch.randn(3, 8, 9, 10)",
    ),
    "parts": module(
        "self.conv = torch.nn.Conv2d(c, 2, 3)",
        "y = self.conv(x); a = y[:, :1]; b = y[:, 1:]; return torch.sqrt(a * a + b * b + 1), torch.atan2(b, a)",
        "torch.randn(3, 8, 9, 10)",
    ),
    "volume": module(
        "self.conv = torch.nn.Conv3d(c, 6, 3, stride=2, dilation=2); self.norm = torch.nn.GroupNorm(3, 6)",
        "return self.norm(F.gelu(self.conv(x))) * 3",
        "torch.randn(2, 8, 7, 9, 8)",
    ),
    "mixed": module(
        "self.conv = torch.nn.Conv2d(c, c, 3, padding=1, groups=2)",
        "y = self.conv(x) + x; return F.max_pool2d(torch.relu(y), 2), torch.flatten(y, 1)",
        "torch.randn(2, 8, 6, 7)",
    ),
    "moved": module(
        "self.conv = torch.nn.Conv2d(c, 12, 3); self.frames = c // 4; self.up = torch.nn.Conv2d(12, 4, 2)",
        "v = x.view(-1, self.frames, *x.shape[1:]); w = torch.zeros_like(v); w[:, 1:, :3] = v[:, :-1, :3]; w[:, :, 3:] = v[:, :, 3:]; "
        "y = self.conv(w.view(x.shape)); return self.up(torch.cat([y[..., -1:], y, y[..., :1]], -1)).mean((1, 2))",
        "torch.randn(6, 8, 9, 10)",
    ),
}
"""Convolutions that stay with the library, and what stands around them."""

DIRECT: dict[str, str] = {
    "depthwise": module(
        "self.conv = torch.nn.Conv2d(c, c, (3, 5), padding=(1, 2), stride=(1, 2), groups=c)",
        "return torch.relu(self.conv(x)) * 2",
        "torch.randn(3, 8, 11, 19)",
    ),
    "dilated": module(
        "self.conv = torch.nn.Conv2d(c, c, 3, dilation=2, groups=c, bias=False)", "return self.conv(x)", "torch.randn(3, 8, 11, 19)"
    ),
    "depthwise_far": module(
        "self.conv = torch.nn.Conv2d(c, c, (5, 3), padding=(4, 1), stride=(2, 1), dilation=(3, 2), groups=c, bias=False)",
        "return self.conv(x)",
        "torch.randn(2, 8, 21, 17)",
    ),
    "depthwise_half": module(
        "self.conv = torch.nn.Conv2d(c, c, (4, 3), padding=(2, 1), stride=(3, 1), groups=c, dtype=torch.float16); "
        "self.scale = torch.nn.Parameter(torch.randn(8, 1, 1).half())",
        "return self.conv(x) * self.scale",
        "torch.randn(2, 8, 18, 37, dtype=torch.float16)",
    ),
    "depthwise_pairs": module(
        "self.conv = torch.nn.Conv2d(c, c, 3, padding=1, stride=2, groups=c)", "return self.conv(x)", "torch.randn(2, 8, 11, 32)"
    ),
    "depthwise_pairs_inside": module(
        "self.conv = torch.nn.Conv3d(c, c, (2, 3, 3), padding=(1, 0, 0), stride=(1, 1, 2), groups=c)",
        "return self.conv(x)",
        "torch.randn(1, 8, 2, 7, 16)",
    ),
    "depthwise_large": module(
        "self.conv = torch.nn.Conv2d(c, c, 9, padding=4, groups=c)", "return self.conv(x)", "torch.randn(1, 8, 11, 13)"
    ),
    "depthwise_transposed_even": module(
        "self.conv = torch.nn.ConvTranspose2d(c, c, (3, 2), padding=(1, 0), dilation=(1, 2), groups=c)",
        "return torch.relu(self.conv(x))",
        "torch.randn(2, 8, 11, 13)",
    ),
    "depthwise_transposed_even_volume": module(
        "self.conv = torch.nn.ConvTranspose3d(c, 2 * c, (2, 3, 3), padding=(1, 2, 0), groups=c, bias=False)",
        "return self.conv(x)",
        "torch.randn(1, 8, 3, 7, 6)",
    ),
    "one_channel": module(
        "self.conv = torch.nn.Conv2d(1, 6, (5, 3), padding=(0, 1), stride=(1, 2))",
        "return torch.relu(self.conv(x))",
        "torch.randn(3, 1, 11, 19)",
    ),
    "depthwise_lines": module(
        "self.conv = torch.nn.Conv1d(c, c, 5, padding='same', groups=c)", "return F.silu(self.conv(x))", "torch.randn(3, 8, 41)"
    ),
    "depthwise_turned_lines": module(
        "self.conv = torch.nn.Conv1d(c, 3 * c, 5, stride=2, dilation=2, groups=c)",
        "return self.conv(x.transpose(1, 2)) * 2",
        "torch.randn(3, 27, 8)",
    ),
    "depthwise_quads": module(
        "self.conv = torch.nn.Conv1d(c, 2 * c, 7, padding=3, groups=c)", "return F.silu(self.conv(x))", "torch.randn(3, 8, 48)"
    ),
    "depthwise_quads_causal": module(
        "self.conv = torch.nn.Conv1d(c, c, 4, padding=3, groups=c)",
        "return self.conv(x).sin() * 2",
        "torch.randn(2, 8, 64)",
    ),
    "depthwise_volume": module(
        "self.conv = torch.nn.Conv3d(c, c, (3, 2, 5), padding=(1, 0, 2), stride=(2, 1, 2), dilation=(1, 2, 1), groups=c)",
        "return torch.relu(self.conv(x)) + 1",
        "torch.randn(2, 8, 5, 7, 9)",
    ),
    "depthwise_several": module(
        "self.conv = torch.nn.Conv3d(c, 2 * c, 3, groups=c, bias=False)", "return self.conv(x)", "torch.randn(1, 8, 4, 5, 6)"
    ),
    "depthwise_transposed": module(
        "self.conv = torch.nn.ConvTranspose2d(c, c, (3, 4), padding=(1, 2), stride=(1, 3), output_padding=1, dilation=(2, 3), groups=c)",
        "return torch.tanh(self.conv(x))",
        "torch.randn(2, 8, 6, 5)",
    ),
    "depthwise_transposed_lines": module(
        "self.conv = torch.nn.ConvTranspose1d(c, 2 * c, 4, stride=2, padding=1, groups=c, bias=False)",
        "return self.conv(x)",
        "torch.randn(2, 8, 13)",
    ),
    "depthwise_transposed_volume": module(
        "self.conv = torch.nn.ConvTranspose3d(c, c, 2, stride=2, groups=c)", "return self.conv(x)", "torch.randn(2, 8, 2, 3, 4)"
    ),
    "pointwise": module("self.conv = torch.nn.Conv2d(c, 20, 1)", "return F.gelu(self.conv(x))", "torch.randn(3, 8, 7, 9)"),
    "single_position": module("self.conv = torch.nn.Conv2d(c, 20, 1)", "return F.gelu(self.conv(x))", "torch.randn(3, 8, 1, 1)"),
    "pointwise_volume": module("self.conv = torch.nn.Conv3d(c, 20, 1, bias=False)", "return self.conv(x)", "torch.randn(2, 8, 3, 5, 7)"),
    "dense": module(
        "self.conv = torch.nn.Conv2d(17, 20, (3, 5), padding=(0, 2), stride=(1, 2), dilation=(2, 1), bias=False)",
        "return torch.relu(self.conv(x)) + 1",
        "torch.randn(3, 17, 9, 11)",
    ),
    "few_channels": module("self.conv = torch.nn.Conv1d(c, 20, 3, stride=2, dilation=3)", "return self.conv(x)", "torch.randn(3, 8, 31)"),
    "dense_volume": module(
        "self.conv = torch.nn.Conv3d(c, 12, (3, 1, 2), stride=2, padding=(1, 0, 1))", "return self.conv(x)", "torch.randn(2, 8, 7, 9, 8)"
    ),
    "transposed": module(
        "self.conv = torch.nn.ConvTranspose3d(17, 20, (3, 2, 5), stride=(2, 1, 3), padding=(1, 0, 2), output_padding=(1, 0, 0))",
        "return torch.sigmoid(self.conv(x))",
        "torch.randn(2, 17, 4, 3, 5)",
    ),
    "transposed_with_gaps": module(
        "self.conv = torch.nn.ConvTranspose2d(c, 20, 2, stride=(1, 3))", "return self.conv(x)", "torch.randn(1, 8, 5, 7)"
    ),
    "transposed_strided_dilated": module(
        "self.conv = torch.nn.ConvTranspose2d(c, 20, (3, 4), stride=(2, 4), dilation=(3, 2), padding=(1, 2), output_padding=(1, 0))",
        "return self.conv(x) * 2",
        "torch.randn(2, 8, 7, 5)",
    ),
    "groups": module(
        "self.conv = torch.nn.Conv2d(54, 63, 3, padding=1, stride=(2, 1), groups=3)",
        "return torch.relu(self.conv(x)) * 2",
        "torch.randn(2, 54, 7, 6)",
    ),
    "few_in_groups": module(
        "self.conv = torch.nn.Conv2d(c, 20, 1, groups=4, bias=False)", "return self.conv(x)", "torch.randn(3, 8, 5, 7)"
    ),
    "line_in_groups": module("self.conv = torch.nn.Conv1d(c, 6, 5, dilation=2, groups=2)", "return self.conv(x)", "torch.randn(2, 8, 19)"),
    "transposed_in_groups": module(
        "self.conv = torch.nn.ConvTranspose3d(36, 10, (3, 2, 3), stride=(2, 1, 2), padding=(1, 0, 1), output_padding=(1, 0, 0), groups=2)",
        "return torch.tanh(self.conv(x))",
        "torch.randn(2, 36, 3, 4, 3)",
    ),
    "single_results_in_groups": module(
        "self.conv = torch.nn.ConvTranspose2d(c, 4, 3, stride=2, groups=4)", "return self.conv(x)", "torch.randn(1, 8, 5, 4)"
    ),
    "transposed_line": module(
        "self.conv = torch.nn.ConvTranspose1d(17, 20, 5, stride=2, dilation=2, padding=1)", "return self.conv(x)", "torch.randn(2, 17, 9)"
    ),
    "transposed_dilated": module(
        "self.conv = torch.nn.ConvTranspose1d(c, 20, 3, dilation=2, padding=1)", "return self.conv(x)", "torch.randn(2, 8, 13)"
    ),
}
"""Convolutions that are generated."""
