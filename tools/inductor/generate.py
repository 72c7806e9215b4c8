"""Has Inductor write for a problem: in a process for references, without a device, and without running what it wrote."""

from __future__ import annotations

import ast
import contextlib
import operator
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tools.errors import UserError
from tools.inductor.records import Operand, Program, RefusedError, Written, WrittenKernel
from tools.inductor.stand_in import WHOLE, install
from tools.records import HardwareSheet, Problem, ProblemForm

if TYPE_CHECKING:
    from torch import fx, nn
    from torch.export import ExportedProgram

_RECURRENT = ("aten.lstm.", "aten.gru.", "aten.rnn_")
_PLAIN = {
    "force_disable_caches": True, "compile_threads": 1, "cpp_wrapper": False, "graph_partition": False, "shape_padding": False,
    "size_asserts": True, "alignment_asserts": False, "nan_asserts": False,
    "triton.cudagraphs": False, "triton.store_cubin": False,
}  # fmt: skip
"""Inductor's settings here; what a version of torch does not know is left out. `shape_padding` would time products on the device."""


class _WrittenError(BaseException):
    """Inductor has written its text; nothing catches it on the way."""


def write(problem: Problem, variants: Sequence[Problem], sheet: HardwareSheet) -> Written:
    """Have Inductor write for `problem` on the device `sheet` at its own size and at its variants; a refusal is in the answer."""
    import torch

    version = str(torch.__version__)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    try:
        install(sheet)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            found = [_written(each) for each in (problem, *variants)]
    except RefusedError as error:
        return Written(torch=version, refused=str(error))
    except UserError as error:
        return Written(torch=version, refused=error.what)
    return Written(torch=version, programs=tuple(program for program, _ in found), outputs=found[0][1])


def _written(problem: Problem) -> tuple[Program, Any]:
    from tools.evaluation.untrusted.fake_device import fake_device
    from tools.evaluation.wire.precision import set_precision

    set_precision(problem.policy.precision)
    with fake_device():
        exported = _exported(problem)
        operands = _operands(exported, problem)
        code = _inductor_text(exported)
    return Program(code=code, kernels=_kernels(code), operands=operands), _form(exported)


def _exported(problem: Problem) -> ExportedProgram:
    """Trace the reference on CPU tensors without contents: Python's own indexing of CUDA ones needs a build for CUDA."""
    import torch

    from tools.codegen.trace.exports import fake_arguments

    module = _module(problem)
    try:
        return torch.export.export(module, fake_arguments(problem), strict=False)
    except Exception as error:
        raise RefusedError(f"torch.export cannot trace the reference ({type(error).__name__}: {_first_line(error)})") from error


def _module(problem: Problem) -> nn.Module:
    """Make the reference without contents, unless it is an archive, which brings them, or its constructor reads some."""
    from torch._subclasses import fake_tensor

    from tools.problems import open_problem

    if problem.form is not ProblemForm.EXPORTED:
        with contextlib.suppress(UserError):
            return open_problem(problem).module
    unset: Any = fake_tensor.unset_fake_temporarily
    with unset():
        return open_problem(problem).module


def _operands(exported: ExportedProgram, problem: Problem) -> tuple[Operand, ...]:
    """Say what each tensor that the graph is given is; numbers become part of the graph."""
    import torch
    from torch.export.graph_signature import InputKind

    given = iter(problem.abi.arguments)
    places = {node.name: node for node in exported.graph.nodes if node.op == "placeholder"}
    found: list[Operand] = []
    for spec in exported.graph_signature.input_specs:
        place, target = places[spec.arg.name], str(spec.target)
        if spec.kind is InputKind.USER_INPUT:
            name = next(given).name
            if isinstance(place.meta.get("val"), torch.Tensor):
                found.append(Operand(kind="input", name=name, shape=_shape(place)))
            else:
                exported.graph.erase_node(place)
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            found.append(Operand(kind="parameter", name=target, shape=_shape(place)))
        else:
            _inline(exported, place, target)
    return tuple(found)


def _shape(place: fx.Node) -> tuple[int, ...]:
    return tuple(int(size) for size in place.meta["val"].shape)


def _inline(exported: ExportedProgram, place: fx.Node, target: str) -> None:
    """Write a constant tensor of one number as an operator that makes it; any other is refused."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    value: Any = exported.constants.get(target)
    value = value.constant if isinstance(value, FakeTensor) else value
    if not isinstance(value, torch.Tensor) or value.dim():
        raise RefusedError(f"the reference holds a tensor that is neither a parameter nor a buffer ({target})")
    with torch._C._DisableTorchDispatch():  # type: ignore[attr-defined,unused-ignore]
        number = value.item()
    with exported.graph.inserting_before(next(node for node in exported.graph.nodes if node.op != "placeholder")):
        made = exported.graph.call_function(
            torch.ops.aten.full.default, ([], number), {"dtype": value.dtype, "device": torch.device("cpu")}
        )
    made.meta = dict(place.meta)
    place.replace_all_uses_with(made)
    exported.graph.erase_node(place)


def _inductor_text(exported: ExportedProgram) -> str:
    """Lead the graph to the device and have Inductor write it."""
    import torch
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx
    from torch._inductor.graph import GraphLowering

    graph = exported.graph_module
    whole = getattr(torch.ops, WHOLE.partition("::")[0]).attention.default
    for node in graph.graph.nodes:
        name = str(node.target)
        if name.startswith(_RECURRENT):
            raise RefusedError(f"torch.compile leaves {name.split('.')[1]} to cuDNN as a whole")
        if node.target is torch.ops.aten.scaled_dot_product_attention.default:
            node.target = whole
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": torch.device("cuda:0")}
        if node.target is torch.ops.aten.to.device or node.target is torch.ops.aten.to.dtype_layout:
            node.args = tuple(torch.device("cuda:0") if isinstance(a, torch.device) else a for a in node.args)
    graph.recompile()
    places = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
    inputs = [torch.empty_strided(val.shape, val.stride(), dtype=val.dtype, device="cuda:0") for val in places]
    written: list[str] = []

    def keep(code: str) -> None:
        written.append(code)
        raise _WrittenError

    lowering: Any = GraphLowering
    lowering.save_output_code = keep
    settings = {name: value for name, value in _PLAIN.items() if _known(config, name)}
    with config.patch(settings), contextlib.suppress(_WrittenError):
        try:
            compile_fx(graph, inputs)
        except Exception as error:
            raise RefusedError(f"Inductor cannot compile the reference ({type(error).__name__}: {_first_line(error)})") from error
    if len(written) != 1:
        raise RefusedError("Inductor wrote nothing: the reference launches no kernel")
    return written[0]


def _known(config: Any, name: str) -> bool:
    try:
        operator.attrgetter(name)(config)
    except AttributeError:
        return False
    return True


def _kernels(code: str) -> dict[str, WrittenKernel]:
    """Ask Inductor's heuristics which configurations each kernel would be offered."""
    from torch._inductor.codecache import PyCodeCache

    found: dict[str, WrittenKernel] = {}
    for name, source in kernel_sources(code):
        tuner = getattr(PyCodeCache.load(source), name)
        launchers = tuple({**one.kwargs, "num_warps": one.num_warps, "num_stages": one.num_stages} for one in tuner.configs)
        grid = str(tuner.inductor_meta.get("grid_type", ""))
        programs = _programs(tuner) if grid.endswith("ComboKernelGrid") else ()
        found[name] = WrittenKernel(source=source, grid=grid, launchers=launchers, programs=programs)
    return found


def _programs(tuner: Any) -> tuple[int, ...]:
    """Count the programs of several kernels in one, whose sizes stand in what Inductor says of them."""
    from torch._inductor.runtime.triton_heuristics import GridExpr

    first = tuner.configs[0]
    expression: Any = GridExpr
    counted = expression.from_meta(tuner.inductor_meta, first).eval_slow(dict(first.kwargs))
    return tuple(int(count) for count in counted)


def kernel_sources(code: str) -> Iterator[tuple[str, str]]:
    """List the kernels that a wrapper holds as strings, by name."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "async_compile.triton":
            yield ast.literal_eval(node.args[0]), ast.literal_eval(node.args[1])


def _form(exported: ExportedProgram) -> str:
    spec = exported.call_spec.out_spec
    kind = spec.type if spec is not None else None
    return "tuple" if kind is tuple else "list" if kind is list else "one"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:160]
