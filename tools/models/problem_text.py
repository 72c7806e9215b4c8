"""Writes a module's call as a problem file: its trace by torch.export as straight-line PyTorch, its parameters and inputs drawn alike."""

from __future__ import annotations

import inspect
import math
import operator
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import InputKind, OutputKind

from tools.codegen.trace.dispatch.constant_numbers import fold_numbers
from tools.codegen.trace.dispatch.program import dispatches_of
from tools.codegen.trace.dispatch.row_counts import RowCountError
from tools.codegen.trace.dispatch.row_subsets import OPERATOR, exported, has_picked_rows
from tools.models.calls import UnsupportedCallError, filled, structure, tensors
from tools.models.drawn import UndrawableError, constant_text, drawn_text
from tools.models.records import Output

INNER = "inner."
"""Prefix that parameters have in the wrapped module."""
MOST_CONSTANT = 64
"""Elements of a tensor constant that is written into the file."""
SMALL = ((7, 5, 3, 11), (1,))
"""Values for the sizes that may vary, at which a kernel is tried as well."""
_HALVES = (torch.float16, torch.bfloat16)
_CHECKS = ("_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range", "_assert_async")
"""Operators that only check what a trace relies on."""
_ARITHMETIC = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.truediv: "/", operator.mod: "%"}


class UntraceableError(Exception):
    """A call that cannot be written as a problem; the text says why, as a clause."""


class _Flat(nn.Module):
    """A module whose call takes tensors alone, and gives a flat tuple of them."""

    def __init__(self, inner: nn.Module, shape: Any) -> None:
        super().__init__()
        self.inner = inner
        self._shape = shape

    def forward(self, *leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = filled(self._shape, iter(leaves))
        return tuple(tensors(self.inner(*args, **kwargs)))


class ProblemText:
    """One call of one module, traced."""

    def __init__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], title: str) -> None:
        """Trace; a call that cannot be written raises UntraceableError. `title` says in the file what it is."""
        self._title, self._module = title, module
        self._leaves = list(tensors((args, kwargs)))
        try:
            self._program = _exported(_Flat(module, structure((args, kwargs))), self._leaves)
        except UnsupportedCallError as error:
            raise UntraceableError(f"it is called with {error}") from error
        self.picks_rows = has_picked_rows(self._program)
        """Whether it sends rows to experts, by a condition."""
        self._taken = {"torch", "nn", "self", "Model"}
        self.inputs = [self._name(name) for name in _argument_names(module, args, kwargs)]
        """Names of the tensors of a call, in order."""
        self.parameters: dict[str, str] = {}
        """Of the file's parameters and buffers: the name in the module."""
        self._sizes: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._made: list[str] = []
        self._constants: list[str] = []
        self._bind()
        self.outputs = [self._output(node) for node in self._results()]
        self._shapes: dict[str, tuple[float, dict[str, int]]] = {}
        self.source = self._text()

    def set_shapes(self, leaves: Sequence[torch.Tensor], shapes: dict[str, tuple[float, dict[str, int]]]) -> None:
        """Write it anew for several shapes, by name how often each counts and its sizes; as written it has those of `leaves`."""
        self._leaves, self._shapes = list(leaves), shapes
        self.source = self._text()

    def sizes_of(self, leaves: Sequence[torch.Tensor]) -> dict[str, int]:
        """Read the free sizes off a call."""
        return {name: self._read(symbol, leaves) for symbol, name in self._sizes.items()}

    def shapes_at(self, sizes: dict[str, int]) -> list[tuple[int, ...]]:
        """Work out the shapes of inputs at such sizes."""
        nodes = {node.name: node for node in self._program.graph.nodes}
        shapes = [nodes[name].meta["val"].shape for name in self._user_inputs()]
        return [tuple(eval(self._sized(size), {"__builtins__": {}}, dict(sizes)) for size in shape) for shape in shapes]  # noqa: S307 - an expression of torch's own, of sizes

    def _bind(self) -> None:
        """Name inputs, parameters and constants, and the sizes that may vary."""
        signature = self._program.graph_signature
        state = {**self._program.state_dict, **self._program.constants}
        if any(spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION) for spec in signature.output_specs):
            raise UntraceableError("it updates a tensor in place")
        nodes = {node.name: node for node in self._program.graph.nodes}
        alive = self._alive()
        inputs = iter(self.inputs)
        for spec in signature.input_specs:
            node = nodes[spec.arg.name]
            if spec.kind is InputKind.USER_INPUT:
                name = self._names[node.name] = next(inputs)
                self._note_sizes(name, node.meta["val"].shape)
            elif spec.kind is InputKind.CONSTANT_TENSOR and node not in alive:
                continue
            elif spec.kind is InputKind.CONSTANT_TENSOR and str(spec.target) not in self._program.state_dict:
                self._write_constant(node.name, str(spec.target), state[str(spec.target)])
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                self._hold(node.name, str(spec.target), state[str(spec.target)], spec.kind)
            else:
                raise UntraceableError(f"its trace takes a {spec.kind.name.lower()}")

    def _note_sizes(self, name: str, shape: Sequence[Any]) -> None:
        for place, size in enumerate(shape):
            text = str(size)
            if not text.isdigit() and text.isidentifier() and text not in self._sizes:
                self._sizes[text] = self._name(f"size{len(self._sizes)}")
                self._places[text] = f"{name}.shape[{place}]"

    def _hold(self, node: str, target: str, value: torch.Tensor, kind: InputKind) -> None:
        """Write a parameter or a buffer of the module."""
        own = target.removeprefix(INNER)
        # parts of a sequence are called by numbers
        name = self._name(re.sub(r"\W|^(?=\d)", "_", own))
        self._names[node] = f"self.{name}"
        self.parameters[name] = own
        try:
            text = drawn_text(value, ", ".join(map(str, value.shape)))
        except UndrawableError as error:
            raise UntraceableError(f"{own} holds {error}") from error
        whole = kind is InputKind.PARAMETER and value.is_floating_point()
        self._made.append(f"self.{name} = nn.Parameter({text})" if whole else f'self.register_buffer("{name}", {text})')

    def _write_constant(self, node: str, target: str, value: torch.Tensor) -> None:
        """Write a tensor that the forward makes of numbers; a package has no place for one that a module holds and does not register."""
        own = target.removeprefix(INNER)
        if self._holds(own):
            raise UntraceableError(f"it holds {own}, a tensor that is neither a parameter nor a buffer")
        if value.numel() > MOST_CONSTANT:
            raise UntraceableError(f"its forward makes a tensor of {value.numel()} numbers, and may make one of {MOST_CONSTANT}")
        name = self._names[node] = self._name(re.sub(r"\W", "_", own))
        self._constants.append(f"{name} = {constant_text(value, f'{self.inputs[0]}.device')}")

    def _holds(self, path: str) -> bool:
        try:
            return isinstance(operator.attrgetter(path)(self._module), torch.Tensor)
        except AttributeError:
            return False

    def _results(self) -> list[Any]:
        found = self._program.graph.output_node().args[0]
        specs = self._program.graph_signature.output_specs
        kept = [node for node, spec in zip(found, specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]
        if not kept or not all(isinstance(node, torch.fx.Node) for node in kept):
            raise UntraceableError("it gives something else than tensors")
        return kept

    def _output(self, node: Any) -> Output:
        value = node.meta["val"]
        shape = tuple(re.sub(r"\bs\d+\b", lambda found: self._places.get(found[0], found[0]), str(size)) for size in value.shape)
        return Output(shape=shape, dtype=str(value.dtype).removeprefix("torch."))

    def _text(self) -> str:
        sizes = [f"{name} = {self._hint(symbol)}" for symbol, name in self._sizes.items()]
        body = list(self._lines())
        results = ", ".join(self._reference(node) for node in self._results())
        lines = [
            f'"""{self._title}, as torch.export traced it; written by `kernelwright model`."""',
            "",
            "import torch",
            "from torch import nn",
            *(["", *sizes, "", *self._workloads(), f"SMALL_SIZES = {self._small()!r}"] if sizes else []),
            "",
            "",
            "class Model(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            *(f"        {line}" for line in self._made),
            "        self.eval()",
            "",
            f"    def forward(self, {', '.join(self.inputs)}):",
            *(f"        {line}" for line in body),
            f"        return {results}",
            "",
            "",
            "def get_inputs():",
            "    return [",
            *(f"        {line}," for line in self._drawn()),
            "    ]",
            "",
            "",
            "def get_init_inputs():",
            "    return []",
        ]
        return "\n".join(lines) + "\n"

    def _workloads(self) -> Iterator[str]:
        """Write at which shapes it is used, and how often."""
        if self._shapes:
            yield f"WORKLOADS = { {name: sizes for name, (_, sizes) in self._shapes.items()}!r}"
            yield f"WEIGHTS = { {name: weight for name, (weight, _) in self._shapes.items()}!r}"

    def _small(self) -> list[dict[str, int]]:
        """Choose sizes to try it at beside the captured ones: odd and unlike their neighbours, and ones."""
        return [{name: choices[place % len(choices)] for place, name in enumerate(self._sizes.values())} for choices in SMALL]

    def _hint(self, symbol: str) -> int:
        """Find the size that a symbol stands for in the captured call."""
        return self._read(symbol, self._leaves)

    def _read(self, symbol: str, leaves: Sequence[torch.Tensor]) -> int:
        name, _, index = self._places[symbol].partition(".shape[")
        return int(leaves[self.inputs.index(name)].shape[int(index[:-1])])

    def _user_inputs(self) -> list[str]:
        return [spec.arg.name for spec in self._program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]

    def _drawn(self) -> Iterator[str]:
        nodes = {node.name: node for node in self._program.graph.nodes}
        sizes = {name: self._hint(symbol) for symbol, name in self._sizes.items()}
        for name, leaf in zip(self._user_inputs(), self._leaves, strict=True):
            shape = ", ".join(self._sized(size) for size in nodes[name].meta["val"].shape)
            try:
                yield drawn_text(leaf, shape, sizes)
            except UndrawableError as error:
                raise UntraceableError(f"it is given {error}") from error

    def _sized(self, size: Any) -> str:
        return re.sub(r"\bs\d+\b", lambda found: self._sizes.get(found[0], found[0]), str(size))

    def _lines(self) -> Iterator[str]:
        """Write the operators in order, without those that only check."""
        yield from self._constants
        alive = self._alive()
        for node in (each for each in self._program.graph.nodes if each.op == "call_function" and each in alive):
            # an argument and an operator's result may want one name
            self._names[node.name] = self._name(node.name)
            yield f"{self._names[node.name]} = {self._expression(node)}"

    def _alive(self) -> set[Any]:
        """Find what results are made of, and what writes."""
        alive = set(self._results())
        for node in reversed(list(self._program.graph.nodes)):
            if node in alive or (node.op == "call_function" and _writes(node)):
                alive.update((node, *node.all_input_nodes))
        return alive

    def _expression(self, node: Any) -> str:
        target, args = node.target, [self._reference(value) for value in node.args]
        if target is operator.getitem:
            return f"{args[0]}[{args[1]}]"
        if target in _ARITHMETIC:
            return f"{args[0]} {_ARITHMETIC[target]} {args[1]}"
        if target is torch.ops.aten.sym_size.int:
            return f"{args[0]}.shape[{args[1]}]"
        if str(target) == OPERATOR:
            return f"torch.nonzero({args[0]})"
        if not isinstance(target, torch._ops.OpOverload):
            raise UntraceableError(f"its trace holds {getattr(target, '__name__', target)}")
        if target._schema.is_mutable and any(isinstance(one, torch.fx.Node) and one.op == "placeholder" for one in node.args):
            raise UntraceableError("it updates a tensor in place")
        if any(name in str(target) for name in _CHECKS):
            raise UntraceableError("a check in it is used as a value")
        if target is torch.ops.aten.to.dtype:
            args[1] = self._cast(node.args[0], node.args[1])
        named = [f"{key}={self._reference(value)}" for key, value in node.kwargs.items()]
        return f"torch.ops.{target}({', '.join([*args, *named])})"

    def _cast(self, node: Any, dtype: torch.dtype) -> str:
        """Write the dtype of a cast between floats as that of a tensor of the call: what is rounded back to a half follows an oracle."""
        return self._halves.get(dtype, repr(dtype)) if node.meta["val"].dtype.is_floating_point else repr(dtype)

    @cached_property
    def _halves(self) -> dict[torch.dtype, str]:
        """Tensors of the call whose dtype is a half, by that, as text of their dtype."""
        given = [(name, leaf.dtype) for name, leaf in zip(self.inputs, self._leaves, strict=True)]
        state = self._program.state_dict
        held = [(f"self.{name}", state[key].dtype) for name, own in self.parameters.items() if (key := f"{INNER}{own}") in state]
        return {dtype: f"{name}.dtype" for name, dtype in reversed([*given, *held]) if dtype in _HALVES}

    def _reference(self, value: Any) -> str:
        """Write an argument."""
        if isinstance(value, torch.fx.Node):
            return self._names[value.name]
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self._reference, value))}]"
        if isinstance(value, torch.device):
            return f"{self.inputs[0]}.device"
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if value is None or isinstance(value, bool | int | str | torch.dtype | torch.layout | torch.memory_format):
            return repr(value)
        raise UntraceableError(f"its trace holds a {type(value).__name__}")

    def _name(self, wanted: str) -> str:
        """Give a name that is not taken yet."""
        name, count = wanted, 1
        while name in self._taken:
            name, count = f"{wanted}_{count}", count + 1
        self._taken.add(name)
        return name


def _writes(node: Any) -> bool:
    """Whether an operator writes to what it is given, so that it counts although nobody uses its result."""
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable and target is not torch.ops.aten.detach_.default


def _exported(flat: nn.Module, leaves: list[torch.Tensor]) -> Any:
    """Export, sizes above 1 free where the module leaves them free, else all as they are."""
    free = {"leaves": tuple({place: torch.export.Dim.AUTO for place, size in enumerate(leaf.shape) if size > 1} for leaf in leaves)}
    why = ""
    for shapes in (free, None):
        export = partial(torch.export.export, flat, tuple(leaves), dynamic_shapes=shapes, strict=False)
        try:
            with torch.no_grad():
                program = exported(export)
                if not has_picked_rows(program):
                    return program
                fold_numbers(program)
                blocked = dispatches_of(program).blocked
                why = f": {blocked[0]}" if blocked else ""
                # what a mask picks may be traced as it is, where nothing depends on how much that is
                return export() if blocked else program
        except Exception as error:
            failure = error
    said = " ".join(str(failure).split())
    if isinstance(failure, RowCountError):
        raise UntraceableError(f"its control flow depends on data: {said}") from failure
    if type(failure).__name__ == "GuardOnDataDependentSymNode" or "data-dependent" in said.lower():
        raise UntraceableError(f"its control flow depends on data{why}") from failure
    raise UntraceableError(f"torch.export does not trace it ({type(failure).__name__}: {said[:120]})") from failure


def _argument_names(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Name the tensors of a call by the parameters of `forward`, numbered where one holds several."""
    known = list(inspect.signature(module.forward).parameters.values())
    names = [each.name for each in known if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    given = [(names[place] if place < len(names) else f"argument{place}", value) for place, value in enumerate(args)]
    found: list[str] = []
    for name, value in [*given, *kwargs.items()]:
        count = len(list(tensors(value)))
        found += [name] if isinstance(value, torch.Tensor) else [f"{name}_{place}" for place in range(count)]
    return found
