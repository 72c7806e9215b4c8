"""What PyTorch's own attention is modelled to take."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region
from tools.cost.library import library_us
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy

QUERIES = "*(torch.randn(256, 4, 256, 32).half() for _ in range(3)), torch.randn(1, 4, 256, 256).half()"


def attention_us(mask: str, then: str = "") -> float:
    """Time of an attention that the library computes, with what follows."""
    body = f"torch.nn.functional.scaled_dot_product_attention(q, k, v{mask}){then}"
    _, graph = traced_text(function(body, QUERIES, "q, k, v, bias"), f"attention{len(mask)}{len(then)}")
    return library_us(plan_region(graph, [node.name for node in graph.nodes if not is_view(node)]), load_sheet("h100"), PrecisionPolicy())


def test_a_mask_that_is_data_keeps_flash_attention_out() -> None:
    """With a bias for every score PyTorch takes kernels that are bound by the scores they make, not by bytes."""
    assert attention_us(", bias") > 3 * attention_us("")
    assert attention_us(", bias.expand(256, 4, 256, 256)") == attention_us(", bias")


def test_a_gate_that_follows_is_no_mask() -> None:
    """A tensor that the result is multiplied by leaves FlashAttention in: it costs its bytes."""
    assert attention_us("", " * q") < 2 * attention_us("")
