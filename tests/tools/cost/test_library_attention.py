"""What PyTorch's own attention is modelled to take."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.schedule.plan import plan_region
from tools.cost.library import library_us
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy

QUERIES = "*(torch.randn(256, 4, 256, 32).half() for _ in range(3)), torch.randn(1, 4, 256, 256).half()"


def attention_us(mask: str) -> float:
    """Time of an attention that the library computes."""
    body = f"torch.nn.functional.scaled_dot_product_attention(q, k, v{mask})"
    _, graph = traced_text(function(body, QUERIES, "q, k, v, bias"), f"attention{len(mask)}")
    return library_us(plan_region(graph, ["scaled_dot_product_attention"]), load_sheet("h100"), PrecisionPolicy())


def test_a_mask_that_is_data_keeps_flash_attention_out() -> None:
    """With a bias for every score PyTorch takes kernels that are bound by the scores they make, not by bytes."""
    assert attention_us(", bias") > 3 * attention_us("")
    assert attention_us(", bias.expand(256, 4, 256, 256)") == attention_us(", bias")
