"""A delivered package: operators take the place of modules, guards send other calls to the original, and everything can be undone."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

import copy
import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.tools.models.samples import Norm
from tools.guards.contract import Contract, Size, TensorRule
from tools.models.capturing.capture import capture
from tools.models.loading import Workload
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.package import write_operators, write_package
from tools.models.proof.prover import Prover, differs
from tools.models.replay import NotRecordedError, Record
from tools.models.runtime.origin import strange

KERNEL = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight
"""
"""Stands for a kernel: the walls and the interpreter are tested elsewhere."""
CONTRACT = Contract(
    inputs=(TensorRule("x", "float32", (Size("any"), 16)),),
    parameters=(TensorRule("weight", "float32", (16,)),),
    constructor=(),
    training=None,
)


class Pair(nn.Module):
    """Two norms, and a linear layer between that nobody touches."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = Norm(), nn.Linear(16, 16), Norm()

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.middle(self.first(x)))


@pytest.fixture(scope="module")
def delivered() -> Delivered:
    """What a run would have delivered for the norms."""
    found = capture(Pair().eval(), [Workload("rows", (torch.randn(6, 16),), {}, 1.0)])
    [norm] = [group for group in found.groups if group.title == "Norm"]
    assert norm.trace is not None
    return Delivered(group=norm, trace=norm.trace, contract=CONTRACT, kernel=KERNEL, evidence=None)


def opened(folder: Path, one: Delivered) -> Any:
    """Write a package and import it as if kernels could run on the CPU."""
    write_package(folder, "Pair", "A test.", [one], {})
    return imported_from(folder)


def imported_from(folder: Path) -> Any:
    """Import a package as if kernels could run on the CPU."""
    importlib.invalidate_caches()
    with pytest.MonkeyPatch.context() as patches:
        patches.setenv("TRITON_INTERPRET", "1")
        patches.syspath_prepend(str(folder.parent))
        return importlib.import_module(folder.name)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory, delivered: Delivered) -> Any:
    """The package, imported once: operators are registered for the life of a process."""
    return opened(tmp_path_factory.mktemp("packages") / "right_package", delivered)


@pytest.fixture
def package(imported: Any) -> Any:
    """The package, which has counted nothing."""
    imported.counts(reset=True)
    return imported


@pytest.fixture
def model() -> nn.Module:
    """A model whose norms have been captured."""
    return Pair().eval().requires_grad_(False)


X = torch.linspace(-1.0, 1.0, 96).view(6, 16)


def test_operators_take_the_place_of_modules_and_give_it_back(package: Any, model: nn.Module) -> None:
    """The outputs are the model's, its state dict and classes stay, and removing brings its own forward back."""
    before, keys = model(X), list(model.state_dict())
    assert package.apply(model) == ["first", "last"]
    assert torch.allclose(model(X), before)
    assert package.counts(reset=True) == {"hits": {"norm": 2}, "misses": {}}
    assert list(model.state_dict()) == keys
    assert isinstance(model.first, Norm)
    assert package.remove(model) == ["first", "last"]
    assert type(model.first) is Norm
    assert torch.equal(model(X), before)
    assert package.counts()["hits"] == {}


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda model: model(X.repeat(4, 1)), "other shapes, dtypes or strides"),
        (lambda model: model(X.view(2, 3, 16)), "other shapes, dtypes or strides"),
        (lambda model: model.double()(X.double()), "other shapes, dtypes or strides"),
        (lambda model: model.first(X.t().contiguous().t()), "other shapes, dtypes or strides"),
        (lambda model: model.first(x=X), "other arguments"),
        (lambda model: model.train()(X), "training mode"),
        (lambda model: model.requires_grad_()(X), "a gradient is wanted"),
    ],
)
def test_a_call_that_no_kernel_was_made_for_goes_to_the_original_and_is_counted(
    package: Any, model: nn.Module, call: Any, reason: str
) -> None:
    """Four times as many rows, another rank, dtype, layout or way of calling, training, gradients."""
    expected = call(copy.deepcopy(model))
    package.apply(model)
    assert torch.equal(call(model), expected)
    found = package.counts(reset=True)
    assert set(found["misses"]) == {f"Norm: {reason}"}
    assert not found["hits"]


def test_under_autocast_the_original_answers(package: Any, model: nn.Module) -> None:
    """What autocast would compute in another dtype is not a kernel's to say."""
    package.apply(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(X)
    assert "Norm: autocast" in package.counts(reset=True)["misses"]


def test_random_numbers_of_the_caller_are_not_used_up(package: Any, model: nn.Module) -> None:
    """A kernel's module draws weights when it is made, which a sampler after the model must not notice."""
    package.apply(model)
    for entry in package.PLACES[0].entries:
        entry.operator._template = None
        entry.operator.forget()
    before = torch.get_rng_state()
    model(X)
    assert torch.equal(torch.get_rng_state(), before)
    package.counts(reset=True)


def test_a_change_after_the_first_call_is_seen(package: Any, model: Any) -> None:
    """What was true of the last call is asked again: training, gradients, the parameters' dtype and place, another tensor."""
    package.apply(model)
    for change in (model.first.train, model.first.requires_grad_):
        model.first(X)
        change()
        model.first(X)
        model.first.eval().requires_grad_(False)
    model.first(X)
    model.first.double()
    model.first(X)
    assert package.counts(reset=True)["misses"] == {
        "Norm: training mode": 1,
        "Norm: a gradient is wanted": 1,
        "Norm: other parameters": 1,
    }


def test_new_weights_are_used_at_once(package: Any, model: Any) -> None:
    """Weights that are written, loaded or replaced show in the next call; a copy of the model has its own."""
    package.apply(model)
    model(X)
    twin = copy.deepcopy(model)
    model.first.weight.mul_(3.0)
    model.last.load_state_dict({"weight": torch.full((16,), 2.0)})
    plain = copy.deepcopy(model)
    package.remove(plain)
    assert torch.allclose(model(X), plain(X))
    assert not torch.allclose(model(X), twin(X))


def compiled_whole(model: nn.Module, x: torch.Tensor) -> tuple[Any, list[str]]:
    """Compile a model into one graph; give its result and what the graph calls."""
    seen: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    found = torch.compile(model, backend=backend, fullgraph=True)(x)
    torch._dynamo.reset()
    return found, seen


def test_torch_compile_sees_one_graph_with_the_operator_in_it(package: Any, model: nn.Module) -> None:
    """There is no graph break, and the compiled model gives the same."""
    package.apply(model)
    found, seen = compiled_whole(model, X)
    assert torch.allclose(found, model(X))
    assert sum(one.endswith(".norm.default") for one in seen) == 2


def test_a_compiler_asks_no_more_of_a_model_with_operators(package: Any, model: nn.Module) -> None:
    """What operators name is guarded once for all modules of a kind, and nothing of it is compared in Python in each call."""

    def guards() -> list[str]:
        torch._dynamo.reset()
        with torch.no_grad():
            torch.compile(model, backend="eager", fullgraph=True)(X)
        [entry] = torch._dynamo.eval_frame._debug_get_cache_entry_list(Pair.forward)
        return str(entry.guard_manager).splitlines()

    before = guards()
    package.apply(model)
    after = guards()
    torch._dynamo.reset()
    assert sum("LAMBDA_GUARD" in line for line in after) <= sum("LAMBDA_GUARD" in line for line in before)
    assert len([line for line in after if "e0_fits" in line and "ID_MATCH" in line]) == 1


def test_an_operator_can_be_left_out(package: Any, model: nn.Module) -> None:
    """Named in `without`, its modules stay as they are."""
    assert package.apply(model, without=("norm",)) == []


def test_a_module_of_another_configuration_is_left_alone(package: Any, model: Any) -> None:
    """A kernel for one eps does not take the place of a module with another, and that is said."""
    model.last.eps = 1e-2
    with pytest.warns(UserWarning, match="1 modules are not what the kernels were made for, and left alone: last"):
        assert package.apply(model) == ["first"]


def test_a_first_call_can_be_verified(tmp_path: Path, delivered: Delivered, model: nn.Module) -> None:
    """An operator that differs from the original is not used, and says so; the call gives the original's result."""
    wrong = Delivered(group=delivered.group, trace=delivered.trace, contract=CONTRACT, kernel=KERNEL.replace("1e-5", "0.5"), evidence=None)
    package = opened(tmp_path / "wrong_package", wrong)
    expected = model(X)
    package.apply(model, verify=True)
    with pytest.warns(UserWarning, match="Norm differs from the original"):
        assert torch.equal(model(X), expected)
    assert type(model.first) is Norm


def test_operators_that_are_taken_out_leave_no_file(tmp_path: Path, delivered: Delivered) -> None:
    """A package without operators is still a package, and has none of their files."""
    write_package(tmp_path / "made", "Pair", "A test.", [delivered], {})
    write_operators(tmp_path / "made", [])
    assert not list((tmp_path / "made" / "kernels").iterdir())
    assert (tmp_path / "made" / "table.py").read_text().rstrip().endswith("PLACES = ()")


def test_calls_of_several_shapes_can_have_an_operator_each(tmp_path: Path) -> None:
    """Six rows and one row as two groups: each goes to its own kernel, in the same modules."""
    made = []
    for rows in (6, 1):
        [group] = [
            one for one in capture(Pair().eval(), [Workload("rows", (torch.randn(rows, 16),), {}, 1.0)]).groups if one.title == "Norm"
        ]
        rule = TensorRule("x", "float32", (Size("any") if rows > 1 else 1, 16))
        contract = Contract((rule,), CONTRACT.parameters, (), None)
        assert group.trace is not None
        named = group.model_copy(update={"name": f"norm_{rows}"})
        made.append(Delivered(group=named, trace=group.trace, contract=contract, kernel=KERNEL, evidence=None))
    assert counted(tmp_path / "two_kernels", made, (6, 1, 6, 100)) == ([2, 4], {"Norm: other shapes, dtypes or strides": 2})


def test_where_an_outer_operator_is_of_another_shape_those_inside_of_it_run(tmp_path: Path) -> None:
    """One row goes to the whole pair, six rows to its norms; each can be left out, and the model comes back."""
    calls = [Workload("rows", (torch.randn(6, 16),), {}, 1.0), Workload("row", (torch.randn(1, 16),), {}, 1.0)]
    model = nn.Sequential(Pair(), Pair()).eval().requires_grad_(False)
    norm = next(one for one in capture(model, calls).groups if one.title == "Norm")
    pair = next(one for one in capture(model, calls[1:]).groups if one.title == "Pair")
    assert norm.trace is not None
    assert pair.trace is not None
    weights = tuple(TensorRule(spec.name, "float32", spec.shape) for spec in pair.trace.abi.parameters)
    outer = Contract((TensorRule("x", "float32", (1, 16)),), weights, (), None)
    made = [
        Delivered(group=norm, trace=norm.trace, contract=CONTRACT, kernel=KERNEL, evidence=None),
        Delivered(
            group=pair, trace=pair.trace, contract=outer, kernel=pair.trace.source.replace("class Model(", "class ModelNew("), evidence=None
        ),
    ]
    write_package(tmp_path / "nested", "Pairs", "A test.", made, {})
    package = imported_from(tmp_path / "nested")
    kind = type(model[0])
    for without, row, rows in (((), {"pair": 2}, {"norm": 4}), (("pair",), {"norm": 4}, {"norm": 4}), (("norm",), {"pair": 2}, {})):
        before = [model(call.args[0]) for call in calls]
        package.apply(model, without=without)
        for call, expected, hits in zip(calls, before, (rows, row), strict=True):
            package.counts(reset=True)
            assert torch.allclose(model(call.args[0]), expected, atol=1e-6)
            assert package.counts()["hits"] == hits
        package.remove(model)
        assert (type(model[0]), type(model[0].first)) == (kind, Norm)


def test_an_operator_for_several_shapes_takes_sizes_near_each_of_them(tmp_path: Path) -> None:
    """And none between: nobody knows whether it is faster there."""
    calls = [Workload("rows", (torch.randn(64, 16),), {}, 1.0), Workload("row", (torch.randn(1, 16),), {}, 1.0)]
    [group] = [one for one in capture(Pair().eval(), calls).groups if one.title == "Norm"]
    assert group.trace is not None
    one = Delivered(group=group, trace=group.trace, contract=CONTRACT, kernel=KERNEL, evidence=None)
    assert counted(tmp_path / "two_shapes", [one], (64, 1, 100, 10)) == ([6], {"Norm: other shapes, dtypes or strides": 2})


def test_under_a_compiler_an_operator_can_step_aside_in_one_workload(tmp_path: Path) -> None:
    """Of two it is used at the sizes of the other alone; a call that is not compiled gets it at both."""
    calls = [Workload("rows", (torch.randn(64, 16),), {}, 1.0), Workload("row", (torch.randn(1, 16),), {}, 1.0)]
    [group] = [one for one in capture(Pair().eval(), calls).groups if one.title == "Norm"]
    assert group.trace is not None
    one = Delivered(group=group, trace=group.trace, contract=CONTRACT, kernel=KERNEL, evidence=None).stepping_aside({"rows"})
    assert (one.compiled, one.aside) == (True, ("rows",))
    package, model = opened(tmp_path / "beside", one), Pair().eval().requires_grad_(False)
    package.apply(model)
    for count, used in ((64, 0), (1, 2), (2, 2), (40, 0)):
        assert compiled_uses(model, torch.randn(count, 16)) == used
        package.counts(reset=True)
        model(torch.randn(count, 16))
        assert package.counts()["hits"] == {"norm": 2}


def test_an_operator_of_one_shape_steps_aside_altogether(delivered: Delivered) -> None:
    """No guard could tell one workload from another; one that has no call of it changes nothing."""
    assert not delivered.stepping_aside({"rows"}).compiled
    assert delivered.stepping_aside({"other"}) is delivered


def compiled_uses(model: nn.Module, x: torch.Tensor) -> int:
    """Count the operators of a package in a compiler's graph."""
    found = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        found.extend(str(node.target) for node in graph.graph.nodes if "kernelwright" in str(node.target))
        return graph

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend=backend, fullgraph=True)(x)
    return len(found)


def counted(folder: Path, made: list[Delivered], rows: tuple[int, ...]) -> tuple[list[int], dict[str, int]]:
    """What a package's operators and the original were asked for so many rows."""
    write_package(folder, "Pair", "A test.", made, {})
    package = imported_from(folder)
    model = Pair().eval().requires_grad_(False)
    package.apply(model)
    for count in rows:
        model(torch.randn(count, 16))
    found = package.counts()
    return sorted(found["hits"].values()), found["misses"]


def prover(package: Any, model: nn.Module, record: Record | None = None) -> Prover:
    """A prover of the model on fresh rows."""

    def workloads(seed: int) -> list[Workload]:
        return [Workload("rows", (torch.randn(6, 16, generator=torch.Generator().manual_seed(seed)),), {}, 1.0)]

    return Prover(model, package, workloads, seed=1, record=record)


def test_a_model_with_right_operators_is_proven(package: Any, model: nn.Module) -> None:
    """Outputs against float64, what the guards did, and that everything can be had back."""
    found = prover(package, model).correctness(graphs=False)
    assert found.holds
    assert found.oracle == "float64"
    assert found.hits == {"norm": 4}
    assert found.misses == {}
    assert found.replaced == ("first", "last")
    assert all(one.error <= one.limit for one in found.outputs)
    assert len(found.outputs) == 2


def test_a_model_with_a_wrong_operator_is_not_proven(tmp_path: Path, delivered: Delivered, model: nn.Module) -> None:
    """The distance from float64 is larger than the original's by more than the limit."""
    wrong = Delivered(group=delivered.group, trace=delivered.trace, contract=CONTRACT, kernel=KERNEL.replace("1e-5", "1e-3"), evidence=None)
    assert not prover(opened(tmp_path / "unproven_package", wrong), model).correctness(graphs=False).holds


def played(call: Any) -> Any:
    """Stand in for a graph: give again what a call gave."""
    found = call()
    return lambda: found


def test_all_ways_of_running_a_model_are_timed_in_turn(package: Any, model: nn.Module) -> None:
    """Eager with and without operators, as many rounds each; what fails is noted and left out."""
    [found] = prover(package, model).times(["norm"], 3, compiled=False, max_autotune=False)
    assert {way: len(times["rows"]) for way, times in found.items()} == {"eager": 3, "eager, ours": 3}


def test_ways_are_timed_in_graphs_too(package: Any, model: nn.Module) -> None:
    """A graph of each way, played by what the call gave, has as many rounds as the way itself."""
    one = prover(package, model, played)
    [found] = one.times(["norm"], 3, compiled=False, max_autotune=False)
    assert set(found) == {"eager", "eager, ours", "eager, CUDA graph", "eager, ours, CUDA graph"}


def test_a_model_that_is_no_faster_in_a_graph_is_timed_without(package: Any, model: nn.Module) -> None:
    """Twice as many ways would say nothing more."""

    def slower(call: Any) -> Any:
        return lambda: (call(), call())[0]

    one = prover(package, model, slower)
    [found] = one.times(["norm"], 3, compiled=False, max_autotune=False)
    assert set(found) == {"eager", "eager, ours"}
    assert one.notes == ("The model was not timed in a CUDA graph: the device is as busy without one.",)


def test_where_only_operators_leave_the_device_waiting_ways_are_timed_in_graphs(package: Any, model: nn.Module) -> None:
    """The original is as busy in eager mode; with operators the host is what takes time, and a graph is how it is served."""

    def hosted(call: Any) -> Any:
        before = package.counts()["hits"].get("norm", 0)
        recorded = played(call)
        ours = package.counts()["hits"].get("norm", 0) > before
        return recorded if ours else lambda: (call(), call())[0]

    [found] = prover(package, model, hosted).times(["norm"], 3, compiled=False, max_autotune=False)
    assert set(found) == {"eager", "eager, ours", "eager, CUDA graph", "eager, ours, CUDA graph"}


def test_a_model_that_no_graph_holds_is_timed_without(package: Any, model: nn.Module) -> None:
    """That is noted, and no other way is recorded."""

    def refused(call: Any) -> Any:
        raise NotRecordedError("it waits for the device")

    one = prover(package, model, refused)
    [found] = one.times(["norm"], 3, compiled=False, max_autotune=False)
    assert set(found) == {"eager", "eager, ours"}
    assert one.notes == tuple(f"{way} was not timed in a CUDA graph: it waits for the device" for way in ("eager", "eager, ours"))


def test_a_model_that_a_graph_holds_only_with_operators_is_timed_in_one(package: Any, model: nn.Module) -> None:
    """Its original waits for the device; with operators it does not, and whoever serves it records that."""

    def some(call: Any) -> Any:
        before = package.counts()["hits"].get("norm", 0)
        recorded = played(call)
        if package.counts()["hits"].get("norm", 0) == before:
            raise NotRecordedError("it waits for the device")
        return recorded

    one = prover(package, model, some)
    [found] = one.times(["norm"], 3, compiled=False, max_autotune=False)
    assert set(found) == {"eager", "eager, ours", "eager, ours, CUDA graph"}
    assert one.notes == ("eager was not timed in a CUDA graph: it waits for the device",)


def test_a_machine_that_is_new_to_a_package_is_named() -> None:
    """On a CPU kernels are interpreted, and nothing is new about it; a module on the meta device stands for no GPU."""
    assert strange((), "NVIDIA H200", Pair()) == ""
    assert strange((), "NVIDIA H200", Pair().to("meta")) == ""


def test_until_its_first_call_is_verified_a_compiler_gets_the_original(package: Any, model: nn.Module) -> None:
    """A comparison cannot be traced: after one eager call the operator is in the graph."""
    package.apply(model, verify=True)
    package.counts(reset=True)
    with torch.no_grad():
        torch.compile(model, backend="eager", fullgraph=True)(torch.randn(6, 16))
        assert package.counts()["hits"] == {}
        model(torch.randn(6, 16))
        torch._dynamo.reset()
        package.counts(reset=True)
        torch.compile(model, backend="eager", fullgraph=True)(torch.randn(6, 16))
    assert package.counts()["hits"] == {"norm": 2}


def test_outputs_under_a_compiler_are_looked_at() -> None:
    """As far from eager as the compiler and the operators are by themselves is right, a hundred times as far is not."""
    eager = torch.randn(64)
    given = {"eager": [eager], "eager, ours": [eager * (1 + 1e-6)], "torch.compile": [eager * (1 + 3e-6)]}
    near, far = eager * (1 + 5e-6), eager * (1 + 1e-4)
    assert not differs([near], given, "torch.compile")
    assert differs([far], given, "torch.compile").startswith("output 0 is 1.0e-04 from eager")


def test_a_compiler_may_round_less_than_eager_does() -> None:
    """As far from eager as eager is from the oracle is right where the compiler by itself is not known; a hundred times as far is not."""
    eager = torch.randn(64)
    given = {"eager": [eager], "eager, ours": [eager]}
    assert differs([eager * (1 + 1e-4)], given, "torch.compile").startswith("output 0 is 1.0e-04 from eager")
    assert not differs([eager * (1 + 1e-4)], given, "torch.compile", {0: 1e-4})
    assert differs([eager * (1 + 1e-2)], given, "torch.compile", {0: 1e-4}).startswith("output 0 is 1.0e-02 from eager")


def test_a_mode_sees_operators_that_are_else_called_past_the_dispatcher(package: Any, model: nn.Module) -> None:
    """Who listens hears of each call, also where the call is like the one before."""

    class Heard(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    package.apply(model)
    model(X)
    with Heard():
        model(X)
    assert names.count("norm") == 2
    assert package.counts()["hits"] == {"norm": 4}


def test_a_call_by_keyword_that_is_like_the_last_one_is_known(tmp_path: Path) -> None:
    """Its tensors are looked at as those of a plain call; another one by keyword goes through the guard."""

    class Keyword(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = Norm()

        def forward(self, x: torch.Tensor) -> Any:
            return self.norm(x=x)

    whole = Keyword().eval().requires_grad_(False)
    found = capture(whole, [Workload("rows", (X,), {}, 1.0)])
    [norm] = [group for group in found.groups if group.title == "Norm"]
    assert norm.trace is not None
    one = Delivered(group=norm, trace=norm.trace, contract=CONTRACT, kernel=KERNEL, evidence=None)
    package = opened(tmp_path / "keyword_package", one)
    before = whole(X)
    package.apply(whole)
    assert torch.allclose(whole(X), before)
    assert torch.allclose(whole(X), before)
    whole(torch.cat((X, X, X)))
    assert package.counts() == {"hits": {"norm": 2}, "misses": {"Norm: other shapes, dtypes or strides": 1}}


REPLAYING = KERNEL.replace("    def forward", "    @replayed\n    def forward").replace(
    "class ModelNew",
    """class Capture:
    def __init__(self, forward, module, inputs):
        raise RuntimeError("a graph in a graph")

def replayed(forward):
    captures = {}

    def call(module, *inputs):
        known = captures.setdefault(module, {})
        if not known or known["it"].is_stale():
            known["it"] = Capture(forward, module, inputs)
        return known["it"].replay(inputs)

    return call

class ModelNew""",
)


def test_another_graph_holds_the_kernels_of_an_operator_that_replays_one(
    tmp_path: Path, delivered: Delivered, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a stream is captured its forward runs as it is; else it captures a graph, which fails here."""
    one = Delivered(group=delivered.group, trace=delivered.trace, contract=CONTRACT, kernel=REPLAYING, evidence=None)
    package = opened(tmp_path / "replaying_package", one)
    before = model(X)
    package.apply(model)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert torch.allclose(model(X), before)
    assert package.counts() == {"hits": {"norm": 2}, "misses": {}}
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    with pytest.raises(RuntimeError, match="a graph in a graph"):
        model(X)
