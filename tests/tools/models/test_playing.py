"""Calls that are played again: they launch what they launched before, and what could make them differ sends them the ordinary way."""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
from torch import nn
from torch._C._dynamo import guards
from torch.overrides import BaseTorchFunctionMode
from triton.runtime import JITFunction

from tests.tools.models.samples import Norm
from tests.tools.models.test_visible import KERNEL
from tools.models.packaging.launches import launches, launches_packed
from tools.models.runtime import known, launching, looks, patching
from tools.models.runtime.config import config_of
from tools.models.runtime.launching import UnplannedError
from tools.models.runtime.operators import KernelOperator
from tools.models.runtime.patching import Entry, Place, place, take_out
from tools.models.runtime.plans import played
from tools.models.runtime.recording import recorded

X = torch.linspace(-1.0, 1.0, 96).view(6, 16)


class Scale(nn.Module):
    """A row times a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(16) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As it is written."""
        return x * self.weight


PACKING = (
    KERNEL.replace("return scale(x, self.weight)", "self.refresh_weights()\n        return scale(x, self.packed_weights[0])")
    + """
    packed_at = None

    def refresh_weights(self):
        version = self.weight.data_ptr(), self.weight._version
        if self.packed_at != version:
            self.packed_at, self.packed_weights = version, [self.weight + 0.0]
"""
)
"""Packs the weight: what its launches read is a tensor of the module's own."""


class Around(nn.Module):
    """Has the module whose place an operator takes."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Scale()

    def forward(self, x: torch.Tensor) -> Any:
        """Ask the part."""
        return self.inner(x)


class Compiled:
    """Stands for what Triton gives after a launch: it computes on the CPU, from addresses."""

    function, packed_metadata = 7, (1, 1, 0)
    metadata = SimpleNamespace(target=SimpleNamespace(backend="cuda"))

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    @property
    def run(self) -> Any:
        """Its launcher, which does not hold it."""
        return functools.partial(launch, self._kernel)


def launch(kernel: Kernel, *given: Any) -> None:
    """Be called as Triton calls a launcher: grid, stream, function, metadata, hooks, then the kernel's own arguments."""
    assert given[3:9] == (0, 7, (1, 1, 0), None, None, None)
    kernel.again += 1
    compute(given[0], *given[9:])


class Kernel(JITFunction):
    """A kernel that is launched without a device, and counts how."""

    ordinary = again = 0
    gives: Any = Compiled

    def run(self, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        """Be launched the ordinary way."""
        self.ordinary += 1
        x, weight, y, n_cols = args
        compute(grid[0], x.data_ptr(), weight.data_ptr(), y.data_ptr(), n_cols, named["BLOCK_N"])
        return self.gives(self)


def compute(rows: int, x: int, weight: int, y: int, n_cols: int, block: int) -> None:
    """Do what the kernel does."""
    assert block >= n_cols
    given, scale, result = (
        torch.frombuffer((ctypes.c_float * size).from_address(address), dtype=torch.float32)
        for address, size in ((x, rows * n_cols), (weight, n_cols), (y, rows * n_cols))
    )
    result.copy_((given.view(rows, n_cols) * scale).view(-1))


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelOperator]:
    """The operator of a kernel's file, registered once."""
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "played_scale.py").write_text(KERNEL)
    with pytest.MonkeyPatch.context() as patches:
        patches.delenv("TRITON_INTERPRET", raising=False)
        patches.syspath_prepend(str(folder))
        importlib.import_module("played_scale")
        yield KernelOperator(
            "played", "scale", "played_scale", 1, ("weight",), lambda x: [x.new_empty(x.shape)], ("scale_kernel",), seen=False
        )


@pytest.fixture
def kernel(operator: KernelOperator, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """Its kernel, which has not been launched, and the operator as if nothing had been called."""
    module = importlib.import_module("played_scale")
    own = Kernel(module.scale_kernel.fn)
    monkeypatch.setattr(module, "scale_kernel", own)
    monkeypatch.setattr(patching, "INTERPRETED", True)
    operator._players.clear()
    known._WRITTEN.clear()
    operator.unplanned = ""
    patching.reset()
    return own


@pytest.fixture
def model(operator: KernelOperator, kernel: Kernel) -> Iterator[Any]:
    """A model with the operator in it."""
    whole = Around().eval().requires_grad_(False)
    entry = Entry(
        operator=operator,
        structure=[["<tensor>"], {}],
        result="<tensor>",
        parameters=(("weight",),),
        fits=lambda x: x.dim() == 2 and x.shape[1] == 16 and x.is_contiguous() and x.dtype is torch.float32,
        state=lambda weight: weight.shape == (16,) and weight.is_contiguous() and weight.dtype is torch.float32,
        compiled=True,
        replays=False,
    )
    assert place(whole, [Place("Scale", ("inner",), config_of(whole.inner), (entry,))], config_of) == ["inner"]
    yield whole
    take_out(whole)


def right(model: Any, x: torch.Tensor, times: int = 1) -> None:
    """Ask several times, and look at each answer."""
    for _ in range(times):
        assert torch.equal(model(x), x * model.inner.weight)


def test_a_call_like_one_before_is_launched_past_tritons_look_at_it(model: Any, kernel: Kernel) -> None:
    """The first call passes the guard, the second is recorded, all others are played, each counted as a hit."""
    right(model, X, 5)
    right(model, X + 1.0)
    assert (kernel.ordinary, kernel.again) == (2, 4)
    assert patching.counted() == {"hits": {"scale": 6}, "misses": {}}


def test_a_call_whose_weights_were_packed_is_played_with_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call is recorded, the others are played; a weight that was written in place since is packed anew, and played again."""
    (tmp_path / "packed_scale.py").write_text(PACKING)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    kernels = importlib.import_module("packed_scale")
    kernel = Kernel(kernels.scale_kernel.fn)
    monkeypatch.setattr(kernels, "scale_kernel", kernel)
    assert (launches(PACKING), launches_packed(PACKING)) == ((), ("scale_kernel",))

    fake = lambda x: [x.new_empty(x.shape)]  # noqa: E731 - as packages have it
    player = KernelOperator("played", "packed", "packed_scale", 1, ("weight",), fake, ("scale_kernel",), packs=True).player(())
    weight = torch.rand(16)
    for _ in range(3):
        assert torch.equal(player(X, weight)[0], X * weight)
    weight.mul_(2.0)
    assert torch.equal(player(X, weight)[0], X * weight)
    assert (kernel.ordinary, kernel.again) == (1, 3)


def test_machine_code_is_held_as_long_as_calls_are_played(
    collect: Callable[[], int], model: Any, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton unloads it with the last reference, and may clear its cache."""
    gone: list[int] = []
    monkeypatch.setattr(Compiled, "__del__", lambda self: gone.append(id(self)), raising=False)
    right(model, X, 3)
    collect()
    # of the first, ordinary launch
    assert len(gone) == 1


def test_where_torch_has_no_such_guard_python_asks(model: Any, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks the same is played, what looks otherwise is not."""
    monkeypatch.setattr(guards, "TensorGuards", None)
    assert looks.guard_of([X]) is None
    right(model, X, 3)
    right(model, X[:2].clone(), 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(X)
    assert (kernel.ordinary, kernel.again) == (4, 2)
    assert patching.counted()["misses"] == {"Scale: autocast": 1}


def test_what_torch_guards_code_with_tells_all_that_guards_ask() -> None:
    """A class, a size, a stride, a dtype, a gradient, and what is only marked as negated differ."""
    x = torch.rand(4, 6)
    guard = looks.guard_of([X, x])
    assert guard is not None
    assert guard(X, torch.rand(4, 6))
    others = (nn.Parameter(x), torch.rand(4, 5), torch.rand(6, 4).t(), x.double(), x.clone().requires_grad_(), torch._neg_view(x), None)
    assert not any(guard(X, other) for other in others)


def test_calls_of_several_shapes_are_known_at_once(model: Any, kernel: Kernel) -> None:
    """Prefill and decode in turn: none of them makes the other forgotten."""
    for _ in range(4):
        right(model, X)
        right(model, X[:1].clone())
    assert (kernel.ordinary, kernel.again) == (4, 4)


def test_a_call_that_no_kernel_was_made_for_is_known_as_that(model: Any, kernel: Kernel) -> None:
    """It goes to the original at once, each is counted, and others are answered as ever."""
    for _ in range(4):
        right(model, X[None])
        right(model, X)
    [kept] = [calls for _, calls in known._KNOWN.values()]
    assert len(kept) == 2
    assert kernel.again == 2
    assert patching.counted() == {"hits": {"scale": 4}, "misses": {"Scale: other shapes, dtypes or strides": 4}}


def test_an_address_that_is_not_aligned_is_launched_the_ordinary_way(model: Any, kernel: Kernel) -> None:
    """A kernel that was compiled for multiples of 16 bytes would read beside it."""
    right(model, X, 3)
    odd = torch.rand(97)[1:].view(6, 16)
    assert odd.data_ptr() % 16 == 4
    right(model, odd, 3)
    assert (kernel.ordinary, kernel.again) == (5, 1)
    assert patching.counted()["hits"] == {"scale": 6}


def test_what_was_recorded_at_an_odd_address_is_played_at_any(model: Any, kernel: Kernel) -> None:
    """It was compiled for no alignment."""
    right(model, torch.rand(97)[1:].view(6, 16), 3)
    right(model, X)
    assert (kernel.ordinary, kernel.again) == (2, 2)


def test_who_listens_to_launches_hears_them(model: Any, kernel: Kernel) -> None:
    """As long as Triton has a hook, launches are its own."""
    right(model, X, 3)
    hooks = triton.knobs.runtime.launch_enter_hook
    hooks.add(print)
    try:
        right(model, X, 2)
    finally:
        hooks.remove(print)
    right(model, X)
    assert (kernel.ordinary, kernel.again) == (4, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.inner.weight.mul_(3.0),
        lambda model: model.inner.load_state_dict({"weight": torch.full((16,), 2.0)}),
        lambda model: setattr(model.inner, "weight", nn.Parameter(torch.full((16,), 4.0), requires_grad=False)),
        lambda model: setattr(model.inner.weight, "data", torch.full((16,), 5.0)),
    ],
)
def test_new_weights_are_played_with(model: Any, kernel: Kernel, change: Callable[[Any], Any]) -> None:
    """Written, loaded, replaced, and with other memory."""
    right(model, X, 3)
    change(model)
    right(model, X, 2)
    assert kernel.again == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda model: model.inner.train(), "training mode"),
        (lambda model: model.inner.requires_grad_(), "a gradient is wanted"),
        (lambda model: model.inner.weight.set_(model.inner.weight.repeat(2)[::2]), "other parameters"),
    ],
)
def test_what_a_guard_asks_is_asked_of_a_known_call(model: Any, kernel: Kernel, change: Callable[[Any], Any], reason: str) -> None:
    """Training, gradients, and the same parameter with another layout."""
    right(model, X, 3)
    change(model)
    right(model, X)
    assert patching.counted()["misses"] == {f"Scale: {reason}": 1}


def test_a_default_device_is_no_listener(model: Any, kernel: Kernel) -> None:
    """Many set one for a whole process; another mode hears of each call."""
    right(model, X, 2)
    with torch.device("cpu"):
        right(model, X, 2)
        assert kernel.again == 2
        with BaseTorchFunctionMode():
            right(model, X)
    assert kernel.again == 2


def test_autocast_that_begins_later_is_seen(model: Any, kernel: Kernel) -> None:
    """As long as it lasts the original answers."""
    right(model, X, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(X)
    right(model, X)
    assert patching.counted() == {"hits": {"scale": 4}, "misses": {"Scale: autocast": 1}}


def test_a_parameter_that_wants_gradients_is_no_hindrance_where_none_are_made(model: Any, kernel: Kernel) -> None:
    """Under no_grad calls are played, without it they are the original's."""
    model.requires_grad_()
    with torch.no_grad():
        right(model, X, 4)
    assert kernel.again == 2
    assert model(X).requires_grad
    assert patching.counted()["misses"] == {"Scale: a gradient is wanted": 1}


@pytest.mark.parametrize("missing", ["packed_metadata", "run", "metadata"])
def test_another_interface_of_triton_is_told(model: Any, kernel: Kernel, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches are the ordinary ones, and the counts say why."""
    other = {name: value for name, value in vars(Compiled).items() if name not in (missing, "__dict__", "__weakref__")}
    monkeypatch.setattr(Kernel, "gives", type("Other", (), other))
    right(model, X, 8)
    assert (kernel.ordinary, kernel.again) == (8, 0)
    assert missing in patching.counted()["unplanned"]["scale"]


def test_the_launcher_of_triton_3_6_is_called_below_its_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its function in C takes what the launcher adds, in that one's order; with scratch memory the launcher itself is called."""
    run = SimpleNamespace(launch=print, launch_cooperative_grid=False, launch_pdl=True, global_scratch_size=0, profile_scratch_size=0)
    compiled = SimpleNamespace(run=run, function=7, packed_metadata=(1, 1, 0))
    monkeypatch.setattr(triton, "__version__", "3.6.0")
    assert launching._direct(compiled) == (print, (7, False, True, None, None, (1, 1, 0), None, None, None))
    run.global_scratch_size = 128
    assert launching._direct(compiled) == (run, (7, (1, 1, 0), None, None, None))


@pytest.mark.filterwarnings("ignore:kernelwright. Scale differs")
def test_a_call_that_was_found_wrong_is_forgotten(operator: KernelOperator, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next ones are the original's, also where another operator is put in its place."""
    monkeypatch.setattr(Kernel, "run", lambda self, *args, grid, warmup, **named: args[2].fill_(9.0))
    whole: Any = Around().eval().requires_grad_(False)
    entry = Entry(operator, [["<tensor>"], {}], "<tensor>", (("weight",),), lambda x: True, lambda w: True, True, False)
    place(whole, [Place("Scale", ("inner",), config_of(whole.inner), (entry,))], config_of, verify=True)
    right(whole, X)
    assert type(whole.inner) is Scale
    assert id(whole.inner) not in known._KNOWN
    right(whole, X, 2)


def test_a_module_that_is_gone_is_forgotten(collect: Callable[[], int], model: Any, kernel: Kernel) -> None:
    """Another one may have its id."""
    right(model, X, 2)
    name = id(model.inner)
    assert name in known._KNOWN
    model.inner = Norm()
    collect()
    assert name not in known._KNOWN


def test_a_part_that_is_replaced_is_not_taken_for_the_old_one(operator: KernelOperator, kernel: Kernel) -> None:
    """Parameters are looked for in the module of now."""

    class Outer(Around):
        def forward(self, x: torch.Tensor) -> Any:
            return x * self.inner.weight

    whole: Any = nn.Sequential(Outer()).eval().requires_grad_(False)
    entry = Entry(operator, [["<tensor>"], {}], "<tensor>", (("inner", "weight"),), lambda x: True, lambda w: True, True, False)
    place(whole, [Place("Outer", ("0",), config_of(whole[0]), (entry,))], config_of)
    for _ in range(2):
        for _ in range(3):
            assert torch.equal(whole(X), X * whole[0].inner.weight)
        whole[0].inner = Scale().eval().requires_grad_(False)
    take_out(whole)
    assert kernel.again == 4


def same(forward: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    """Record a forward that only calls PyTorch, and play it for other tensors."""
    first, second = ([torch.rand(shape) for shape in shapes] for _ in range(2))
    result, found = recorded(forward, SimpleNamespace(), (), first, ())  # type: ignore[arg-type]
    play = played(found, [result] if isinstance(result, torch.Tensor) else list(result))
    expected = forward(*second)
    mine = play(*second)
    assert mine is not None
    for one, other in zip(mine, [expected] if isinstance(expected, torch.Tensor) else expected, strict=True):
        assert torch.equal(one, other)
        assert one.is_contiguous()
        assert all(one.untyped_storage().data_ptr() != given.untyped_storage().data_ptr() for given in second)


@pytest.mark.parametrize(
    "forward",
    [
        lambda x, y: torch.nn.functional.linear(x, y.contiguous()).t().contiguous(),
        lambda x, y: (x.view(2, 3, 16).transpose(0, 1) + y.shape[0], y.unbind(0)[1]),
        lambda x, y: torch.ops.aten.slice.Tensor(x, 0, 0, 9223372036854775807),
        lambda x, y: torch.zeros(x.shape[0], dtype=torch.float32) + torch.ops.aten.add.Tensor(x, y[:6], alpha=2).sum(1),
        lambda x, y: [x.new_empty((2, 2)).fill_(x.numel()), torch.full((3,), 2.0), y.narrow(0, 1, 2)],
        lambda x, y: torch.ops.aten.native_layer_norm.default(x, [16], y[0], None, 1e-5)[:2],
        lambda x, y: x.contiguous(),
    ],
)
def test_pytorchs_operators_are_called_again(forward: Callable[..., Any]) -> None:
    """Library calls, views, several results, empty tensors, what is written in place, lists and keywords; no result lies in an input."""
    same(forward, (6, 16), (8, 16))


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        (lambda x, y: x[: int(y.sum())], "depends on what is in a tensor"),
        (lambda x, y: torch.ops.aten.nonzero.default(x), "depends on what is in a tensor"),
        (lambda x, y: x + (x.data_ptr() % 2), "asks for data_ptr"),
        (lambda x, y: x + X, "a tensor of its own"),
    ],
)
def test_what_shapes_do_not_say_cannot_be_played(forward: Callable[..., Any], why: str) -> None:
    """Contents, addresses, and tensors that nobody gave."""
    result, found = recorded(forward, SimpleNamespace(), (), [torch.rand(6, 16), torch.rand(8, 16)], ())  # type: ignore[arg-type]
    with pytest.raises(UnplannedError, match=why):
        played(found, [result])


def test_a_tensor_that_is_given_twice_is_not_taken_for_two() -> None:
    """Two others may be given next time."""
    x = torch.rand(6, 16)
    result, found = recorded(torch.add, SimpleNamespace(), (), [x, x], ())  # type: ignore[arg-type]
    with pytest.raises(UnplannedError, match="given twice"):
        played(found, [result])
