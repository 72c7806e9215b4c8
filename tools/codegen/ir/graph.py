"""The operator graph: a traced reference as plain records, without torch.

A value is named by a `Ref`: a node (or an argument, or a parameter) and which of its outputs. Numbers that differ between
the traces of a problem are `Varying`; everything else is a literal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tools.codegen.ir.shares import may_be_nothing
from tools.codegen.ir.sizes import Attribute, Length, Sizes


@dataclass(frozen=True)
class Ref:
    """One tensor value."""

    name: str
    """Node, argument or parameter."""
    index: int = 0
    """Which output of a node with several."""


@dataclass(frozen=True)
class DType:
    """A dtype among an operator's arguments, by torch's name."""

    name: str


@dataclass(frozen=True)
class Raw:
    """An argument written as Python source, e.g. a memory format."""

    text: str


@dataclass(frozen=True)
class TensorMeta:
    """Shape and dtype of a value in every trace."""

    shape: tuple[Sizes, ...]
    dtype: str
    contiguous: bool = True
    """Whether it was contiguous in every trace."""
    unit_last: bool = True
    """Whether neighbours along the last dimension were neighbours in memory in every trace."""
    ordered: bool = False
    """Whether a sort has made it: no element is less than the one before."""
    seen: float = 1.0
    """How often it sees each element that it has in memory, at the sizes as written: windows of `unfold` overlap, and begin anywhere."""

    @cached_property
    def numel(self) -> int:
        """Elements at the sizes as written."""
        count = 1
        for sizes in self.shape:
            count *= sizes[0]
        return count

    @cached_property
    def written(self) -> tuple[int, ...]:
        """Shape at the sizes as written."""
        return tuple([sizes[0] for sizes in self.shape])

    def alike(self, other: TensorMeta) -> bool:
        """Whether another value has the same shape and dtype."""
        return self.shape == other.shape and self.dtype == other.dtype


@dataclass(frozen=True)
class Node:
    """One ATen call."""

    name: str
    target: str
    """E.g. `aten.softmax.int`."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[TensorMeta, ...]
    scale: Ref | None = field(default=None, kw_only=True)
    """The power of two that its first result is multiplied by, where that is written as halves."""

    @cached_property
    def op(self) -> str:
        """Operator without namespace and overload, e.g. `softmax`."""
        return self.target.split(".")[1]

    @property
    def overload(self) -> str:
        """Which overload of the operator, e.g. `int`."""
        return self.target.split(".")[2]

    @property
    def call(self) -> str:
        """Operator and overload, e.g. `softmax.int`."""
        return f"{self.op}.{self.overload}"

    @property
    def result(self) -> TensorMeta:
        """Its first result, in the shape that the reference knows."""
        return self.outputs[0]

    @cached_property
    def refs(self) -> tuple[Ref, ...]:
        """Values it reads, in order, without repeats."""
        return tuple(dict.fromkeys(find_refs((self.args, tuple(self.kwargs.values()), self.scale))))

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """Read an argument given by position or by name."""
        return self.args[place] if len(self.args) > place else self.kwargs.get(name, default)


@dataclass(frozen=True)
class Copied(Node):
    """A value that is made again for those who read this copy: it belongs to their kernel, not to that of what it is made of."""


@dataclass(frozen=True)
class Statistics(Node):
    """A norm of which others read the statistics alone: what normalises by them belongs to their kernels, not to its own."""


@dataclass(frozen=True)
class OfPieces(Node):
    """What a norm makes of the statistics of several pieces, a few numbers a channel: kernels of these alone hold it."""


@dataclass(frozen=True)
class Normalised(Node):
    """The last of the operators that normalise by such statistics: its result is bounded as a norm's is."""

    affine: tuple[Ref | None, Ref | None] = (None, None)
    """The norm's weight and bias."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a piece lies in a larger tensor."""

    piece: Ref
    base: Ref | None
    """The tensor that holds the pieces before it; none for the first, whose kernel makes the tensor."""
    dim: int
    start: Sizes
    total: Sizes
    """Its size along that dimension."""


@dataclass(frozen=True)
class Placed(Node):
    """A piece of a concatenation written into its place: a kernel that makes the piece can write it there."""

    place: Place | None = None


@dataclass(frozen=True)
class Formula(Node):
    """A value that is made of positions and numbers alone, such as a mask of a triangle: a kernel computes it where it is read."""


@dataclass(frozen=True)
class LaidOut(Node):
    """An operator on channels whose first result is taken as rows of channels, and its input as the reference has it."""

    copied: bool = False
    """Whether a library's convolution has its input brought into that layout first."""
    leading: int = 1
    """Dimensions before the channels."""

    @property
    def rank(self) -> int:
        """Dimensions of its result."""
        return len(self.outputs[0].shape)

    @property
    def result(self) -> TensorMeta:
        """Its first result, in the shape that the reference knows."""
        made, first = self.outputs[0], self.leading
        return replace(made, shape=(*made.shape[:first], made.shape[-1], *made.shape[first:-1]), contiguous=False, unit_last=False)


@dataclass(frozen=True)
class Called(Node):
    """A call of a function of PyTorch's that cannot be traced: always the library's."""

    path: str = ""
    """How the function is found, e.g. `torch.cov`."""


@dataclass(frozen=True)
class DataSized(Node):
    """Operators among which data decide sizes or numbers, as one that is always the library's; its arguments are what they read."""

    body: tuple[Node, ...] = ()
    """In order, without shapes."""
    left: tuple[Ref, ...] = ()
    """Its results, by the nodes of the body."""

    @staticmethod
    def given(place: int) -> Ref:
        """Name one of its arguments inside the body."""
        return Ref(f"given_{place}")


@dataclass(frozen=True)
class OperatorGraph:
    """A traced reference."""

    arguments: tuple[str, ...]
    """Names of the forward call's arguments in order, scalars included."""
    parameters: dict[str, str]
    """Value name to state-dict key."""
    inputs: dict[str, TensorMeta]
    """Tensors among the arguments, and the parameters and buffers, by value name."""
    nodes: tuple[Node, ...]
    outputs: Any
    """What forward returns: a `Ref`, or tuples, lists and dicts of them."""
    traces: int
    """How many sizes it was traced at; with one, every size is a literal of the emitted source."""
    training: bool = False
    blocked: tuple[str, ...] = ()
    """Why nothing of it can be generated; empty where something may be."""
    calls: int = 0
    """Operators of one trace, where nothing can be generated and `nodes` is empty."""
    replayable: bool = True
    """Whether every call launches the same on the same memory: what data decides, or writes to an argument, does not."""
    keeps_state: bool = False
    """Whether forward leaves something behind in Python: a call's result may then depend on the calls before it."""
    effects: frozenset[str] = field(default_factory=frozenset)
    """Nodes that write to a buffer: always run, always by the library."""
    buffers: frozenset[str] = field(default_factory=frozenset)
    """Which of `parameters` are buffers, by value name."""
    plain: frozenset[str] = field(default_factory=frozenset)
    """Which of them are plain attributes of the module, by value name: `module.to(device)` leaves these where they are."""
    fixed: frozenset[str] = field(default_factory=frozenset)
    """Which of `parameters` keep their contents from call to call, by value name: what is made of them may be kept."""
    constants: tuple[Sizes | Length, ...] = ()
    """Integer constants of the file that no shape of an input tells, in every trace."""
    attributes: tuple[Attribute, ...] = ()
    """Numbers that differ between traces and that the emitted module's constructor keeps as the reference's does."""
    prepacked: tuple[Node, ...] = ()
    """Operators on such parameters alone, in order, that `pack_weights` runs once for all calls: their results are `inputs` and `fixed`."""

    @cached_property
    def readable_numbers(self) -> dict[tuple[int | float, ...], bool]:
        """Numbers that vary with the sizes, and whether the shapes of the inputs tell them: kept as they are asked for."""
        return {}

    @cached_property
    def vanishing(self) -> frozenset[Sizes]:
        """Sizes of what is made that may be 0 where no input has a dimension of size 0."""
        made = {sizes for node in self.nodes for meta in node.outputs for sizes in meta.shape if len(set(sizes)) > 1}
        known = {sizes for meta in self.inputs.values() for sizes in meta.shape}
        return frozenset(sizes for sizes in made - known if any(may_be_nothing(sizes, each) for each in known))

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def order(self) -> dict[str, int]:
        """Position of each node."""
        return {node.name: place for place, node in enumerate(self.nodes)}

    @cached_property
    def users(self) -> dict[str, tuple[Node, ...]]:
        """Nodes that read each value's node, argument or parameter."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(ref.name for ref in node.refs):
                found.setdefault(name, []).append(node)
        return {name: tuple(users) for name, users in found.items()}

    @cached_property
    def returned(self) -> tuple[Ref, ...]:
        """Values that forward returns."""
        return tuple(dict.fromkeys(find_refs(self.outputs)))

    def meta(self, ref: Ref) -> TensorMeta:
        """Shape and dtype of a value."""
        node = self.by_name.get(ref.name)
        return node.outputs[ref.index] if node else self.inputs[ref.name]


def find_refs(tree: Any) -> Iterator[Ref]:
    """Yield every `Ref` inside nested tuples, lists and dicts."""
    if isinstance(tree, Ref):
        yield tree
    elif isinstance(tree, tuple | list):
        for item in tree:
            yield from find_refs(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from find_refs(item)


def map_refs(tree: Any, change: Callable[[Ref], Any]) -> Any:
    """Put what `change` makes of it in the place of every `Ref` inside nested tuples, lists and dicts."""
    if isinstance(tree, Ref):
        return change(tree)
    if isinstance(tree, tuple | list):
        return type(tree)(map_refs(item, change) for item in tree)
    if isinstance(tree, dict):
        return {key: map_refs(item, change) for key, item in tree.items()}
    return tree
