"""Where data decide sizes, and where PyTorch looks at data, its own operators stand between generated kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, made_once, run_worker, traced_text, unseen, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit
from tools.codegen.ir.graph import Called, DataSized
from tools.codegen.schedule.cuda_graph import can_capture

HEAD = "torch.softmax(F.layer_norm(x, (COLS,)), -1)"
DATA_SIZED = {
    "mean_of_some": "H + H[x > 0].mean()",
    "counted": "H * (x > 0).nonzero().shape[0]",
    "selected": "H + H.masked_select(x > 0).sum() * H.sum()",
    "different": "H + torch.unique((x * 4).round()).sum()",
    "one_number": "H * x.amax().item()",
    "comes_back": "H * (lambda m: (m - 2 * m.mean()).square().sum())(x[x > 0])",
    "two": "H + H[x > 0].sum() * torch.unique((x > 0).float()).sum()",
    "of_sizes": "H + H[x > 0].expand(H.shape[0], -1).sum()",
    "sparse": "H + torch.sparse.mm(x.to_sparse(), H.mT).sum()",
    "list_of_results": "H + torch.histogramdd(x[:, :2], [3, 3])[1][0].sum()",
}
CALLED = {
    "variances": "H + F.gaussian_nll_loss(x, H, H + 1, reduction='none')",
    "covariances": "torch.cov(H) @ H",
    "correlations": "torch.corrcoef(H) @ H",
    "pairs": "H + torch.combinations(x[0], r=2).sum()",
}
SAMPLES = {name: function(f"(lambda H: {body})({HEAD})") for name, body in (DATA_SIZED | CALLED).items()}


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample in one process, at sizes that no trace of it saw."""
    return made_once(tmp_path_factory, "data_sized", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = [write_job(folder, name, _small(name), _written(name)) for name in SAMPLES]
    return dict(zip(SAMPLES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


def _small(name: str) -> Any:
    return unseen(SAMPLES[name].replace("ROWS = 33", "ROWS = 5"), name)


def _written(name: str) -> str:
    problem, graph = traced_text(SAMPLES[name], name)
    return emit(problem, graph, generated(graph, {})).source


@pytest.mark.parametrize("name", SAMPLES)
def test_generated_kernels_stand_around_what_is_pytorchs(results: Any, name: str) -> None:
    """The rest of the reference is generated, and all of it gives what the reference gives."""
    assert "@triton.jit" in _written(name)
    assert results[name].get("crash", "") == ""
    assert results[name]["error"] <= 1


@pytest.mark.parametrize("name", DATA_SIZED)
def test_what_data_size_is_one_operator(name: str) -> None:
    """What has such a size, and what lies between its operators, is one; two that have nothing in common are two."""
    graph = traced_text(SAMPLES[name], name)[1]
    assert sum(isinstance(node, DataSized) for node in graph.nodes) == (2 if name == "two" else 1)
    assert not any(isinstance(node, Called) for node in graph.nodes)


@pytest.mark.parametrize("name", CALLED)
def test_a_function_that_looks_at_its_data_is_called_by_its_name(name: str) -> None:
    """What was traced of it before it failed is gone."""
    graph = traced_text(SAMPLES[name], name)[1]
    (called,) = (node for node in graph.nodes if isinstance(node, Called))
    assert f"{called.path}(" in _written(name)
    assert not any(node.target.startswith("aten.cov") or "item" in node.target for node in graph.nodes)


@pytest.mark.parametrize("name", ["selected", "covariances"])
def test_a_forward_that_waits_for_data_is_not_captured(name: str) -> None:
    """A CUDA graph cannot hold what the host decides by the contents of a tensor."""
    graph = traced_text(SAMPLES[name], name)[1]
    assert not can_capture(graph, generated(graph, {}))


@pytest.mark.parametrize("body", ["F.one_hot(x[0].long().abs()).float().sum() + x", "x if x.sum() > 0 else -x"])
def test_what_data_decide_outside_of_any_operator_is_refused(body: str) -> None:
    """A shape that differs with the contents, and a branch of Python, cannot be told from one trace."""
    assert traced_text(function(body))[1].blocked


def test_what_vmap_does_is_generated() -> None:
    """Its operators are read as what they do to all rows."""
    graph = traced_text(function("torch.vmap(lambda row: row * row.sum())(x)"))[1]
    assert not graph.blocked
    assert {"sum", "mul"} <= {node.op for node in graph.nodes}
