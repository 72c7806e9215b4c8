"""Writes the body of a forward: operators of a trace as lines of PyTorch, with loops over time as loops."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from tools.codegen.trace.dispatch.row_subsets import OPERATOR
from tools.models.forward.lines import Body, Item, Line, Linear, Loop, Part, Spread, items_of
from tools.models.forward.steps import STEPS, Sized

_CHECKS = ("_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range", "_assert_async")
"""Operators that only check what a trace relies on."""
_ARITHMETIC = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.truediv: "/",
    operator.mod: "%",
    operator.pow: "**",
}

_OF_SIZES = {torch.sym_float: "float", operator.neg: "-"}
"""What is done to one size that is free."""


class UntraceableError(Exception):
    """A call that cannot be written as a problem; the text says why, as a clause."""


class ForwardText:
    """The lines of one forward."""

    def __init__(self, names: Mapping[str, str], taken: set[str], first: str, halves: Mapping[torch.dtype, str]) -> None:
        """Begin; `names` are those of a trace's placeholders, `first` is an input, `halves` says which tensor has which half dtype."""
        self._names, self._taken, self._first, self._halves = dict(names), set(taken), first, halves
        self._lists: dict[str, str] = {}
        self._singly: set[Spread] = set()
        self._stacks: dict[Spread, str] = {}
        self._step = ""

    def lines(self, body: Body) -> Iterator[str]:
        """Write operators in order."""
        self._singly = set(read_singly(body))
        for each in body:
            if isinstance(each, Loop):
                yield from self._loop(each)
            else:
                yield self._line(each)

    def _line(self, line: Line) -> str:
        # an argument and an operator's result may want one name
        self._names[line.node.name] = self._name(line.node.name)
        return f"{self._names[line.node.name]} = {self._expression(line)}"

    def _loop(self, loop: Loop) -> Iterator[str]:
        """Write steps that the trace has one after the other as a loop, in the words of the second one."""
        first, second = loop.step(0), loop.step(1)
        for place, node in loop.carried.items():
            name = self._name(f"{first[place].name}_before")
            yield f"{name} = {self.reference(node)}"
            self._names[first[place].name] = name
        for place in loop.listed:
            name = self._lists[first[place].name] = self._name(f"{first[place].name}_all")
            yield f"{name} = []"
        self._step = self._name("step")
        yield f"for {self._step} in range({self.reference(loop.steps)}):"
        yield from (f"    {self._line(line)}" for line in loop.lines)
        for place in loop.listed:
            yield f"    {self._lists[first[place].name]}.append({self._names[second[place].name]})"
        for place in loop.carried:
            yield f"    {self._names[first[place].name]} = {self._names[second[place].name]}"
        for place, node in enumerate(loop.step(-1)):
            self._names[node.name] = self._names[second[place].name]
        yield from (line for place in loop.listed for line in self._stacked(first[place]))

    def _stacked(self, node: Any) -> Iterator[str]:
        """Write what steps of other loops read one by one as one tensor, of which a loop's kernel reads parts."""
        for backwards in (False, True):
            if (listed := Spread(node, backwards)) in self._singly:
                name = self._stacks[listed] = self._name(f"{node.name}_{'backwards' if backwards else 'stacked'}")
                yield f"{name} = torch.ops.aten.stack.default({self._spread(listed)}, 0)"

    def _expression(self, line: Line) -> str:
        """Write what an operator makes of its arguments."""
        node = line.node
        target, args = node.target, [self.reference(value) for value in line.args]
        if target is operator.getitem:
            return f"{args[0]}[{args[1]}]" if len(args) > 1 else str(args[0])
        if target in _ARITHMETIC:
            return f"{args[0]} {_ARITHMETIC[target]} {args[1]}"
        if target in _OF_SIZES:
            return f"{_OF_SIZES[target]}({args[0]})"
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
            args[1] = self._cast(node.args[0], line.args[1])
        named = [f"{key}={self.reference(value)}" for key, value in line.kwargs.items()]
        return f"torch.ops.{target}({', '.join([*args, *named])})"

    def _cast(self, node: Any, dtype: torch.dtype) -> str:
        """Write the dtype of a cast between floats as that of a tensor of the call: what is rounded back to a half follows an oracle."""
        return self._halves.get(dtype, repr(dtype)) if node.meta["val"].dtype.is_floating_point else repr(dtype)

    def reference(self, value: Any) -> str:
        """Write an argument."""
        if isinstance(value, torch.fx.Node):
            return self._names[value.name]
        if isinstance(value, Sized | Linear | Item | Part | Spread):
            return self._of_steps(value)
        if isinstance(value, list | tuple):
            return self._sequence(value)
        if isinstance(value, torch.device):
            return f"{self._first}.device"
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if value is None or isinstance(value, bool | int | str | torch.dtype | torch.layout | torch.memory_format):
            return repr(value)
        raise UntraceableError(f"its trace holds a {type(value).__name__}")

    def _of_steps(self, value: Sized | Linear | Item | Part | Spread) -> str:
        """Write what the number of steps says, or the step."""
        if isinstance(value, Sized):
            return value.text(STEPS)
        if isinstance(value, Linear):
            return self._linear(value)
        if isinstance(value, Part):
            return f"torch.ops.aten.select.int({self.reference(value.whole)}, {value.dim}, {self.reference(value.place)})"
        if isinstance(value, Item):
            if taken_apart(value) in self._stacks:
                return f"torch.ops.aten.select.int({self._stacks[value.sequence[0]]}, 0, {self.reference(value.place)})"
            return f"{self.reference(value.sequence)}[{self.reference(value.place)}]"
        return f"*{self._spread(value)}"

    def _linear(self, value: Linear) -> str:
        start, by = self.reference(value.start), self.reference(value.by)
        if by == "-1":
            return f"{start} - {self._step}"
        scaled = self._step if by == "1" else f"({by}) * {self._step}" if isinstance(value.by, Sized) else f"{by} * {self._step}"
        return scaled if start == "0" else f"{scaled} + {start}"

    def _spread(self, value: Spread) -> str:
        return f"{self._lists[value.first.name]}{'[::-1]' if value.backwards else ''}"

    def _sequence(self, values: Sequence[Any]) -> str:
        """Write a list; results of all steps of a loop are one already."""
        if len(values) == 1 and isinstance(values[0], Spread):
            return self._spread(values[0])
        return f"[{', '.join(map(self.reference, values))}]"

    def _name(self, wanted: str) -> str:
        """Give a name that is not taken yet."""
        name = free_name(wanted, self._taken)
        self._taken.add(name)
        return name


def read_singly(body: Body) -> Iterator[Spread]:
    """List the lists of a loop's results of which single ones are read."""
    for each in body:
        lines = each.lines if isinstance(each, Loop) else (each,)
        begun = list(each.carried.values()) if isinstance(each, Loop) else []
        found = (taken_apart(value) for value in items_of([*begun, *((line.args, line.kwargs) for line in lines)]))
        yield from (one for one in found if one is not None)


def taken_apart(item: Item) -> Spread | None:
    """Tell which loop's list of results an item is of; None where it is of none, or of a longer list."""
    whole = item.sequence
    return whole[0] if isinstance(whole, list) and len(whole) == 1 and isinstance(whole[0], Spread) else None


def free_name(wanted: str, taken: set[str]) -> str:
    """Give a name that is not taken, numbered where it has to be."""
    name, count = wanted, 1
    while name in taken:
        name, count = f"{wanted}_{count}", count + 1
    return name


def alive(program: Any, results: Sequence[Any]) -> set[Any]:
    """Find what results of a trace are made of, and what writes."""
    found = set(results)
    for node in reversed(list(program.graph.nodes)):
        if node in found or (node.op == "call_function" and _writes(node)):
            found.update((node, *node.all_input_nodes))
    return found


def _writes(node: Any) -> bool:
    """Whether an operator writes to what it is given, so that it counts although nobody uses its result."""
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable and target is not torch.ops.aten.detach_.default
