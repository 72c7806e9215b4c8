"""Small references of attention in its variants: grouped heads, windows, biases by distance, caps, single queries, quantised caches."""

from __future__ import annotations

from tests.tools.codegen.product_samples import BF16, HALF

HEAD = "import torch\nimport torch.nn.functional as F\n\nROWS = 33\nCOLS = 70\nDIM = 24\nWIDE = 40\n\n"
TAIL = "\n\ndef example_inputs():\n    return ({inputs},)\n"
GROUPED = "torch.randn(2, 6, ROWS, DIM), torch.randn(2, 2, COLS, DIM), torch.randn(2, 2, COLS, WIDE)"
SQUARE = "torch.randn(2, 3, ROWS, DIM), torch.randn(2, 3, ROWS, DIM), torch.randn(2, 3, ROWS, WIDE)"
CACHE = "torch.randint(-127, 128, (2, 3, COLS, DIM), dtype=torch.int8), (0.01 + 0.01 * torch.rand(2, 3, COLS)).half()"
PLACES = "i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]\n    "


def reference(body: str, inputs: str, arguments: str) -> str:
    """Write a reference of the plain form with a body of its own."""
    return f"{HEAD}def sample({arguments}):\n    {body}\n{TAIL.format(inputs=inputs)}"


VARIANTS: dict[str, str] = {
    "grouped": reference("return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)", GROUPED, "q, k, v"),
    "repeated_heads": reference(
        "return F.scaled_dot_product_attention(q, k.repeat_interleave(3, dim=1), v.repeat_interleave(3, dim=1), is_causal=True)",
        GROUPED,
        "q, k, v",
    ),
    "window": reference(
        f"{PLACES}scores = (q @ k.transpose(-2, -1) * 0.3).masked_fill((j > i) | (i - j >= 9), float('-inf'))\n"
        "    return torch.softmax(scores, -1) @ v",
        SQUARE,
        "q, k, v",
    ),
    "added_window": reference(
        f"{PLACES}mask = torch.triu(torch.full((q.shape[2], k.shape[2]), float('-inf')), 1)\n"
        "    mask = mask + torch.where(i - j >= 9, float('-inf'), 0.0)\n"
        "    return torch.softmax(q @ k.transpose(-2, -1) * 0.3 + mask, -1) @ v",
        SQUARE,
        "q, k, v",
    ),
    "capped_by_distance": reference(
        f"{PLACES}scores = 50.0 * torch.tanh((q @ k.transpose(-2, -1) * 0.3 + slope[:, None, None] * (j - i)) / 50.0)\n"
        "    return torch.softmax(scores.masked_fill(j > i + 2, float('-inf')), -1) @ v",
        f"{SQUARE}, torch.rand(3)",
        "q, k, v, slope",
    ),
    "decode": reference(
        "q = q.unflatten(1, (k.shape[1], -1))\n"
        "    outside = (torch.arange(k.shape[2]) >= lengths[:, None])[:, None, None]\n"
        "    scores = (torch.einsum('bkgd,bkld->bkgl', q, k) * 0.3).masked_fill(outside, float('-inf'))\n"
        "    return torch.einsum('bkgl,bkld->bkgd', torch.softmax(scores, -1), v).flatten(1, 2)",
        "torch.randn(2, 6, DIM), torch.randn(2, 2, COLS, DIM), torch.randn(2, 2, COLS, WIDE), torch.randint(5, 30, (2,))",
        "q, k, v, lengths",
    ),
    "sink": reference(
        f"{PLACES}scores = (q @ k.transpose(-2, -1) * 0.3).masked_fill(j > i, float('-inf'))\n"
        "    weights = torch.softmax(torch.cat((scores, s[None, :, None, None].expand(q.shape[0], -1, q.shape[2], 1)), -1), -1)\n"
        "    return weights[..., :-1] @ v",
        f"{SQUARE}, torch.randn(3)",
        "q, k, v, s",
    ),
    "sink_of_one_query": reference(
        "scores = torch.cat((torch.einsum('bhd,bhld->bhl', q, k) * 0.3, s[None, :, None].expand(q.shape[0], -1, 1)), -1)\n"
        "    return torch.einsum('bhl,bhld->bhd', torch.softmax(scores, -1)[..., :-1], v)",
        "torch.randn(2, 3, DIM), torch.randn(2, 3, COLS, DIM), torch.randn(2, 3, COLS, WIDE), torch.randn(3)",
        "q, k, v, s",
    ),
    "paged": reference(
        "k, v = k_pages[table].flatten(1, 2), v_pages[table].flatten(1, 2)\n"
        "    outside = (torch.arange(k.shape[1]) >= lengths[:, None])[:, None]\n"
        "    scores = (torch.einsum('bhd,blhd->bhl', q, k) * 0.3).masked_fill(outside, float('-inf'))\n"
        "    return torch.einsum('bhl,blhd->bhd', torch.softmax(scores, -1), v)",
        "torch.randn(2, 3, DIM), torch.randn(9, 4, 3, DIM), torch.randn(9, 4, 3, WIDE), torch.randint(-9, 9, (2, 5)), "
        "torch.randint(1, 21, (2,))",
        "q, k_pages, v_pages, table, lengths",
    ),
    "paged_for_grouped_heads": reference(
        "k, v = k_pages[table].flatten(1, 2), v_pages[table].flatten(1, 2)\n"
        "    weights = torch.softmax(torch.einsum('bkgd,blkd->bkgl', q.unflatten(1, (2, 3)), k).float() * 0.3, -1).to(q.dtype)\n"
        "    return torch.einsum('bkgl,blkd->bkgd', weights, v).flatten(1, 2)",
        f"torch.randn(2, 6, DIM, {HALF}), torch.randn(9, 4, 2, DIM, {HALF}), torch.randn(9, 4, 2, WIDE, {HALF}), "
        "torch.randint(0, 9, (2, 5))",
        "q, k_pages, v_pages, table",
    ),
    "chosen_keys": reference(
        "b, h = torch.arange(k.shape[0])[:, None, None], torch.arange(k.shape[2])[None, :, None]\n"
        "    scores = (q.unflatten(1, (2, 3)) @ k[b, token, h].transpose(-1, -2)).float() * 0.3\n"
        "    scores = scores.masked_fill((token >= lengths[:, None, None])[:, :, None], float('-inf'))\n"
        "    log_sum = torch.logsumexp(scores, -1)\n"
        "    return torch.exp(scores - log_sum[..., None]).to(v.dtype) @ v[b, token, h], log_sum.flatten(1)",
        f"torch.randn(2, 6, DIM, {HALF}), torch.randn(2, COLS, 2, DIM, {HALF}), torch.randn(2, COLS, 2, WIDE, {HALF}), "
        "torch.randint(-9, 9, (2, 2, 33)), torch.randint(5, 9, (2,))",
        "q, k, v, token, lengths",
    ),
    "log_sum": reference(
        f"{PLACES}scores = (q @ k.transpose(-2, -1) * 0.3).masked_fill((j > i) | (i - j >= 9), float('-inf'))\n"
        "    return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1, keepdim=True) * 2",
        SQUARE,
        "q, k, v",
    ),
    "joined_cache": reference(
        "k, v = torch.cat((k, k_new), 2), torch.cat((v, v_new), 2)\n"
        "    return torch.softmax((q @ k.transpose(-2, -1) * 0.3).masked_fill(~sees, float('-inf')), -1) @ v",
        "torch.randn(2, 3, 5, DIM), torch.randn(2, 3, COLS, DIM), torch.randn(2, 3, COLS, WIDE), torch.randn(2, 3, 5, DIM), "
        "torch.randn(2, 3, 5, WIDE), torch.rand(5, COLS + 5) < 0.7",
        "q, k, v, k_new, v_new, sees",
    ),
    "retention": reference(
        f"{PLACES}fade = torch.exp(-rate[:, None, None] * (i - j).clamp(min=0)) * (i >= j)\n"
        "    scores = torch.einsum('bhqd,bhkd->bhqk', q, k).float() * fade\n"
        "    scores = scores / scores.abs().sum(-1, keepdim=True).clamp(min=1.0)\n"
        "    return torch.einsum('bhqk,bhkd->bhqd', scores.to(v.dtype), v)",
        f"torch.randn(2, 3, ROWS, DIM, {BF16}), torch.randn(2, 3, ROWS, DIM, {BF16}), torch.randn(2, 3, ROWS, WIDE, {BF16}), torch.rand(3)",
        "q, k, v, rate",
    ),
    "squared_relu": reference(
        "scores = (torch.relu(q @ k.transpose(-2, -1)) ** 2).tril()\n    return (scores * (1 / (1 + scores.sum(-1)))[..., None]) @ v",
        SQUARE,
        "q, k, v",
    ),
    "divided_afterwards": reference(
        "w = torch.exp(2 * torch.tanh(q @ k.transpose(-2, -1) * 0.3))\n    return (w @ v) / w.sum(-1, keepdim=True)",
        SQUARE,
        "q, k, v",
    ),
    "normalised": reference("return F.normalize(torch.tanh(q @ k.transpose(-2, -1)), p=1, dim=-1) @ v", SQUARE, "q, k, v"),
    "normalised_by_squares": reference("return F.normalize(q @ k.transpose(-2, -1), dim=-1) @ v", SQUARE, "q, k, v"),
    "divided_for_one_query": reference(
        "s = torch.relu(torch.einsum('bhd,bhld->bhl', q, k)) + 0.1\n"
        "    return torch.einsum('bhl,bhld->bhd', s / s.sum(-1, keepdim=True), v)",
        "torch.randn(2, 3, DIM), torch.randn(2, 3, COLS, DIM), torch.randn(2, 3, COLS, WIDE)",
        "q, k, v",
    ),
    "sigmoid_window": reference(
        f"{PLACES}near = (i >= j) & (i - j < 9)\n    return torch.where(near, torch.sigmoid(q @ k.transpose(-2, -1) * 0.3), 0.0) @ v",
        SQUARE,
        "q, k, v",
    ),
    "quantised_cache": reference(
        "k, v = k.to(q.dtype) * k_scale[..., None], v.to(q.dtype) * v_scale[..., None]\n"
        "    scores = torch.matmul(q[:, :, None], k.transpose(-1, -2)) * 0.3\n"
        "    return torch.matmul(torch.softmax(scores.float(), -1).to(q.dtype), v).squeeze(2)",
        f"torch.randn(2, 3, DIM, {HALF}), {CACHE}, {CACHE}",
        "q, k, k_scale, v, v_scale",
    ),
    "keys_of_all_heads": reference(
        "return torch.softmax(q @ k.t() * 0.3, -1) @ v",
        "torch.randn(2, 3, ROWS, DIM), torch.randn(COLS, DIM), torch.randn(2, 3, COLS, WIDE)",
        "q, k, v",
    ),
    "mixture": reference(
        "return torch.bmm(torch.softmax(F.linear(q, k), -1).unsqueeze(1), v).squeeze(1)",
        "torch.randn(ROWS, DIM), torch.randn(COLS, DIM), torch.randn(ROWS, COLS, WIDE)",
        "q, k, v",
    ),
    "brain": reference(
        "weights = torch.softmax((q @ k.transpose(-2, -1)).float() * 0.3, -1)\n    return weights.to(q.dtype) @ v",
        SQUARE.replace(")", f", {BF16})"),
        "q, k, v",
    ),
}
"""By name: source text."""
NO_SOFTMAX = frozenset(
    {"retention", "squared_relu", "divided_afterwards", "normalised", "normalised_by_squares", "divided_for_one_query", "sigmoid_window"}
)
"""Those whose weights are no softmax, so that their keys are not split."""
