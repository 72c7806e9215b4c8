"""What the nodes after a loop read of it: the values of all steps laid one after the other, the last one, or what the steps wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, Ref, TensorMeta, map_refs
from tools.codegen.ir.loop import Left
from tools.codegen.trace.exported_graph import ExportedGraph
from tools.codegen.trace.loop_builder import LoopBuilder, resized
from tools.codegen.trace.step_values import UnevenError

JOINS = ("stack", "cat")


class LoopResults:
    """Writes the nodes after a loop as readers of its results."""

    def __init__(self, builder: LoopBuilder) -> None:
        """Take the loop as built so far."""
        self.builder, self.run = builder, builder.run
        self.after: list[Node] = []
        self.replaced: dict[Ref, Ref] = {}
        self.kept: dict[tuple[int, int | None], Ref] = {}

    def build(self) -> ExportedGraph:
        """Return the trace with the run as one node."""
        export, builder = self.builder.export, self.builder
        for node in export.nodes[self.run.end :]:
            self._read(node)
        outputs = self._outside(export.outputs)
        nodes = (*export.nodes[: self.run.first], *builder.before, builder.loop(), *self.after)
        return replace(export, nodes=nodes, outputs=outputs)

    def _read(self, node: Node) -> None:
        if node.op in JOINS and node.args and isinstance(node.args[0], tuple | list) and self._join(node):
            return
        args = self._outside(node.args)
        self.after.append(replace(node, args=args, kwargs={key: self._outside(value) for key, value in node.kwargs.items()}))

    def _join(self, node: Node) -> bool:
        """Write a stack or a concatenation of the values of all steps as a result of the loop; False where it is of something else."""
        rank = len(node.outputs[0].shape)
        dim = node.argument(1, "dim", 0) % rank
        pieces = list(self._pieces(node.args[0]))
        if all(isinstance(piece, Ref) for piece in pieces):
            return False
        refs = [self._piece(node.op, piece, dim) if isinstance(piece, tuple) else self._other(node.op, piece, dim) for piece in pieces]
        if len(refs) == 1:
            self.replaced[Ref(node.name)] = refs[0]
        else:
            self.after.append(Node(node.name, "aten.cat.default", (refs, dim), {}, node.outputs))
        return True

    def _pieces(self, refs: Sequence[Ref]) -> Iterator[Ref | tuple[int, int, int]]:
        """Yield the values of a list; those of all steps together, as operator, its output, and the direction."""
        place, count = 0, self.run.count
        while place < len(refs):
            found = [self._at(ref) for ref in refs[place : place + count]]
            steps = [one[0] for one in found if one]
            same = len({one[1:] for one in found if one}) == 1
            whole = len(steps) == count and same and found[0] is not None and self._is_made(found[0][1])
            if whole and found[0] and steps in ([*range(count)], [*reversed(range(count))]):
                yield found[0][1], found[0][2], 1 if steps[0] == 0 else -1
                place += count
            else:
                yield refs[place]
                place += 1

    def _piece(self, op: str, piece: tuple[int, int, int], dim: int) -> Ref:
        place, index, by = piece
        builder = self.builder
        value = builder.values[place, index]
        meta = builder.body_meta(value)
        many = op == "cat" and meta.shape[dim][0] != 1
        if op == "cat" and not many:
            value = self._squeezed(value, dim)
        result = self._left(value, dim)
        if (by < 0) != builder.backwards:
            result = self._add("aten.flip.default", (result, [dim]), builder.result(builder.left[result.index]))
        if many:
            shape = builder.result(builder.left[result.index]).shape
            joined = (*shape[:dim], (shape[dim][0] * shape[dim + 1][0],), *shape[dim + 2 :])
            result = self._add("aten.flatten.using_ints", (result, dim, dim + 1), TensorMeta(joined, meta.dtype))
        return result

    def _squeezed(self, value: Ref, dim: int) -> Ref:
        builder = self.builder
        meta = builder.body_meta(value)
        made = next((node for node in builder.body if node.name == value.name), None)
        if made is not None and made.op == "unsqueeze" and made.args[1] % len(meta.shape) == dim:
            return Ref(made.args[0].name, made.args[0].index)
        name = builder.fresh(f"{value.name}_squeeze")
        shape = (*meta.shape[:dim], *meta.shape[dim + 1 :])
        builder.body.append(Node(name, "aten.squeeze.dim", (value, dim), {}, (replace(meta, shape=shape),)))
        return Ref(name)

    def _other(self, op: str, ref: Ref, dim: int) -> Ref:
        """Write a piece that is none of the loop's as a concatenation wants it."""
        found: Ref = self._outside(ref)
        meta = self._meta(ref)
        if op == "cat":
            return found
        shape = (*meta.shape[:dim], (1,), *meta.shape[dim:])
        return self._add("aten.unsqueeze.default", (found, dim), replace(meta, shape=shape))

    def _outside(self, tree: Any) -> Any:
        """Write arguments of later nodes."""

        def outside(ref: Ref) -> Ref:
            found = self._at(ref)
            return self.replaced.get(ref, ref) if found is None else self._value(ref, *found)

        return map_refs(tree, outside)

    def _value(self, ref: Ref, step: int, place: int, index: int) -> Ref:
        """Write one step's value."""
        builder = self.builder
        if place in builder.fixed:
            return Ref(builder.steps[place].name, index)
        if place in builder.written:
            return self._whole(place, step)
        value = builder.values[place, index]
        if step == self.run.count - 1 and any(one.after == value for one in builder.carried):
            return self._left(value, None)
        handed_on = builder.left_before(place, index, self.run.count - 1 - step)
        if handed_on is not None:
            return self._left(handed_on, None)
        result = self._left(value, 0)
        position = self.run.count - 1 - step if builder.backwards else step
        return self._add("aten.select.int", (result, 0, position), builder.body_meta(value))

    def _whole(self, place: int, step: int) -> Ref:
        """Write what all steps wrote; where that is not all of it, into what was there."""
        if step != self.run.count - 1:
            raise UnevenError("what the steps write is read before the last of them")
        builder = self.builder
        initial, dim, number, value = builder.written[place]
        meta, low, count = builder.meta(initial), builder.low(number), self.run.count
        result = self._left(value, dim)
        if (number.by < 0) != builder.backwards:
            result = self._add("aten.flip.default", (result, [dim]), resized(meta, dim, count))
        if (low, count) != (0, meta.shape[dim][0]):
            result = self._add("aten.slice_scatter.default", (initial, result, dim, low, low + count), replace(meta, contiguous=True))
        return result

    def _left(self, value: Ref, dim: int | None) -> Ref:
        left = Left(value, dim)
        if left not in self.builder.left:
            self.builder.left.append(left)
        return Ref(self.builder.name, self.builder.left.index(left))

    def _add(self, target: str, args: tuple[Any, ...], meta: TensorMeta) -> Ref:
        name = self.builder.fresh(f"{self.builder.name}_{target.split('.')[1]}")
        self.after.append(Node(name, target, args, {}, (meta,)))
        return Ref(name)

    def _meta(self, ref: Ref) -> TensorMeta:
        return self.builder.aligner.meta(ref)

    def _at(self, ref: Ref) -> tuple[int, int, int] | None:
        """Tell the step, the place in it and the output that a value of the run is; none of others."""
        position = self.builder.aligner.places.get(ref.name)
        if position is None or not self.run.holds(position):
            return None
        return (*self.run.step_of(position), ref.index)

    def _is_made(self, place: int) -> bool:
        return place not in self.builder.fixed and place not in self.builder.written
