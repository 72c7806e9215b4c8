"""Operators that take few lines each: elementary functions, losses that PyTorch makes of others, numbers for tensors, squares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, made_once, run_worker, small, traced_text, unseen, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit, limits
from tools.codegen.templates.device.special import SPECIAL

ONE = "torch.randn(ROWS, COLS)"
SAMPLES = {
    "hyperbolic": function(
        "(torch.sinh(x * 8), torch.cosh(x * 8), torch.acosh(1 + x.abs()), torch.asinh(x), torch.atanh(torch.tanh(x) * 0.9))", ONE
    ),
    "errors": function("(torch.erfc(x * 3), torch.erfinv(torch.tanh(x)), torch.special.ndtri(torch.sigmoid(x)))", ONE),
    "gamma": function("(torch.lgamma(x * 3), torch.digamma(x * 3), torch.lgamma(9 + x * 2), torch.mvlgamma(2 + x.abs(), 2))", ONE),
    "bessel": function("(torch.i0(x), torch.special.i0e(x * 9), torch.special.i1(x), torch.special.i1e(x * 9))", ONE),
    "normal": function(
        "(torch.special.log_ndtr(x * 5), torch.special.erfcx(x), torch.special.ndtri(torch.sigmoid(x * 4)), torch.special.ndtri(x * 0))",
        ONE,
    ),
    "tokens_in_place": function(
        "x.masked_scatter((i == 0)[:, None].expand_as(x), y)", f"{ONE}, {ONE}, torch.randint(0, 3, (ROWS,))", "x, y, i"
    ),
    "elements_in_place": function("x.masked_scatter(x > 0, y.exp())", f"{ONE}, {ONE}", "x, y"),
    "signs": function("(torch.copysign(x, -x * 0), torch.signbit(x * 0), torch.angle(x), torch.round(x, decimals=2))", ONE),
    "embedding_loss": function("F.cosine_embedding_loss(x, y, torch.sign(y[:, 0]), margin=0.1)", f"{ONE}, {ONE}", "x, y"),
    "ranking_loss": function("F.margin_ranking_loss(x, y, torch.sign(y), margin=0.5)", f"{ONE}, {ONE}", "x, y"),
    "nan_mean": function("torch.nanmean(torch.where(x > 1, float('nan'), x), 1)", ONE),
    "distances": function(
        "(torch.cdist(x, y, p=1.0), torch.cdist(x, x), torch.cdist(x + 1000, y + 1000))", f"{ONE}, torch.randn(9, COLS)", "x, y"
    ),
    "distances_of_many": function("(torch.cdist(x, y), torch.cdist(x, x))", "torch.randn(40, COLS), torch.randn(33, COLS)", "x, y"),
    "bilinear": function("F.bilinear(x, y, w, b)", f"{ONE}, torch.randn(ROWS, 9), torch.randn(6, COLS, 9), torch.randn(6)", "x, y, w, b"),
    "sum_of_a_sum": function(
        "((x[:, :1] * y).sum(1) / 3).mean() + (z * z).sum(0).amax()",
        "torch.randn(COLS, COLS), torch.randn(COLS), torch.randn(COLS, COLS)",
        "x, y, z",
    ),
    "halves_by_index": function(
        "x.index_add(0, i, x[i] * 2, alpha=-1)", "torch.randn(ROWS, COLS, dtype=torch.bfloat16), torch.randint(0, ROWS, (ROWS,))", "x, i"
    ),
    "norms_of_small_halves": function(
        "(F.rms_norm(x, (COLS,)), F.rms_norm(y, (COLS,)))", f"({ONE} * 0.01).bfloat16(), ({ONE} * 1e-3).half()", "x, y"
    ),
    "only_piece": function(
        "torch.cat([x, x.amin(1, keepdim=True).chunk(2, 1)[0], x[:1].unbind(0)[0][:, None]], 1)", "torch.randn(ROWS, ROWS)"
    ),
    "order_of_maxima": function("x.cummax(0)[0].argsort(1)", ONE),
    "numbers": function("torch.gather(x, 0, i) + torch.logsumexp(x, 0)", "torch.tensor(2.5), torch.tensor(0)", "x, i"),
}
"""By name: source text."""
LEFT = {"numbers"}
"""What no kernel is made for."""


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run each, as it is written without any setting, at sizes it was not traced at, in one process."""
    return made_once(tmp_path_factory, "elementary", _judged)


def _judged(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = {}
    for name in SAMPLES.keys() - LEFT:
        problem, graph = traced_text(SAMPLES[name], name)
        text = emit(problem, graph, generated(graph, {})).source
        jobs[name] = write_job(folder, name, unseen(small(SAMPLES[name]), name), text)
    return dict(zip(jobs, run_worker("interpreter_worker.py", list(jobs.values()), interpret=True), strict=True))


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - LEFT))
def test_kernels_give_the_references_results(judged: Any, name: str) -> None:
    """To what float32 allows, at sizes that the kernel was not written at; nothing is left to the library but products."""
    result = judged[name]
    assert "crash" not in result, result["crash"]
    assert result["error"] <= 1.0


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_special_functions_have_no_branches(name: str) -> None:
    """A sine has one for large arguments on a GPU, across which all elements of a thread stay in registers."""
    assert "tl.sin" not in SPECIAL[name]
    assert "tl.cos" not in SPECIAL[name]


def test_an_operator_of_numbers_is_left_and_its_neighbours_are_not() -> None:
    """A gather from a number is no kernel, which costs that operator alone."""
    _, graph = traced_text(SAMPLES["numbers"], "numbers")
    assert [limit.operator for limit in limits(graph)] == ["aten.gather.default"]


def test_a_write_to_what_data_pick_is_named() -> None:
    """What a mask leaves is PyTorch's own; where it is written in place nothing is generated, and it is said why."""
    _, graph = traced_text(function("x[x > 0].mul_(2.0).sum()[None]", ONE))
    assert graph.blocked == ("what it picks by its data is written in place",)
