"""What a call returns: its tensors in order, and in words how they lie in tuples, lists, dictionaries and NamedTuples.

The words are a Python expression in which `tensor` stands for each tensor, as `(tensor, {'state': tensor, 'loss': None})`: two results
are made alike where these are equal, and from one's own such words code can be written that makes a result so. Nobody has to read what
another process says: it is compared as it stands.
"""

from __future__ import annotations

import ast
import keyword
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

TENSOR = "tensor"
"""Stands for a tensor."""
DEEPEST = 32
"""Containers within one another, at most: one may hold itself."""
LONGEST = 4000
"""Characters of the words for one result, at most."""
ALLOWED = "tensors, or tuples, lists, dictionaries (keys: strings or whole numbers) and NamedTuples of tensors; None may stand among them"
"""What a reference may return."""
_RETURN_TYPES = "torch.return_types"


@dataclass
class Returned:
    """A result, taken apart."""

    tensors: list[torch.Tensor] = field(default_factory=list)
    """In order."""
    structure: str = ""
    """How they lie in it; what is not allowed stands there as the name of its class."""
    strange: str = ""
    """The class of the first such; empty where there is none."""
    kind: type = object
    """That class itself."""
    where: str = ""
    """Where that one is, as `[1]['loss']`; empty where it is the whole."""
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Fields of its NamedTuples, by name."""
    depth: int = 0
    """In how many containers the part is that is being looked at."""


def returned(result: Any) -> Returned:
    """Take a result apart; subclasses of containers are not asked for what they hold, but for NamedTuples, whose memory is read."""
    found = Returned()
    found.structure = _described(result, "", found)
    return found


def instead_of(kind: type) -> str:
    """Say what a reference is to return in place of an object of a class: of the fields of a dataclass a NamedTuple can be made."""
    if is_dataclass(kind):
        return f"Make it a NamedTuple of the same fields, `class {kind.__name__}(NamedTuple)` without `@dataclass` and its base class."
    if issubclass(kind, dict) and kind not in _CONTAINERS:
        return "Return `dict(…)` of it."
    return f"Return {ALLOWED}."


def _described(value: Any, path: str, found: Returned) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        found.tensors.append(value)
        return TENSOR
    if value is None:
        return "None"
    describe = _CONTAINERS.get(type(value)) or (_tuple_with_names if isinstance(value, tuple) else None)
    found.depth += 1
    text = describe(value, path, found) if describe is not None and found.depth <= DEEPEST else None
    found.depth -= 1
    if text is not None:
        return text
    name = str(type(value).__name__)
    if not found.strange:
        found.strange, found.kind, found.where = name, type(value), path
    return f"<{name}>"


def _tuple(value: tuple[Any, ...], path: str, found: Returned) -> str:
    return f"({_items(value, path, found)}{',' if len(value) == 1 else ''})"


def _list(value: list[Any], path: str, found: Returned) -> str:
    return f"[{_items(value, path, found)}]"


def _dict(value: Mapping[Any, Any], path: str, found: Returned) -> str | None:
    if not all(type(key) in (str, int) for key in value):
        return None
    items = ((ascii(key), item) for key, item in value.items())
    return "{" + ", ".join(f"{key}: {_described(item, f'{path}[{key}]', found)}" for key, item in items) + "}"


def _ordered(value: Mapping[Any, Any], path: str, found: Returned) -> str | None:
    text = _dict(value, path, found)
    return text and f"collections.OrderedDict({text})"


def _tuple_with_names(value: tuple[Any, ...], path: str, found: Returned) -> str | None:
    """Describe a NamedTuple by the names of its class and its fields, and what torch returns with names by its own."""
    import torch

    kind, items = type(value), list(tuple.__iter__(value))
    name, fields = kind.__name__, getattr(kind, "_fields", None)
    if kind.__module__ == _RETURN_TYPES and getattr(torch.return_types, name, None) is kind:
        return f"{_RETURN_TYPES}.{name}({_tuple(tuple(items), path, found)})"
    if type(fields) is not tuple or len(fields) != len(items) or not all(map(_is_name, (name, *fields))) or name == TENSOR:
        return None
    if found.classes.setdefault(name, fields) != fields:
        return None
    held = ", ".join(f"{key}={_described(item, f'{path}.{key}', found)}" for key, item in zip(fields, items, strict=True))
    return f"{name}({held})"


def _items(value: Sequence[Any], path: str, found: Returned) -> str:
    return ", ".join(_described(item, f"{path}[{place}]", found) for place, item in enumerate(value))


def _is_name(word: object) -> bool:
    return type(word) is str and word.isascii() and word.isidentifier() and not keyword.iskeyword(word)


_CONTAINERS: dict[type, Callable[[Any, str, Returned], str | None]] = {tuple: _tuple, list: _list, dict: _dict, OrderedDict: _ordered}


def result_text(structure: str, values: Iterable[str], fresh: Callable[[str], str]) -> tuple[str, list[str]]:
    """Write an expression that makes such a result of the texts of its tensors, and lines that define its NamedTuples, by `fresh` names."""
    classes, lines = {}, []
    for name, fields in _named_tuples(structure).items():
        classes[name] = fresh(name)
        lines.append(f'{classes[name]} = collections.namedtuple("{name}", {list(fields)!r})')
    return ast.unparse(_Filled(list(values), classes).visit(_tree(structure))), lines


def places(structure: str) -> list[int]:
    """List at which places the tensors stand where every None is counted, too."""
    leaves = _Leaves()
    leaves.visit(_tree(structure))
    return [place for place, is_tensor in enumerate(leaves.found) if is_tensor]


def _named_tuples(structure: str) -> dict[str, tuple[str, ...]]:
    calls = (node for node in ast.walk(_tree(structure)) if isinstance(node, ast.Call))
    return {call.func.id: tuple(str(each.arg) for each in call.keywords) for call in calls if isinstance(call.func, ast.Name)}


def _tree(structure: str) -> ast.expr:
    return ast.parse(structure, mode="eval").body


class _Filled(ast.NodeTransformer):
    """Puts texts in the places of a structure's tensors, and other names in those of its NamedTuples."""

    def __init__(self, values: Sequence[str], classes: Mapping[str, str]) -> None:
        self._values, self._classes = iter(values), classes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _tree(next(self._values)) if node.id == TENSOR else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name):
            node.func.id = self._classes[node.func.id]
        node.args = [self.visit(each) for each in node.args]
        for each in node.keywords:
            each.value = self.visit(each.value)
        return node


class _Leaves(ast.NodeVisitor):
    """Finds the leaves of a structure in order: whether each is a tensor."""

    def __init__(self) -> None:
        self.found: list[bool] = []

    def visit_Name(self, node: ast.Name) -> None:
        self.found += [True] * (node.id == TENSOR)

    def visit_Constant(self, node: ast.Constant) -> None:
        self.found += [False] * (node.value is None)
