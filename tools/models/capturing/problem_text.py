"""Writes a module's call as a problem file: its trace by torch.export as straight-line PyTorch, its parameters and inputs drawn alike."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import InputKind, OutputKind

from tools.autocast.casts import write_casts
from tools.codegen.trace.dispatch.constant_numbers import fold_numbers
from tools.codegen.trace.dispatch.program import dispatches_of
from tools.codegen.trace.dispatch.row_counts import RowCountError
from tools.codegen.trace.dispatch.row_subsets import exported, has_picked_rows
from tools.models.calls import UnsupportedCallError, filled, structure, tensors
from tools.models.capturing.drawn import UndrawableError, constant_text, drawn_text
from tools.models.forward.steps import SHORT, STEPS, Cut
from tools.models.forward.text import ForwardText, UntraceableError, alive, free_name
from tools.models.forward.written import Written
from tools.models.records import Output

HALF = "half"
"""Name of the dtype that autocast rounds to, in a forward."""
INNER = "inner."
"""Prefix that parameters have in the wrapped module."""
MOST_CONSTANT = 64
"""Elements of a tensor constant that is written into the file."""
SMALL = ((7, 5, 3, 11), (1,))
"""Values for the sizes that may vary, at which a kernel is tried as well."""
_HALVES = (torch.float16, torch.bfloat16)


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

    def __init__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], title: str, cut: Cut | None = None, *, autocast: str = ""
    ) -> None:
        """Trace; a call that cannot be written raises UntraceableError. `title` says in the file what it is.

        With `cut` the call is traced at few steps alone, and the file has their number as a constant. It is traced under autocast to the
        dtype that is named, whose casts are written out.
        """
        self._autocast = getattr(torch, autocast) if autocast else None
        self._title, self._module, self.cut = title, module, cut
        self._leaves = list(tensors((args, kwargs)))
        try:
            flat = _Flat(module, structure((args, kwargs)))
        except UnsupportedCallError as error:
            raise UntraceableError(f"it is called with {error}") from error
        traced = cut.cuts(self._leaves) if cut else [self._leaves]
        self._written = Written([_cast(_exported(flat, leaves, cut.places if cut else ()), self._autocast, leaves) for leaves in traced])
        self._program = self._written.program
        self.picks_rows = has_picked_rows(self._program)
        """Whether it sends rows to experts, by a condition."""
        self.part = self._written.part
        """How much of its operators the file has, as loops are written once."""
        self._taken = {"torch", "nn", "self", "Model", STEPS, HALF}
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
        self.outputs = [self._output(node) for node in self._written.results]
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
        known = {**sizes, STEPS: self.cut.steps} if self.cut else dict(sizes)
        shapes = [self._written.shapes[name] for name in self._user_inputs()]
        return [tuple(eval(self._sized(size), {"__builtins__": {}}, known) for size in shape) for shape in shapes]  # noqa: S307 - an expression of torch's own, of sizes

    def held(self, place: int) -> tuple[int, ...]:
        """List the dimensions of an input that are as long as there are steps, so that no other size was looked at."""
        return tuple(dim for dim, size in enumerate(self._written.shapes[self._user_inputs()[place]]) if STEPS in size)

    def at_steps(self, steps: int) -> str:
        """Write the file with another number of steps."""
        return re.sub(rf"^{STEPS} = \d+$", f"{STEPS} = {steps}", self.source, flags=re.MULTILINE)

    def _bind(self) -> None:
        """Name inputs, parameters and constants, and the sizes that may vary."""
        signature = self._program.graph_signature
        state = {**self._program.state_dict, **self._program.constants}
        if any(spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION) for spec in signature.output_specs):
            raise UntraceableError("it updates a tensor in place")
        nodes = {node.name: node for node in self._program.graph.nodes}
        live = alive(self._program, self._written.results)
        inputs = iter(self.inputs)
        for spec in signature.input_specs:
            node = nodes[spec.arg.name]
            if spec.kind is InputKind.USER_INPUT:
                name = self._names[node.name] = next(inputs)
                self._note_sizes(name, node.meta["val"].shape)
            elif spec.kind is InputKind.CONSTANT_TENSOR and node not in live:
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

    def _output(self, node: Any) -> Output:
        known = {**self._places, STEPS: str(self.cut.steps if self.cut else 0)}
        sizes = self._written.shapes[node.name]
        shape = tuple(re.sub(rf"\b(s\d+|{STEPS})\b", lambda found: known.get(found[0], found[0]), size) for size in sizes)
        return Output(shape=shape, dtype=str(node.meta["val"].dtype).removeprefix("torch."))

    def _text(self) -> str:
        sizes = [f"{name} = {self._hint(symbol)}" for symbol, name in self._sizes.items()]
        sizes += [f"{STEPS} = {self.cut.steps}"] if self.cut else []
        forward = ForwardText(self._names, self._taken, self.inputs[0], self._halves)
        written = list(forward.lines(self._written.body))
        body = [*self._half(written), *self._constants, *written]
        results = ", ".join(map(forward.reference, self._written.results))
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
        steps = [{STEPS: number} if self.cut else {} for number in SHORT]
        return [
            {**{name: choices[place % len(choices)] for place, name in enumerate(self._sizes.values())}, **short}
            for choices, short in zip(SMALL, steps, strict=True)
        ]

    def _hint(self, symbol: str) -> int:
        """Find the size that a symbol stands for in the captured call."""
        return self._read(symbol, self._leaves)

    def _read(self, symbol: str, leaves: Sequence[torch.Tensor]) -> int:
        name, _, index = self._places[symbol].partition(".shape[")
        return int(leaves[self.inputs.index(name)].shape[int(index[:-1])])

    def _user_inputs(self) -> list[str]:
        return [spec.arg.name for spec in self._program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]

    def _drawn(self) -> Iterator[str]:
        sizes = {name: self._hint(symbol) for symbol, name in self._sizes.items()}
        for name, leaf in zip(self._user_inputs(), self._leaves, strict=True):
            shape = ", ".join(map(self._sized, self._written.shapes[name]))
            try:
                yield drawn_text(leaf, shape, sizes)
            except UndrawableError as error:
                raise UntraceableError(f"it is given {error}") from error

    def _sized(self, size: str) -> str:
        return re.sub(r"\bs\d+\b", lambda found: self._sizes.get(found[0], found[0]), size)

    @cached_property
    def _floats(self) -> list[tuple[str, torch.dtype]]:
        """Inputs and parameters with their dtypes."""
        given = [(name, leaf.dtype) for name, leaf in zip(self.inputs, self._leaves, strict=True)]
        state = self._program.state_dict
        return given + [(f"self.{name}", state[key].dtype) for name, own in self.parameters.items() if (key := f"{INNER}{own}") in state]

    @cached_property
    def _halves(self) -> dict[torch.dtype, str]:
        """Tensors of the call whose dtype is a half, by that, as text of their dtype."""
        every = list(reversed(self._floats))
        # autocast leaves what is wider as it is, and so does the name of its dtype
        own = {self._autocast: HALF} if self._autocast and any(dtype is torch.float32 for _, dtype in every) else {}
        return own | {dtype: f"{name}.dtype" for name, dtype in every if dtype in _HALVES}

    def _half(self, lines: Sequence[str]) -> Iterator[str]:
        """Write what autocast rounds to: nothing where a tensor of the call is wider than it was, as an oracle's is."""
        if any(re.search(rf"\b{HALF}\b", line) for line in lines):
            wide = next(name for name, dtype in self._floats if dtype is torch.float32)
            yield f"{HALF} = {self._autocast} if {wide}.dtype == torch.float32 else {wide}.dtype"

    def _name(self, wanted: str) -> str:
        name = free_name(wanted, self._taken)
        self._taken.add(name)
        return name


def _exported(flat: nn.Module, leaves: list[torch.Tensor], fixed: Collection[tuple[int, int]]) -> Any:
    """Export, sizes above 1 free where the module leaves them free and they are not among `fixed` ones, else all as they are."""
    dims = [[dim for dim, size in enumerate(leaf.shape) if size > 1 and (place, dim) not in fixed] for place, leaf in enumerate(leaves)]
    free = {"leaves": tuple(dict.fromkeys(each, torch.export.Dim.AUTO) for each in dims)}
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


def _cast(program: Any, autocast: torch.dtype | None, leaves: Sequence[torch.Tensor]) -> Any:
    """Write autocast's casts into an exported program."""
    write_casts(program, autocast, leaves[0].device.type if leaves else "cpu")
    return program


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
