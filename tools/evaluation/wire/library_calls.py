"""What the step that packs weights may call of torch, as data that a process without the candidate's code acts on.

They are trusted code on views of the plan's own buffers. In a call of the candidate itself there are none: a launch plan times kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tools.records import Record

if TYPE_CHECKING:
    import torch

COPY = "copy"
"""Name of a call that only moves or converts elements, whatever operator it was."""
_SOURCE_AT = {"aten._to_copy.default": 0, "aten.clone.default": 0, "aten.copy_.default": 1}
"""Operators that do, and which argument they read."""
WRITES = "aten.copy_.default"
"""The one of them that writes to a tensor that is there."""
_PAIRS = ("add", "sub", "rsub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")
_BY_OVERLOAD: dict[str, tuple[str, ...]] = {
    "Tensor": _PAIRS,
    "Scalar": (*_PAIRS, "pow"),
    "Tensor_Scalar": ("pow",),
    "Tensor_Tensor": ("pow",),
    "self": ("where",),
    "dim": ("mean",),
    "dim_IntList": ("sum",),
    "default": (
        *("neg", "abs", "sign", "rsqrt", "sqrt", "reciprocal", "exp", "exp2", "log", "log2", "round", "floor", "ceil", "clamp"),
        *("maximum", "minimum", "logical_not", "logical_and", "logical_or", "isfinite"),
        *("sum", "mean", "amax", "amin", "argmax", "argmin", "mm", "bmm", "addmm"),
        *("cat", "stack", "constant_pad_nd", "flip", "index_select", "tril", "triu"),
    ),
}
OPERATORS = frozenset(f"aten.{name}.{overload}" for overload, names in _BY_OVERLOAD.items() for name in names)
"""Operators that read tensors, make one of their own, and give the same result again."""
DTYPES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1}
"""Dtypes that a view may have, and the bytes of an element."""
MAX_RANK = 8


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
    """A dtype or a memory format among the arguments, by its name in torch."""

    word: str


Value: TypeAlias = View | Word | tuple[View, ...] | tuple[int, ...] | bool | int | float | None


class LibraryCall(Record):
    """One operator of torch on views of buffers; its result is copied to where the candidate's lay."""

    kind: Literal["library"] = "library"
    operator: str
    """`copy`, or one of `OPERATORS`."""
    arguments: tuple[Value, ...]
    named: tuple[tuple[str, Value], ...] = ()
    result: View

    @property
    def views(self) -> Iterator[View]:
        """What it reads."""
        for value in (*self.arguments, *(value for _, value in self.named)):
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, View):
                    yield one


def written_down(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor, view: Callable[[torch.Tensor], View]
) -> LibraryCall | None:
    """Write down a call of an operator; none where a plan has no place for it. `view` says where a tensor lies."""
    name = str(func)
    if name in _SOURCE_AT:
        source = args[_SOURCE_AT[name]]
        if source.device != result.device:
            return None
        return LibraryCall(operator=COPY, arguments=(view(source),), result=view(result))
    if name not in OPERATORS:
        return None
    try:
        arguments = tuple(_value(value, view) for value in args)
        named = tuple((key, _value(value, view)) for key, value in kwargs.items())
    except TypeError:
        return None
    return LibraryCall(operator=name, arguments=arguments, named=named, result=view(result))


def ready(call: LibraryCall, tensor: Callable[[View], torch.Tensor]) -> Callable[[], int]:
    """Make a call ready to be issued, `tensor` being where views lie; it returns 0, and raises ValueError where its result is another."""
    import torch

    target = tensor(call.result)
    given = [_given(value, tensor) for value in call.arguments]
    named = {key: _given(value, tensor) for key, value in call.named}
    if call.operator == COPY:
        (source,) = given

        def issue() -> int:
            target.copy_(source)
            return 0

        return issue
    _, name, overload = call.operator.split(".")
    operator = getattr(getattr(torch.ops.aten, name), overload)

    def issue_operator() -> int:
        made = operator(*given, **named)
        if made.shape != target.shape or made.dtype != target.dtype:
            raise ValueError(f"{call.operator} makes {made.dtype} {list(made.shape)}, the plan has {target.dtype} {list(target.shape)}")
        target.copy_(made)
        return 0

    return issue_operator


def library_fault(call: LibraryCall, buffers: Sequence[tuple[str, int]]) -> str:
    """Say why nobody should make a call; `buffers` has role and size of each. Empty where everything holds."""
    if call.operator != COPY and call.operator not in OPERATORS:
        return f"it packs weights by the library's {call.operator}"
    if call.operator == COPY and (call.named or len(call.arguments) != 1 or not isinstance(call.arguments[0], View)):
        return "it copies something other than one tensor"
    for one, roles in ((call.result, ("packed",)), *((view, ("parameter", "packed")) for view in call.views)):
        if not 0 <= one.buffer < len(buffers) or buffers[one.buffer][0] not in roles:
            return f"{call.operator} packs weights and is given what only a call has, or makes what is not packed"
        if not _is_possible(one) or one.offset + one.reach > buffers[one.buffer][1]:
            return f"{call.operator} is given a tensor outside of its buffer"
    words = (value.word for value in (*call.arguments, *(value for _, value in call.named)) if isinstance(value, Word))
    return next((f"{call.operator} is given {word}" for word in words if word not in DTYPES and not word.endswith("_format")), "")


def _is_possible(view: View) -> bool:
    item = DTYPES.get(view.dtype)
    if item is None or len(view.shape) != len(view.strides) or len(view.shape) > MAX_RANK:
        return False
    return view.offset >= 0 and view.offset % item == 0 and min((*view.shape, *view.strides, 0)) >= 0


def _value(value: Any, view: Callable[[torch.Tensor], View]) -> Value:
    """Write down an argument; raises TypeError where it has no place in a plan."""
    import torch

    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, torch.Tensor):
        return view(value)
    if isinstance(value, torch.dtype | torch.memory_format):
        return Word(word=str(value).removeprefix("torch."))
    if isinstance(value, list | tuple) and all(isinstance(one, torch.Tensor) for one in value):
        return tuple(view(one) for one in value)
    if isinstance(value, list | tuple) and all(type(one) is int for one in value):
        return tuple(value)
    raise TypeError(f"{type(value).__name__} has no place in a plan")


def _given(value: Value, tensor: Callable[[View], torch.Tensor]) -> Any:
    """Give an argument to an operator as it takes it."""
    import torch

    if isinstance(value, View):
        return tensor(value)
    if isinstance(value, Word):
        return getattr(torch, value.word)
    if isinstance(value, tuple):
        return [tensor(one) if isinstance(one, View) else one for one in value]
    return value
