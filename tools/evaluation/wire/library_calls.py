"""Calls of torch's operators between a plan's kernels, as data that a process without the candidate's code acts on.

They are trusted code on views of the plan's own buffers. What such a call makes lies where torch puts it, as in the candidate's own
process; while weights are packed it is copied into the plan's buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tools.evaluation.wire.library_operators import DROPS_AT, KNOWN, OPERATORS, STATISTICS_AT, WORDS, WRITING
from tools.records import Record

if TYPE_CHECKING:
    import torch

COPY = "copy"
"""Name of a call that only moves or converts elements, whatever operator it was."""
_SOURCE_AT = {"aten._to_copy.default": 0, "aten.clone.default": 0, "aten.copy_.default": 1}
"""Operators that do, and which argument they read."""
WRITES = "aten.copy_.default"
"""The one of them that writes to a tensor that is there."""
DTYPES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "complex64": 8,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
"""Dtypes that a view may have, and the bytes of an element."""
OTHERWISE = "the plan has"
"""Words between what a library's operator made and what was recorded: where it runs it may choose another way, as attention does."""
MAX_RANK = 8
_DEVICE = "device"
_STRIDED = "strided"


class View(Record):
    """A tensor in a buffer of the plan."""

    buffer: int
    offset: int
    """Bytes into the buffer."""
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""

    @property
    def reach(self) -> int:
        """Bytes from the first element to the end of the last."""
        if 0 in self.shape:
            return 0
        return (sum(stride * (size - 1) for size, stride in zip(self.shape, self.strides, strict=True)) + 1) * DTYPES[self.dtype]


class Word(Record):
    """A dtype, a memory format, the device, or a text among the arguments, by its name in torch."""

    word: str


Value: TypeAlias = (
    View | Word | tuple[View | None, ...] | tuple[bool, ...] | tuple[int, ...] | tuple[float, ...] | bool | int | float | None
)


class LibraryCall(Record):
    """One operator of torch on views of buffers."""

    kind: Literal["library"] = "library"
    operator: str
    """`copy`, or one of `KNOWN`."""
    arguments: tuple[Value, ...]
    named: tuple[tuple[str, Value], ...] = ()
    results: tuple[View | None, ...] = ()
    """What it makes, in order, without what nobody reads; of a copy the place that it writes to. Empty where it writes to an argument."""

    @property
    def views(self) -> Iterator[View]:
        """What it is given."""
        for value in (*self.arguments, *(value for _, value in self.named)):
            yield from _views(value)

    @property
    def written(self) -> Iterator[View]:
        """What it changes that was there before."""
        if self.operator == COPY:
            yield from _views(self.results)
        elif self.operator in WRITING:
            yield from _views(dict(self.named).get("out", self.arguments[0] if self.arguments else None))
        for place in STATISTICS_AT.get(self.operator, ()):
            yield from _views(self.arguments[place] if place < len(self.arguments) else None)

    @property
    def makes(self) -> Iterator[View]:
        """What is in memory that torch allots to it."""
        if self.operator != COPY:
            yield from _views(self.results)


def _views(value: Any) -> Iterator[View]:
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, View):
            yield one


def written_down(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], results: Sequence[Any], view: Callable[[torch.Tensor], View]
) -> LibraryCall | None:
    """Write down a call of an operator; none where a plan has no place for it. `view` says where a tensor lies."""
    import torch

    name = str(func)
    if name in _SOURCE_AT:
        source = args[_SOURCE_AT[name]]
        if source.device != results[0].device:
            return None
        return LibraryCall(operator=COPY, arguments=(view(source),), results=(view(results[0]),))
    if name not in KNOWN or draws(name, args, kwargs):
        return None
    try:
        arguments = tuple(_value(value, view) for value in args)
        named = tuple((key, _value(value, view)) for key, value in kwargs.items())
    except TypeError:
        return None
    made = () if name in WRITING else tuple(view(one) if isinstance(one, torch.Tensor) else None for one in results)
    return LibraryCall(operator=name, arguments=arguments, named=named, results=made)


Getter: TypeAlias = "Callable[[], torch.Tensor]"
"""Gives a tensor where it lies at this call."""


def ready(
    call: LibraryCall, getter: Callable[[View], Getter], device: str, keep: Callable[[View, torch.Tensor], None] | None = None
) -> Callable[[], int]:
    """Make a call ready to be issued, `getter` being where views lie; it returns 0, and raises ValueError where its result is another.

    What it makes is given to `keep`, or without that copied to where it has a view.
    """
    import torch
    from torch.utils import _pytree

    if call.operator == COPY:
        source, target = (getter(view) for view in (*_views(call.arguments), *_views(call.results)))

        def issue() -> int:
            target().copy_(source())
            return 0

        return issue
    _, name, overload = call.operator.split(".")
    operator = getattr(getattr(torch.ops.aten, name), overload)
    arguments = [_given(value, getter, device) for value in call.arguments]
    named = {key: _given(value, getter, device) for key, value in call.named}
    results = [(place, view, getter(view)) for place, view in enumerate(call.results) if view is not None and keep is None]
    kept = [(place, view) for place, view in enumerate(call.results) if view is not None and keep is not None]

    def issue_operator() -> int:
        made = operator(*(argument() for argument in arguments), **{key: value() for key, value in named.items()})
        leaves = made if isinstance(made, tuple) else (made,) if isinstance(made, torch.Tensor) else _pytree.tree_leaves(made)
        for place, view in kept:
            _compare(call, view, leaves[place])
            assert keep is not None
            keep(view, leaves[place])
        for place, view, target in results:
            _compare(call, view, leaves[place])
            target().copy_(leaves[place])
        return 0

    return issue_operator


def library_fault(call: LibraryCall, buffers: Sequence[tuple[str, int]], *, packs: bool) -> str:  # noqa: PLR0911 - a reason each
    """Say why nobody should make a call; `buffers` has role and size of each, `packs` says that it packs weights. Empty where all holds.

    The role of an argument that the reference writes to is `written`.
    """
    if call.operator not in ((COPY, *OPERATORS) if packs else (COPY, *KNOWN)):
        return f"it {'packs weights by' if packs else 'calls'} the library's {call.operator}"
    ends = (*call.arguments, *call.results)
    if call.operator == COPY and (
        call.named or len(call.arguments) != 1 or len(ends) != 2 or not all(isinstance(end, View) for end in ends)
    ):
        return "it copies something other than one tensor"
    if draws(call.operator, call.arguments, dict(call.named)):
        return f"{call.operator} draws random numbers"
    ours, read = ("packed", ("parameter", "packed")) if packs else ("made", ("input", "parameter", "packed", "made", "written"))
    writable = (ours,) if packs else (ours, "parameter", "written")
    places = writable if call.operator == COPY else (ours,)
    for views, roles in ((_views(call.results), places), (call.written, writable), (call.views, read)):
        for one in views:
            if not 0 <= one.buffer < len(buffers) or buffers[one.buffer][0] not in roles:
                why = "packs weights and is given what only a call has, or makes what is not packed"
                return f"{call.operator} {why if packs else 'writes to what the call has not made'}"
            if not _is_possible(one) or one.offset + one.reach > buffers[one.buffer][1]:
                return f"{call.operator} is given a tensor outside of its buffer"
    if any(view.offset for view in call.makes) and not packs:
        return f"{call.operator} makes a part of a buffer"
    words = (value.word for value in (*call.arguments, *(value for _, value in call.named)) if isinstance(value, Word))
    return next((f"{call.operator} is given {word}" for word in words if not _is_word(word)), "")


def _is_word(word: str) -> bool:
    return word in DTYPES or word in WORDS or word in (_DEVICE, _STRIDED) or word.endswith("_format")


def draws(name: str, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether it drops elements by chance."""
    if name not in DROPS_AT:
        return False
    place = DROPS_AT[name]
    return bool(named.get("dropout_p", args[place] if place < len(args) else 0.0))


def _compare(call: LibraryCall, view: View, made: torch.Tensor) -> None:
    """Raise ValueError where an operator makes something else than it was recorded to: kernels were told of that."""
    lies = [(size, stride) for size, stride in zip(made.shape, made.stride(), strict=True) if size > 1]
    told = [(size, stride) for size, stride in zip(view.shape, view.strides, strict=True) if size > 1]
    alike = str(made.dtype) == f"torch.{view.dtype}" and tuple(made.shape) == view.shape and (lies == told or not made.numel())
    if not alike:
        here = f"{made.dtype} {list(made.shape)} in strides {list(made.stride())}"
        raise ValueError(f"{call.operator} makes {here}, {OTHERWISE} {view.dtype} {list(view.shape)} in strides {list(view.strides)}")


def _is_possible(view: View) -> bool:
    item = DTYPES.get(view.dtype)
    if item is None or len(view.shape) != len(view.strides) or len(view.shape) > MAX_RANK:
        return False
    return view.offset >= 0 and view.offset % item == 0 and min((*view.shape, *view.strides, 0)) >= 0


def _value(value: Any, view: Callable[[torch.Tensor], View]) -> Value:  # noqa: PLR0911 - a kind of argument each
    """Write down an argument; raises TypeError where it has no place in a plan."""
    import torch

    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, torch.Tensor):
        return view(value)
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return Word(word=str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return Word(word=_DEVICE)
    if isinstance(value, str) and value in WORDS:
        return Word(word=value)
    if isinstance(value, list | tuple) and any(isinstance(one, torch.Tensor) for one in value):
        return tuple(None if one is None else view(one) for one in value)
    if isinstance(value, list | tuple) and all(type(one) in (int, bool, float) for one in value):
        return tuple(value)
    raise TypeError(f"{type(value).__name__} has no place in a plan")


def _given(value: Value, getter: Callable[[View], Getter], device: str) -> Callable[[], Any]:
    """Make what gives an argument to an operator as it takes it."""
    import torch

    if isinstance(value, View):
        return getter(value)
    if isinstance(value, tuple) and any(isinstance(one, View) for one in value):
        getters = [getter(one) if isinstance(one, View) else None for one in value]
        return lambda: [None if one is None else one() for one in getters]
    plain: Any = list(value) if isinstance(value, tuple) else value
    if isinstance(value, Word):
        plain = value.word if value.word in WORDS else torch.device(device) if value.word == _DEVICE else getattr(torch, value.word)
    return lambda: plain
