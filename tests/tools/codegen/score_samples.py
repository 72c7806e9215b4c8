"""Small references of attention whose scores are sums of products: latent, relative, disentangled, joined operands, shared caches."""

from __future__ import annotations

from tests.tools.codegen.attention_samples import reference
from tests.tools.codegen.product_samples import BF16, HALF

LATENT = (
    "torch.randn(2, 3, ROWS, DIM{0}), torch.randn(2, 3, ROWS, HEIGHT{0}), torch.randn(2, 3, COLS, DIM{0}), "
    "torch.randn(2, 1, COLS, HEIGHT{0}), torch.randn(2, 3, COLS, WIDE{0})"
)
NAMES = "q, q_rope, k, k_rope, v"
SUM = "(q @ k.transpose(-1, -2) + q_rope @ k_rope.transpose(-1, -2)) * 0.2"
JOINED = "q, k = torch.cat([q, q_rope], -1), torch.cat([k, k_rope.expand(-1, k.shape[1], -1, -1)], -1)\n    "
CACHE = "torch.randn(2, COLS, DIM), torch.randn(2, COLS, HEIGHT)"
PLAIN = "torch.randn(2, 3, ROWS, DIM), torch.randn(2, 3, COLS, DIM), torch.randn(2, 3, COLS, WIDE)"


def sums(body: str, inputs: str, arguments: str) -> str:
    """Write a reference with a second width of heads."""
    return reference(body, inputs, arguments).replace("DIM = 24\n", "DIM = 24\nHEIGHT = 12\n")


SUMS: dict[str, str] = {
    "latent": sums(
        "i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]\n"
        f"    return torch.softmax(({SUM}).masked_fill(j > i + 3, float('-inf')), -1) @ v",
        LATENT.format(""),
        NAMES,
    ),
    "latent_brain": sums(f"return torch.softmax(({SUM}).float(), -1).to(v.dtype) @ v", LATENT.format(f", {BF16}"), NAMES),
    "latent_half": sums(f"return torch.softmax({SUM}, -1) @ v", LATENT.format(f", {HALF}"), NAMES),
    "masked_with_scales": sums(
        "scores = q @ k.transpose(-1, -2) * 0.3 - 0.1 * (q_rope @ k_rope.transpose(-1, -2)).abs()\n"
        "    return torch.softmax(scores.masked_fill(~sees, float('-inf')) + bias, -1) @ v",
        f"{LATENT.format('')}, torch.rand(ROWS, COLS) < 0.7, torch.randn(3, 1, COLS)",
        f"{NAMES}, sees, bias",
    ),
    "without_softmax": sums(f"s = torch.exp(torch.tanh({SUM}))\n    return (s / s.sum(-1, keepdim=True)) @ v", LATENT.format(""), NAMES),
    "latent_cache": sums(
        "scores = (torch.einsum('bshc,btc->bsht', q, c) + torch.einsum('bshr,btr->bsht', q_rope, k_rope)) * 0.2\n"
        "    outside = (torch.arange(c.shape[1]) >= lengths[:, None])[:, None, None]\n"
        "    return torch.einsum('bsht,btc->bshc', torch.softmax(scores.masked_fill(outside, float('-inf')), -1), c)",
        f"torch.randn(2, 1, 6, DIM), torch.randn(2, 1, 6, HEIGHT), {CACHE}, torch.randint(5, 30, (2,))",
        "q, q_rope, c, k_rope, lengths",
    ),
    "latent_cache_of_few": sums(
        "scores = (q @ c[:, None].mT + q_rope @ k_rope[:, None].mT) * 0.2\n    return torch.softmax(scores, -1) @ c[:, None]",
        f"torch.randn(2, 6, 2, DIM), torch.randn(2, 6, 2, HEIGHT), {CACHE}",
        "q, q_rope, c, k_rope",
    ),
    "joined": sums(
        f"{JOINED}return torch.softmax(q @ k.transpose(2, 3) * 0.2 + mask, -1) @ v",
        f"{LATENT.format('')}, torch.randn(2, 1, ROWS, COLS)",
        f"{NAMES}, mask",
    ),
    "joined_operator": sums(f"{JOINED}return F.scaled_dot_product_attention(q, k, v, is_causal=True)", LATENT.format(f", {BF16}"), NAMES),
    "joined_einsum": sums(
        "q = torch.cat([q, q_rope, q], 3).transpose(1, 2)\n"
        "    k = torch.cat([k, k_rope.expand(-1, 3, -1, -1), k * 0.5], 3).transpose(1, 2)\n"
        "    return torch.einsum('bhst,bhtd->bshd', torch.softmax(torch.einsum('bshd,bthd->bhst', q, k) * 0.2, -1), v)",
        LATENT.format(""),
        NAMES,
    ),
    "joined_for_groups": sums(
        "q, k = torch.cat([q, qr], -1), torch.cat([k, kr], -1)\n    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)",
        "torch.randn(2, 6, 2, DIM), torch.randn(2, 6, 2, HEIGHT), torch.randn(2, 2, COLS, DIM), torch.randn(2, 2, COLS, HEIGHT), "
        "torch.randn(2, 2, COLS, WIDE)",
        "q, qr, k, kr, v",
    ),
    "relative": sums(
        "return torch.softmax(((q + u) @ k.mT + (q + w) @ p.mT) * 0.2, -1) @ v",
        f"{PLAIN}, torch.randn(3, COLS, DIM), torch.randn(3, 1, DIM), torch.randn(3, 1, DIM)",
        "q, k, v, p, u, w",
    ),
    "bias_of_content": sums(
        "return torch.softmax((q @ k.mT + u @ k.mT + q @ p.mT) * 0.2, -1) @ v",
        f"{PLAIN}, torch.randn(3, COLS, DIM), torch.randn(3, 1, DIM)",
        "q, k, v, p, u",
    ),
    "disentangled": sums(
        "return torch.softmax((q @ k.mT + q @ pk.mT + pq @ k.mT) * 0.2, -1) @ v",
        f"{PLAIN}, torch.randn(COLS, DIM), torch.randn(ROWS, DIM)",
        "q, k, v, pk, pq",
    ),
    "bias_that_is_a_product": sums(
        "return F.scaled_dot_product_attention(q, k, v, attn_mask=q_rope @ k_rope.mT * 0.1)", LATENT.format(""), NAMES
    ),
    "outer_sum": sums(
        "return torch.softmax(q @ k.mT * 0.2 + a[..., None] + b[:, :, None], -1) @ v",
        f"{PLAIN}, torch.randn(2, 3, ROWS), torch.randn(2, 3, COLS)",
        "q, k, v, a, b",
    ),
    "itself": sums(
        "return torch.softmax((x @ x.mT + y @ y.mT) * 0.2, -1) @ x", "torch.randn(2, ROWS, DIM), torch.randn(2, ROWS, HEIGHT)", "x, y"
    ),
    "squares": sums(
        "return ((x @ a) ** 2 + (x @ b) ** 2) @ c",
        "torch.randn(ROWS, DIM), torch.randn(DIM, COLS), torch.randn(DIM, COLS), torch.randn(COLS, WIDE)",
        "x, a, b, c",
    ),
    "one_query_for_groups": sums(
        "return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)",
        "torch.randn(2, 6, 1, DIM), torch.randn(2, 2, COLS, DIM), torch.randn(2, 2, COLS, WIDE)",
        "q, k, v",
    ),
}
"""By name: source text."""
UNSPLIT = frozenset({"without_softmax", "squares"})
"""Those whose weights are no softmax, so that their keys are not split."""
COMPUTED = frozenset({"relative", "joined_einsum"})
"""Those with queries or keys that are computed, and so held whole."""
