"""What is said of an attention's launch before anything is compiled."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region
from tools.cost.launch_time import launch_time_us
from tools.hardware import load_sheet

SHEET = load_sheet("h100")
ROWS = "torch.randn(8, 256, 64).half(), torch.randn(8, 256, 64).half(), torch.randn(8, 256, 64).half(), torch.randn(8, 256, 256).half()"
PLAIN = function("torch.softmax(q @ k.transpose(1, 2) * 0.1, -1) @ v", ROWS, "q, k, v, bias")
BIASED = function("torch.softmax(q @ k.transpose(1, 2) * 0.1 + bias, -1) @ v", ROWS, "q, k, v, bias")
SETTING = {
    "BLOCK_M": 16, "BLOCK_N": 64, "SPLIT_KEYS": 1, "BLOCK_D": 64, "BLOCK_V": 64, "precision": "ieee", "num_warps": 4, "num_stages": 2,
}  # fmt: skip


def launch(source: str, name: str, **changes: int) -> LaunchWork:
    """Say what an attention with some parameters does."""
    _, graph = traced_text(source, name)
    planned = plan_region(graph, [node.name for node in graph.nodes if not is_view(node)])
    return planned.template.launches(planned.kernel, SETTING | changes, SHEET)[0]


def test_a_bias_of_every_score_is_read_and_added() -> None:
    """A tensor of as many elements as scores costs bytes from the L2, and instructions; so do its tiles in shared memory."""
    plain, biased = launch(PLAIN, "plain"), launch(BIASED, "biased")
    assert biased.l2_bytes - plain.l2_bytes == biased.programs * biased.steps * 16 * 64 * 2
    assert biased.lane_work > plain.lane_work
    assert biased.shared_bytes > plain.shared_bytes


def test_operands_of_few_rows_are_held_in_registers() -> None:
    """Older tensor instructions take keys and values from registers: half as many warps have twice as many of them each."""
    two, four = (launch(PLAIN, "plain", num_warps=warps).registers - 40 for warps in (2, 4))
    assert two == 2 * four > 2 * 64 * (64 + 64) / 2 / 128


def test_one_stage_loads_nothing_ahead() -> None:
    """Few warps that wait for keys and values, then multiply, take longer than as many that have the next ones on their way."""
    assert launch(PLAIN, "plain").ahead
    assert not launch(PLAIN, "plain", num_stages=1).ahead
    ahead = launch(PLAIN, "plain")
    assert launch_time_us(ahead._replace(ahead=False), SHEET) > launch_time_us(ahead, SHEET)


def test_a_sum_of_products_costs_what_each_of_them_does() -> None:
    """Two products of scores are two products' operations, and their keys two products' bytes; so says what is counted for the library."""
    operands = "torch.randn(8, 256, {0}).half(), torch.randn(8, 256, {0}).half()"
    body = "torch.softmax((q @ k.transpose(1, 2) + r @ s.transpose(1, 2)) * 0.1, -1) @ v"
    both = function(body, f"{operands.format(64)}, {operands.format(32)}, torch.randn(8, 256, 64).half()", "q, k, r, s, v")
    one, two = launch(PLAIN, "plain"), launch(both, "both")
    assert two.product_flops / one.product_flops == (64 + 32 + 64) / (64 + 64)
    assert two.dram_bytes - one.dram_bytes == 2 * 8 * 256 * 32 * 2
    graph = traced_text(both, "both")[1]
    planned = plan_region(graph, [node.name for node in graph.nodes if not is_view(node)])
    assert planned.template.products(planned.kernel).flops == 2 * 8 * 256 * 256 * (64 + 32 + 64)


def test_keys_that_are_values_come_from_memory_once() -> None:
    """A latent cache is read for both products at once: the bytes of memory and of the loop's tiles are those of its keys."""
    body = "torch.softmax(q @ c.transpose(1, 2) * 0.1, -1) @ {}"
    rows = ", ".join("torch.randn(8, 256, 64).half()" for _ in range(3))
    same, apart = (launch(function(body.format(name), rows, "q, c, v"), name) for name in ("c", "v"))
    assert apart.dram_bytes - same.dram_bytes == 8 * 256 * 64 * 2
    assert same.l2_bytes == apart.l2_bytes / 2
