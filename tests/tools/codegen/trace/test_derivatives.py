"""References that take derivatives of what they compute are traced to the operators that these come down to."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import emit

HEAD = "import torch\n\nROWS = 12\nSMALL_SIZES = [{'ROWS': 5}]\n"
TAIL = "\n\ndef example_inputs():\n    return (torch.rand(ROWS, 3) * 4,)\n"
ENERGY = """

def _energy(x):
    apart = (x[:, None] - x[None]).square().sum(-1) + torch.eye(x.shape[0], device=x.device)
    return (torch.exp(-apart) / apart).sum()
"""
FORMS = {
    "transform": f"{HEAD}{ENERGY}\n\ndef forces(x):\n    return -torch.func.grad(_energy)(x)\n{TAIL}",
    "autograd": (
        f"{HEAD}{ENERGY}\n\ndef forces(x):\n    x = x.detach().requires_grad_(True)\n    with torch.enable_grad():\n"
        f"        (found,) = torch.autograd.grad(_energy(x), x)\n    return -found\n{TAIL}"
    ),
    "of_a_result": function("torch.func.grad(lambda t: (t * t.tanh()).sum())(x * 2)"),
    "of_weights": """import torch
from torch import nn

ROWS = 12
SMALL_SIZES = [{"ROWS": 5}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, points):
        def residual(point):
            slope = torch.func.grad(lambda p: self.net(p)[0])(point)
            bend = torch.func.hessian(lambda p: self.net(p)[0])(point)
            return slope[1] - 0.1 * bend[0, 0]

        return torch.func.vmap(residual)(points)


def get_inputs():
    return [torch.rand(ROWS, 2)]


def get_init_inputs():
    return []
""",
}
DISTANCES = """import torch

ROWS = 64
SMALL_SIZES = [{{"ROWS": 5}}, {{"ROWS": 26}}]


def _pull(x, y):
    apart = torch.cdist(x, y{how})
    return (apart * apart.sigmoid()).mean() + torch.cdist(x, x).sum()


def forces(x, y):
    x = x.detach().requires_grad_(True)
    y = torch.cat([y, x.detach()[:1]])
    with torch.enable_grad():
        (found,) = torch.autograd.grad(_pull(x, y), x)
    return found


def example_inputs():
    return (torch.randn(ROWS, {width}), torch.randn(33, {width}))
"""
FORMS |= {
    "distances": DISTANCES.format(how="", width=8),
    "distances_of_points": DISTANCES.format(how=", compute_mode='donot_use_mm_for_euclid_dist'", width=3),
    "sums_of_differences": DISTANCES.format(how=", p=1.0", width=5),
    "distances_of_distances": function(
        "torch.func.grad(lambda t: torch.func.grad(lambda u: torch.cdist(u, y).square().sum())(t).square().sum())(x)",
        "torch.randn(40, 6), torch.randn(30, 6)",
        "x, y",
    ),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """By form: the error of its kernels in the interpreter, over the reference's."""
    folder, jobs = tmp_path_factory.mktemp("derivatives"), {}
    for name, text in FORMS.items():
        problem, graph = traced_text(text, name)
        assert not graph.blocked
        jobs[name] = write_job(folder, name, problem, emit(problem, graph, generated(graph, {})).source)
    found = run_worker("interpreter_worker.py", list(jobs.values()), interpret=True)
    return {name: result["error"] for name, result in zip(jobs, found, strict=True)}


@pytest.mark.parametrize("name", FORMS)
def test_derivatives_are_operators(errors: dict[str, float], name: str) -> None:
    """Forces of an energy, and second derivatives of a network, are as accurate as the reference's within a factor of four."""
    assert errors[name] <= 1.0


@pytest.mark.parametrize("name", ["distances", "distances_of_points", "sums_of_differences"])
def test_gradients_of_distances_are_kernels(name: str) -> None:
    """Of few rows, and of more than 25, they are the same operators, and nothing is left to the library."""
    problem, graph = traced_text(FORMS[name], name)
    assert "Left to the library" not in emit(problem, graph, generated(graph, {})).source


def test_weights_keep_their_names() -> None:
    """What a network's derivative reads of it are its parameters, as without."""
    graph = traced_text(FORMS["of_weights"], "of_weights")[1]
    assert set(graph.parameters.values()) == {"net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias"}


def test_numbers_of_derivatives_are_on_the_device() -> None:
    """A plain number that a derivative's rules cast is a tensor on the reference's device: kernels cannot read one on the host."""
    graph = traced_text(FORMS["of_weights"], "of_weights")[1]
    assert [node.op for node in graph.nodes if not node.refs and "device" not in node.kwargs] == []


def test_what_a_derivative_is_taken_of_is_not_computed() -> None:
    """Where a derivative starts stands a one, which reads nothing: the sum that was its shape is left out."""
    graph = traced_text(FORMS["of_a_result"], "of_a_result")[1]
    assert "sum" not in {node.op for node in graph.nodes}
