"""Rows in order: what is picked, sorted and made of it in one kernel is what torch says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import covering, unlike
from tests.tools.codegen.harness import generated, made_once, run_worker, small, traced_text, unseen, write_job
from tests.tools.codegen.samples import function
from tests.tools.codegen.templates.tile.test_tiles import whole
from tools.codegen import emit, initial_schedule
from tools.codegen.ir.expr import LoweringError
from tools.codegen.schedule.plan import TILE, plan_region
from tools.codegen.templates.tile.knobs import tile_refusal
from tools.codegen.templates.tile.placement import tile_layout_of
from tools.records import Problem
from tools.references.graph_text import as_text

DISTINCT = "torch.randn(9, 70).argsort(-1).argsort(-1)"
SAMPLES = {
    "few": function("torch.topk(x, 5)", "torch.randn(9, 70)"),
    "many": function("torch.topk(x, 20, largest=False)", "torch.randn(9, 70)"),
    "of_half": function("torch.topk(x, 3)", f"({DISTINCT} - 35.0).bfloat16()"),
    "of_float16": function("torch.topk(x, 18, largest=False)", f"({DISTINCT} - 35.0).half()"),
    "of_whole_numbers": function("torch.topk(x, 4, largest=False)", f"({DISTINCT} - 35).int()"),
    "of_bytes": function("torch.topk(x, 4)", f"{DISTINCT}.to(torch.uint8)"),
    "of_columns": function("torch.topk(x, 3, dim=0)", "torch.randn(20, 7)"),
    "many_of_few_values": function("torch.topk(x, 20)[0]", "torch.randint(-2, 3, (9, 130)).float()"),
    "many_not_numbers": function("torch.topk(torch.where(x > 1.3, float('nan'), x), 20)[0].isnan()", "torch.randn(9, 130)"),
    "many_infinite": function("torch.topk(torch.where(x < 1, float('-inf'), x), 30)[0]", "torch.randn(9, 130)"),
    "many_of_negative_halves": function("torch.topk(x, 17)", f"({DISTINCT} - 100.0).bfloat16()"),
    "one": function("torch.topk(x, 1)", "torch.randn(9, 70)"),
    "of_a_vector": function("torch.topk(x, 6)", "torch.randn(70)"),
    "all_in_order": function("torch.sort(x)", "torch.randn(9, 70)"),
    "falling": function("torch.sort(x, dim=1, descending=True)", "torch.randn(3, 40, 5)"),
    "equal_ones_stay_in_order": function("torch.sort(x, stable=True)", "torch.randint(0, 5, (9, 70)).float()"),
    "equal_ones_falling": function("torch.argsort(x, dim=-1, descending=True, stable=True)", "torch.randint(0, 5, (9, 70)).bfloat16()"),
    "signed_zeros": function("torch.argsort(x, dim=-1, stable=True)", "torch.randint(-1, 2, (9, 70)) * 0.0"),
    "not_numbers": function("torch.topk(torch.where(x > 1, float('nan'), x), 40)[0].isnan()", "torch.randn(9, 70)"),
    "mostly_infinite": function("torch.topk(torch.where(x < 3, float('-inf'), x), 5)[0]", "torch.randn(9, 70)"),
    "routed": function("(lambda v, i: (v / v.sum(-1, keepdim=True), i))(*torch.softmax(x, -1).topk(4))", "torch.randn(9, 70)"),
    "routed_halves": function("torch.softmax(x.float(), -1).topk(4)", f"({DISTINCT} / 16.0 - 2).bfloat16()"),
    "sigmoids": function("torch.sigmoid(x * 2 + y).topk(4)", "torch.randn(9, 70), torch.randn(9, 1)", "x, y"),
    "falling_function": function("(x * -2.0).topk(4)", "torch.randn(9, 70)"),
    "gathered": function("y.gather(1, (x + y).topk(6)[1]) * 2", "torch.randn(9, 70), torch.randn(9, 70)", "x, y"),
    "gathered_by_sort": function("x.gather(1, y.argsort(1))", "torch.randn(9, 70), torch.randn(9, 70)", "x, y"),
    "gathered_softmax": function("x.softmax(-1).gather(1, (x + y).topk(6)[1])", "torch.randn(9, 70), torch.randn(70)", "x, y"),
    "of_the_best_groups": function(
        "(lambda s, g: x.gather(1, s.masked_fill(torch.zeros_like(g).scatter(1, g.topk(3)[1], 1.0)[..., None] == 0, float('-inf'))"
        ".flatten(1).topk(4)[1]))(x.view(-1, 7, 10), x.view(-1, 7, 10).topk(2)[0].sum(-1))",
        "torch.randn(9, 70)",
    ),
    "rows_of_neighbours": function("y[x.topk(5)[1]] - y[:, None]", "torch.randn(9, 9), torch.randn(9, 33)", "x, y"),
    "the_last_of_them": function("torch.where(x < x.topk(7)[0][:, -1:], 0.0, x)", "torch.randn(9, 70)"),
    "a_mask_of_them": function("x * torch.zeros_like(x).scatter(1, x.topk(7)[1], 1.0)", "torch.randn(9, 70)"),
    "weights_in_place": function("torch.zeros_like(x).scatter(1, x.topk(7)[1], x.topk(7)[0].softmax(-1))", "torch.randn(9, 70)"),
    "best_groups": function(
        "x.masked_fill(torch.zeros_like(x[..., 0]).scatter(1, x.topk(2)[0].sum(-1).topk(2)[1], 1.0)[..., None] == 0, -torch.inf)"
        ".flatten(1).topk(5)[1]",
        "torch.randn(9, 6, 10)",
    ),
    "rows_and_words": function(
        "(lambda i: (i // 20, i % 20, (i - 33) // 7, (i - 33) % -7))(x.flatten(1).topk(9)[1])", "torch.randn(3, 4, 20)"
    ),
    "few_whole_numbers": function("torch.sort(x.long(), descending=True)", "torch.arange(63).view(9, 7) * 5 % 64"),
    "largest_of_few": function("x.long().topk(3, largest=False)", "torch.arange(63).view(9, 7) * 5 % 64"),
    "few_equal_ones": function("torch.sort(x, stable=True)", "torch.randint(-2, 2, (9, 4)).half() * 0.5"),
    "few_falling": function("x.argsort(dim=-1, descending=True, stable=True)", "torch.randint(-2, 2, (9, 4)) * 0.5"),
    "few_not_numbers": function("torch.where(x > 1, float('nan'), x).sort(-1)[0].isnan()", "torch.randn(9, 4)"),
    "two_of_each_four": function(
        "x.unflatten(1, (-1, 4)).gather(-1, x.abs().unflatten(1, (-1, 4)).argsort(dim=-1, descending=True)[..., :2].sort(-1)[0])",
        "torch.randn(9, 24)",
    ),
    "until_a_share": function(
        "(lambda s, i: s.masked_fill(s.cumsum(-1) - s > 0.6, 0.0))(*x.softmax(-1).sort(-1, descending=True))", "torch.randn(9, 70)"
    ),
}
"""References that one nest holds."""
LONG = {
    "from_long_rows": function("torch.topk(x * 2, 5)", "torch.randn(3, 9001)"),
    "many_from_long_rows": function("torch.topk(x, 40)", "torch.randn(2, 9001)"),
    "hardly_any_numbers": function("torch.topk(torch.where(x < 3.4, -torch.inf, x), 20)[0]", "torch.randn(2, 9001)"),
}
"""References whose rows are too long for one program: two regions each."""
LEFT = "(lambda s: (lambda t: {})(s.topk(30)[0][:, -1:]))(x / y)"
INPUTS = "{}, torch.rand(2, 1) + 0.5"
OF_THE_BEST = LEFT.format("torch.softmax(s.masked_fill(s < t, -torch.inf), -1)")
KEPT = {
    "softmax_of_the_best": function(OF_THE_BEST, INPUTS.format("torch.randn(2, 9001) * 3"), "x, y"),
    "of_many_equal_ones": function(OF_THE_BEST, INPUTS.format("torch.randn(2, 9001).mul(3).round()"), "x, y"),
    "of_equal_ones_alone": function(OF_THE_BEST, INPUTS.format("torch.zeros(2, 9001)"), "x, y"),
    "of_negative_ones": function(OF_THE_BEST, INPUTS.format("-torch.rand(2, 9001) - 7"), "x, y"),
    "of_infinite_ones": function(
        OF_THE_BEST, INPUTS.format("torch.where(torch.arange(9001) % 500 == 3, torch.randn(2, 9001), -torch.inf)"), "x, y"
    ),
    "of_what_is_no_number": function(
        LEFT.format("torch.softmax(s.masked_fill(s < t, -torch.inf), -1)") + ".isnan()",
        INPUTS.format("torch.where(torch.arange(18002).view(2, 9001) == 700, torch.nan, torch.randn(2, 9001))"),
        "x, y",
    ),
    "zeros_elsewhere": function(LEFT.format("torch.where(s < t, 0.0, s)"), INPUTS.format("torch.randn(2, 9001)"), "x, y"),
    "what_reaches_it": function(LEFT.format("torch.where(s >= t, s, -1.0) * 2"), INPUTS.format("torch.randn(2, 9001)"), "x, y"),
}
"""References that keep of a long row what one of its largest elements leaves."""
FEW_CHUNKS = function("torch.topk(x, 100)", "torch.randn(2, COLS * 130)").replace("COLS = 70", "COLS = 70\nSMALL_SIZES = [{'COLS': 37}]")
"""At its small size it picks more than there are chunks."""
ALIKE = {
    "few",
    "of_half",
    "of_float16",
    "of_bytes",
    "of_columns",
    "many_of_few_values",
    "many_of_negative_halves",
    "one",
    "all_in_order",
    "equal_ones_falling",
    "routed",
    "gathered_by_sort",
    "gathered_softmax",
    "gathered",
    "a_mask_of_them",
    "few_falling",
    "few_whole_numbers",
    "sigmoids",
    "of_whole_numbers",
    "falling",
}
"""Samples that run no line of the generator which none of the others runs: tried by `make test-all`."""
CASES = covering([(name, setting) for name in unlike(SAMPLES, ALIKE) for setting in ("first", "flat")])
REGIONS = unlike((*LONG, *KEPT), {"from_long_rows", "of_many_equal_ones", "of_negative_ones"})
"""Long rows, some of which differ in their numbers alone."""
EVERY = [*CASES, *((name, "regions") for name in (*REGIONS, "few_chunks")), ("softmax_of_the_best", "looped")]


def written(name: str, setting: str) -> tuple[Problem, str]:
    """Emit a sample as one nest."""
    problem, graph = traced_text(SAMPLES[name], name)
    return problem, emit(problem, graph, whole(graph, setting)).source


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Run every case in one process."""
    return made_once(tmp_path_factory, "orders", _results)


def _results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    jobs = [write_job(folder, f"{name}_{setting}", *written(name, setting)) for name, setting in CASES]
    for name in REGIONS:
        problem, graph = traced_text((LONG | KEPT)[name], name)
        jobs.append(write_job(folder, name, problem, emit(problem, graph, generated(graph, {})).source))
    problem, graph = traced_text(FEW_CHUNKS, "few_chunks")
    jobs.append(write_job(folder, "few_chunks", unseen(small(FEW_CHUNKS)), emit(problem, graph, generated(graph, {})).source))
    problem, graph = traced_text(KEPT["softmax_of_the_best"], "softmax_of_the_best")
    schedule = generated(graph, {})
    last = schedule.regions[-1]
    looped = last.model_copy(update={"parameters": last.parameters | {"reduction": "looped", "BLOCK_K": 512}})
    jobs.append(write_job(folder, "looped", problem, emit(problem, graph, schedule.replaced(looped)).source))
    return dict(zip(EVERY, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize(("name", "setting"), EVERY)
def test_a_row_in_order_is_as_torch_has_it(results: Any, name: str, setting: str) -> None:
    """Elements and positions of rows in order, and what one kernel makes of them, are those of the reference."""
    result = results[name, setting]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.mark.slow
def test_orders_compile_for_hopper(tmp_path: Path) -> None:
    """Selections and sorts compile to machine code."""
    names = ["few", "many", "all_in_order", "routed_halves", "best_groups", "until_a_share"]
    jobs = [{**write_job(tmp_path, name, *written(name, "first")), "arch": 90} for name in names]
    for job, result in zip(jobs, run_worker("compile_worker.py", jobs, interpret=False), strict=True):
        assert "crash" not in result, (job["source"], result["crash"])
        assert result["kernels"]


def test_a_softmax_of_the_best_reads_few_chunks_again() -> None:
    """The maxima of chunks guard what is read, and a tile of which nothing stays adds nothing to the sum of weights."""
    problem, graph = traced_text(KEPT["softmax_of_the_best"], "softmax_of_the_best")
    source = emit(problem, graph, generated(graph, {})).source
    assert "if tl.max(not_.to(tl.int32)) > 0:" in source
    assert source.count("mask=mask_n & within_k & not_") == 2


def test_routing_is_one_natural_region() -> None:
    """A softmax, the best of it and their weights are one region; keys of bfloat16 logits have 32 bits."""
    _, graph = traced_text(SAMPLES["routed_halves"], "routed_halves")
    (region,) = initial_schedule(graph).regions
    assert plan_region(graph, region.nodes).template.name == TILE
    assert "tl.int64) * 4294967296" not in written("routed_halves", "first")[1]


def test_what_lies_along_two_dimensions_is_put_in_order_a_row_a_program() -> None:
    """Two rows were wrong on a GPU where Triton laid warps along the joined dimension, along rows, and along that dimension again."""
    _, graph = traced_text(function("torch.topk(x, 40)", "torch.randn(64, 9001)"), "of_chunks")
    plan = plan_region(graph, initial_schedule(graph).regions[-1].nodes)
    assert tile_layout_of(plan.kernel).joined
    first = plan.defaults(132)
    assert (first["BLOCK_M"], first["BLOCK_N"]) == (1, 1)
    assert tile_refusal(plan.kernel, first | {"BLOCK_N": 2}) == "of several dimensions in order a program has one row"


def test_what_is_read_at_found_places_lies_apart_from_their_rows() -> None:
    """On Hopper a thread held each neighbour's every element: 48,080 bytes spilled, 7.7 ms where torch.compile took 0.4."""
    assert "tl.gather(" in written("rows_of_neighbours", "first")[1]
    assert "tl.gather(" not in written("gathered", "first")[1]


def test_what_is_found_lies_as_it_was_found_unless_rows_are_read_there() -> None:
    """Routing by groups finds three times, and reads one element each: laid anew it spilled 17 kB a thread, 5.9 ms for 22 µs."""
    assert "tl.gather(" not in written("of_the_best_groups", "first")[1]


def test_rows_too_long_for_registers_are_left_out() -> None:
    """A row of more elements than a program holds is not put in order, and the reason says so."""
    _, graph = traced_text(function("torch.sort(x)", "torch.randn(3, 20000)"), "long")
    with pytest.raises(LoweringError, match="8192 elements"):
        plan_region(graph, [graph.nodes[0].name])


def test_a_long_row_is_put_in_order_by_as_many_warps_as_it_takes() -> None:
    """A network is written out for every element of a thread: with few warps it would take minutes to compile."""
    _, graph = traced_text(function("torch.sort(x)", "torch.randn(8, 4096)"), "long")
    planned = plan_region(graph, [graph.nodes[0].name])
    parameters = planned.template.defaults(planned.kernel, 132)
    assert parameters["num_warps"] == 8
    assert "written out" in planned.template.refusal(planned.kernel, parameters | {"num_warps": 4})


def test_what_torch_names_is_a_plain_tuple_in_the_graph() -> None:
    """A reference that returns what `torch.sort` returns is traced in a process of its own as any other."""
    _, graph = traced_text(SAMPLES["all_in_order"], "all_in_order")
    assert type(graph.outputs) is tuple
    assert as_text(graph, ())
