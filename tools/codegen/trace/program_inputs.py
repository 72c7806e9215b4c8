"""What an exported program is given: arguments, parameters, buffers, and small tensors that its reference makes of numbers."""

from __future__ import annotations

import contextlib
import math
import re
from typing import TYPE_CHECKING, Any

from tools.codegen.ir.constant_tensors import MOST_NUMBERS, constant_target
from tools.codegen.ir.graph import DType, Node, Raw, Ref, TensorMeta
from tools.records import Problem, ProblemForm

if TYPE_CHECKING:
    from torch import fx, nn
    from torch.export import ExportedProgram


class ProgramInputs:
    """The inputs of one exported program, under the names that they have in a graph."""

    def __init__(self, program: ExportedProgram, problem: Problem, module: nn.Module) -> None:
        """Read them in the program's order."""
        self.program, self.problem, self.module = program, problem, module
        self.arguments = tuple(spec.name for spec in problem.abi.arguments)
        self.refs: dict[str, Ref] = {}
        """By the name of their node."""
        self.tensors: dict[str, TensorMeta] = {}
        self.parameters: dict[str, str] = {}
        self.buffers: set[str] = set()
        self.constants: list[Node] = []
        """Operators that make the small tensors of numbers."""
        self.blocked: list[str] = []
        self.replayable = True
        self._read()

    def _read(self) -> None:
        from torch.export.graph_signature import InputKind

        places = {node.name: node for node in self.program.graph.nodes if node.op == "placeholder"}
        taken = {*self.arguments}
        user = iter(self.arguments)
        for spec in self.program.graph_signature.input_specs:
            place = places[spec.arg.name]
            if spec.kind is InputKind.USER_INPUT:
                name = next(user)
                if is_tensor(place.meta.get("val")):
                    self._bind(place, name)
            elif spec.kind is InputKind.PARAMETER or self._is_attribute(str(spec.target)):
                name = _parameter_name(str(spec.target), taken)
                taken.add(name)
                self.parameters[name] = str(spec.target)
                self._bind(place, name)
                if spec.kind is not InputKind.PARAMETER:
                    self.buffers.add(name)
            elif (contents := self._contents(str(spec.target))) is not None:
                self._constant(place, contents)
            else:
                self.blocked.append(
                    f"the reference makes a constant tensor inside forward, of more than {MOST_NUMBERS} elements or of none that are known"
                )
                self.replayable = False
                self._bind(place, place.name)

    def _contents(self, target: str) -> Any:
        """Read the numbers of a small constant tensor, e.g. `torch.tensor([0.5, 0.25])` inside forward; none of any other."""
        import torch
        from torch._subclasses.fake_tensor import FakeTensor

        value = self.program.constants.get(target)
        value = value.constant if isinstance(value, FakeTensor) else value
        if not isinstance(value, torch.Tensor) or value.numel() > MOST_NUMBERS or value.is_complex():
            return None
        with torch._C._DisableTorchDispatch(), contextlib.suppress(RuntimeError):  # type: ignore[attr-defined,unused-ignore]
            return value.tolist()
        # a gradient's trace takes what was computed before for a constant, of which it has no contents
        return None

    def _constant(self, place: fx.Node, contents: Any) -> None:
        meta = meta_of(place.meta["val"])
        keywords = {"dtype": DType(meta.dtype), "device": Raw("device")}
        self.constants.append(Node(place.name, constant_target(meta), (contents,), keywords, (meta,)))
        self.refs[place.name] = Ref(place.name)
        # where the reference's own forward is kept, it copies them to the device, which cannot be captured
        self.replayable &= not meta.shape

    def _is_attribute(self, path: str) -> bool:
        """Whether the emitted module will have this tensor too: in the state dict, or made by the copied constructor."""
        if self.problem.form is not ProblemForm.KERNELBENCH:
            return path in {spec.name for spec in self.problem.abi.parameters}
        owner: Any = self.module
        for part in path.split("."):
            owner = getattr(owner, part, None)
        return is_tensor(owner)

    def _bind(self, place: fx.Node, name: str) -> None:
        self.refs[place.name] = Ref(name)
        self.tensors[name] = meta_of(place.meta["val"])


def _parameter_name(key: str, taken: set[str]) -> str:
    """Name a parameter by the end of its key: `ln.weight` becomes `ln_weight`."""
    name = re.sub(r"\W", "_", key)
    name = f"p_{name}" if name[:1].isdigit() else name
    return f"{name}_parameter" if name in taken else name


def meta_of(val: Any) -> TensorMeta:
    """Describe a tensor of one trace."""
    shape = tuple((int(size),) for size in val.shape)
    unit_last = not shape or val.stride(-1) == 1
    return TensorMeta(shape, str(val.dtype).removeprefix("torch."), bool(val.is_contiguous()), bool(unit_last), seen=_seen(val))


def _seen(val: Any) -> float:
    """Count how often each element is seen that a tensor reaches in memory; what is repeated without a stride is one element."""
    if not val.numel():
        return 1.0
    walked = [(int(size), int(stride)) for size, stride in zip(val.shape, val.stride(), strict=True) if stride]
    return max(1.0, math.prod(size for size, _ in walked) / (1 + sum((size - 1) * stride for size, stride in walked)))


def is_tensor(val: Any) -> bool:
    """Whether a node's value is a tensor."""
    import torch

    return isinstance(val, torch.Tensor)
