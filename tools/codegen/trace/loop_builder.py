"""A loop made of the steps of a trace: what goes before it, its body, and what later nodes read of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.loop import RECURRENCE, Carried, Left, Loop, Sliced, StepNumber, Whole, without
from tools.codegen.trace.exported_graph import ExportedGraph
from tools.codegen.trace.step_values import Aligner, Before, Earlier, Here, Part, UnevenError

Way = tuple[Ref, int, StepNumber]
"""A value from outside, a dimension, and where along it each step is."""


class LoopBuilder:
    """Writes the steps of one run as the body of a loop; `loop_results.py` says what is read of it."""

    def __init__(self, export: ExportedGraph, aligner: Aligner, steps: Sequence[Node]) -> None:
        """Take the trace, its aligned steps, and the first one's nodes."""
        self.export, self.aligner, self.run, self.steps = export, aligner, aligner.run, steps
        self.before: list[Node] = []
        """What goes before the loop besides what stands there."""
        self.taken = {*export.inputs, *export.places}
        self.arguments: list[Ref] = []
        self.whole: list[Whole] = []
        self.sliced: list[Sliced] = []
        self.carried: list[Carried] = []
        self.left: list[Left] = []
        self.inputs: dict[str, TensorMeta] = {}
        self.body: list[Node] = []
        self.values: dict[tuple[int, int], Ref] = {}
        """What each operator of a step makes, as the body calls it."""
        self.fixed: set[int] = set()
        """Operators that do the same at every step: they go before the loop."""
        self.written: dict[int, tuple[Ref, int, StepNumber, Ref]] = {}
        """Tensors that each step writes a part of: the tensor, the dimension, where, and the body's value."""
        self.parts: dict[Way, Ref] = {}
        self.before_values: dict[Before, Ref] = {}
        self.delayed: dict[tuple[Before, tuple[Ref, ...]], Carried] = {}
        """What a value was more than one step before, by what it was then at the first steps."""
        self.name = self.fresh("loop")
        self.backwards = self._direction() < 0
        for place, node in enumerate(steps):
            self._add(place, node)
        self.carried = [*(self._carried(value, ref) for value, ref in self.before_values.items()), *self.delayed.values()]

    def loop(self) -> Loop:
        """Write what was found so far."""
        results = [*(one.after for one in self.carried), *(one.ref for one in self.left)]
        body = OperatorGraph(
            arguments=(), parameters={}, inputs=self.inputs, nodes=tuple(self.body), outputs=tuple(dict.fromkeys(results)), traces=1
        )
        return Loop(
            name=self.name, target=RECURRENCE, args=tuple(self.arguments), kwargs={}, outputs=tuple(map(self.result, self.left)),
            body=body, steps=(self.run.count,), backwards=self.backwards,
            whole=tuple(self.whole), sliced=tuple(self.sliced), carried=tuple(self.carried), left=tuple(self.left),
        )  # fmt: skip

    def result(self, left: Left) -> TensorMeta:
        """Shape of one result."""
        meta = self.body_meta(left.ref)
        shape = meta.shape if left.dim is None else (*meta.shape[: left.dim], (self.run.count,), *meta.shape[left.dim :])
        return TensorMeta(shape, meta.dtype)

    def body_meta(self, ref: Ref) -> TensorMeta:
        """Shape of a value of the body."""
        node = next((node for node in self.body if node.name == ref.name), None)
        return self.inputs[ref.name] if node is None else node.outputs[ref.index]

    def meta(self, ref: Ref) -> TensorMeta:
        """Shape of a value outside of the body."""
        node = next((node for node in self.before if node.name == ref.name), None)
        return self.aligner.meta(ref) if node is None else node.outputs[ref.index]

    def fresh(self, wish: str) -> str:
        """Give a name that no node has."""
        name, count = wish, 1
        while name in self.taken:
            count += 1
            name = f"{wish}_{count}"
        self.taken.add(name)
        return name

    def ahead(self, target: str, args: tuple[Any, ...], meta: TensorMeta) -> Ref:
        """Put a node before the loop."""
        node = Node(self.fresh(f"{self.name}_{target.split('.')[1]}"), target, args, {}, (meta,))
        self.before.append(node)
        return Ref(node.name)

    def along(self, way: Way) -> Ref:
        """Return the value whose elements along a dimension are those of the steps, in the order in which the loop walks."""
        source, dim, number = way
        low, size = self.low(number), self.meta(source).shape[dim][0]
        count = self.run.count
        if (low, count) != (0, size):
            source = self.ahead("aten.slice.Tensor", (source, dim, low, low + count), resized(self.meta(source), dim, count))
        if (number.by < 0) != self.backwards:
            source = self.ahead("aten.flip.default", (source, [dim]), replace(self.meta(source), contiguous=True, unit_last=True))
        return source

    def low(self, number: StepNumber) -> int:
        """Tell the least of a step's positions."""
        if abs(number.by) != 1:
            raise UnevenError("a step moves on by more than one element")
        return number.first if number.by > 0 else number.first - self.run.count + 1

    def _direction(self) -> int:
        """Say which way the steps walk along what they read, or else along what they write."""
        reads = [way[2].by for node in self.steps if (way := self._way(node)) is not None]
        writes = [node.args[3].by for node in self.steps if node.op == "select_scatter" and isinstance(node.args[3], StepNumber)]
        return (reads or writes or [1])[0]

    def _way(self, node: Node) -> Way | None:
        """Tell where along which value a node takes its part; none where it does something else, or of what the loop makes."""
        source = node.args[0] if node.args else None
        if isinstance(source, Part):
            return source.source, source.dim, source.number
        if isinstance(source, Here) and source.place in self.fixed:
            source = Ref(self.steps[source.place].name, source.index)
        if not isinstance(source, Ref) or node.op not in ("select", "slice"):
            return None
        dim, first = node.args[1] % len(self.meta(source).shape), node.args[2]
        if not isinstance(first, StepNumber):
            return None
        if node.op == "slice" and (len(node.args) != 4 or node.args[3] != StepNumber(first.first + 1, first.by)):
            raise UnevenError("a step reads several elements")
        size = self.meta(source).shape[dim][0]
        return source, dim, StepNumber(first.first % size, first.by)

    def _add(self, place: int, node: Node) -> None:
        leaves = list(leaves_of((node.args, tuple(node.kwargs.values()))))
        changing = [leaf for leaf in leaves if isinstance(leaf, Here) and leaf.place not in self.fixed]
        if not changing and not any(isinstance(leaf, Before | Earlier | Part | StepNumber) for leaf in leaves):
            self.before.append(self.aligner.nodes[self.run.first + place])
            self.fixed.add(place)
            return
        if not isinstance(node.args[0] if node.args else None, Part) and (way := self._way(node)) is not None:
            self._take(place, node, way)
        elif not self._writes(place, node) and not self._reads_back(place, node):
            self._keep(place, node)

    def _take(self, place: int, node: Node, way: Way) -> None:
        """Let the body have a part as an input."""
        part = self._part(way)
        if node.op == "slice":
            self.body.append(Node(node.name, "aten.unsqueeze.default", (part, way[1]), {}, node.outputs))
            part = Ref(node.name)
        self.values[place, 0] = part

    def _keep(self, place: int, node: Node) -> None:
        args, kwargs = self._inside(node.args), {key: self._inside(value) for key, value in node.kwargs.items()}
        self.body.append(replace(node, args=args, kwargs=kwargs))
        self.values |= {(place, index): Ref(node.name, index) for index in range(len(node.outputs))}

    def _writes(self, place: int, node: Node) -> bool:
        """Take a write of one part of what the step before left as what the step gives; False where a node is none."""
        target = node.args[0] if node.args else None
        if node.op != "select_scatter" or not isinstance(target, Before) or target.place != place:
            return False
        dim, number = node.args[2] % len(node.outputs[0].shape), node.args[3]
        if not isinstance(number, StepNumber):
            raise UnevenError("every step writes the same part")
        number = StepNumber(number.first % node.outputs[0].shape[dim][0], number.by)
        value = self._inside(node.args[1])
        wanted = without(node.outputs[0], dim)
        if self.body_meta(value).shape != wanted.shape or self.body_meta(value).dtype != wanted.dtype:
            raise UnevenError("a step writes another shape or dtype than the part has")
        self.written[place] = target.initial, dim, number, value
        return True

    def _reads_back(self, place: int, node: Node) -> bool:
        """Take a read of the part that the step before wrote as what it carries; False where a node is none."""
        target = node.args[0] if node.args else None
        if node.op != "select" or not isinstance(target, Before) or not isinstance(node.args[2], StepNumber):
            return False
        write = self.steps[target.place]
        if write.op != "select_scatter" or node.args[1] != write.args[2] or not isinstance(write.args[3], StepNumber):
            return False
        number, written = node.args[2], write.args[3]
        value = write.args[1]
        if number.by != written.by or number.first != written.first - written.by or not isinstance(value, Here) or number.first < 0:
            raise UnevenError("a step reads what steps long before it wrote")
        meta = without(self.meta(target.initial), node.args[1] % len(write.outputs[0].shape))
        first = self.ahead("aten.select.int", (target.initial, node.args[1], number.first), meta)
        self.values[place, 0] = self._inside(Before(value.place, value.index, first))
        return True

    def _inside(self, tree: Any) -> Any:
        """Write arguments as the body has them."""
        found = tree
        match tree:
            case tuple() | list():
                found = type(tree)(self._inside(item) for item in tree)
            case Ref():
                found = self._whole(tree)
            case Here():
                found = self._here(tree)
            case Part():
                found = self._part((tree.source, tree.dim, tree.number))
            case Before():
                found = self._before(tree)
            case Earlier():
                found = self._earlier(tree)
        return found

    def _here(self, value: Here) -> Ref:
        if value.place in self.written:
            raise UnevenError("a step reads all of what it writes a part of")
        fixed = value.place in self.fixed
        return self._whole(Ref(self.steps[value.place].name, value.index)) if fixed else self._made(value)

    def _made(self, value: Here | Before) -> Ref:
        """Find what the body makes of a node of the step."""
        made = self.values.get((value.place, value.index))
        if made is None:
            raise UnevenError("a step reads or hands on what its body does not make")
        return made

    def argument(self, ref: Ref) -> int:
        """Tell which argument of the loop a value is."""
        if ref not in self.arguments:
            self.arguments.append(ref)
        return self.arguments.index(ref)

    def _input(self, wish: str, meta: TensorMeta) -> Ref:
        names = {*self.inputs, *(node.name for node in self.steps)}
        name, count = wish, 1
        while name in names:
            count += 1
            name = f"{wish}_{count}"
        self.inputs[name] = meta
        return Ref(name)

    def _whole(self, ref: Ref) -> Ref:
        place = self.argument(ref)
        known = next((one for one in self.whole if one.place == place), None)
        if known is None:
            name = self._input(ref.name if ref.index == 0 else f"{ref.name}_{ref.index}", self.meta(ref)).name
            known = Whole(name, place)
            self.whole.append(known)
        return Ref(known.name)

    def _part(self, way: Way) -> Ref:
        if way not in self.parts:
            source = self.along(way)
            self.parts[way] = self._input(f"{way[0].name}_step", without(self.meta(source), way[1]))
            self.sliced.append(Sliced(self.parts[way].name, self.argument(source), way[1]))
        return self.parts[way]

    def _before(self, value: Before) -> Ref:
        if value.place in self.fixed or self.steps[value.place].op == "select_scatter":
            raise UnevenError("a step reads what the step before wrote a part of")
        if value not in self.before_values:
            node = self.steps[value.place]
            self.before_values[value] = self._input(f"{node.name}_before", node.outputs[value.index])
        return self.before_values[value]

    def _earlier(self, value: Earlier) -> Ref:
        """Hand a value on from step to step until it is as old as the step reads it."""
        *older, last = value.initials
        newest = Before(value.place, value.index, last)
        ref = self._before(newest)
        for count, initial in enumerate(reversed(older), start=1):
            key = newest, tuple(older[-count:])
            if key not in self.delayed:
                name = self._input(f"{self.steps[value.place].name}_before_{count + 1}", self.inputs[ref.name]).name
                self.delayed[key] = Carried(name, self.argument(initial), ref)
            ref = Ref(self.delayed[key].name)
        return ref

    def left_before(self, place: int, index: int, steps: int) -> Ref | None:
        """Find what is handed on of the value that an operator made so many steps before the last; none where nothing is."""
        found = (
            one.after for (value, older), one in self.delayed.items() if (value.place, value.index, len(older)) == (place, index, steps)
        )
        return next(found, None)

    def _carried(self, value: Before, ref: Ref) -> Carried:
        return Carried(ref.name, self.argument(value.initial), self._made(value))


def resized(meta: TensorMeta, dim: int, size: int) -> TensorMeta:
    """Shape with another size of one dimension, as a view of what it was."""
    shape = (*meta.shape[:dim], (size,), *meta.shape[dim + 1 :])
    return replace(meta, shape=shape, contiguous=meta.contiguous and dim == 0)


def leaves_of(tree: Any) -> Any:
    """Yield what nested tuples and lists hold."""
    if isinstance(tree, tuple | list):
        for item in tree:
            yield from leaves_of(item)
    else:
        yield tree
