"""Write regions in order as statements of Python: calls of host functions, library operators, and loops of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tools.codegen.ir.constant_tensors import is_written
from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.graph import DataSized, Node, OperatorGraph, Raw, Ref
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.schedule import EPILOGUE, INSIDE, Region
from tools.codegen.ir.sizes import Attribute, Fact
from tools.codegen.ir.views import is_view
from tools.codegen.module.cudnn_fusion import call_text
from tools.codegen.module.dispatch_text import DispatchText
from tools.codegen.module.in_place import SCATTERS, carried, seen_whole
from tools.codegen.module.library_calls import IN_ORDER, Caller
from tools.codegen.module.loop_text import LoopText, StepCaller
from tools.codegen.module.written_numbers import writing_text
from tools.codegen.schedule.bodies import laid_out_body
from tools.codegen.schedule.einsum_copies import put_in_order
from tools.codegen.templates.shared.frame import RegionText, block
from tools.codegen.templates.shared.naming import Names
from tools.codegen.templates.shared.prepack import Packing


@dataclass(frozen=True)
class Surroundings:
    """What statements can be told by wherever they stand in `forward`."""

    facts: Sequence[Fact]
    """Which sizes can be read."""
    device: str
    """A tensor whose device serves for new ones."""
    attributes: Sequence[Attribute]
    """What the constructor kept."""
    functions: dict[str, str] = field(default_factory=dict)
    """What statements call besides the functions of regions: the text of each."""


@dataclass
class RegionLines:
    """Writes the regions of one graph, of `forward` or of a loop's body."""

    graph: OperatorGraph
    names: Names
    around: Surroundings
    packing: Packing
    bound: dict[Ref, str]
    """How values are named."""
    packed: Mapping[str, str] = field(default_factory=dict)
    """Values of parameters alone that `packing` has."""
    step: str = ""
    """In a loop, the number of the step."""
    lines: list[str] = field(default_factory=list)
    in_place: dict[Ref, Ref] = field(default_factory=dict)
    """Values that were written to the memory of what they replace."""
    has_kernels: bool = False
    """Whether anything is generated: then a kernel may write numbers, too."""

    def __post_init__(self) -> None:
        """Call operators by the names that values have."""
        self.caller = StepCaller(self.use, self.around.facts, self.around.device, self.around.attributes, self.step)
        self.caller.made = self._made

    def write(
        self, regions: Sequence[Region], generated: Mapping[str, RegionText], later: frozenset[str] = frozenset(), place: str = ""
    ) -> None:
        """Write every region in order, but for nodes that are written `later`; `place` is what the ids of `generated` begin with."""
        self.has_kernels = bool(generated)
        for text in generated.values():
            self.in_place |= text.in_place
        for region in regions:
            if place + region.id in generated:
                self._call(generated[place + region.id])
            elif EPILOGUE in region.parameters:
                name = self.names.fresh(region.nodes[-1])
                self.lines.append(f"{name} = {call_text(self.caller, self.graph, region)}")
                self.bound[Ref(region.nodes[-1])] = name
            elif not region.is_generated:
                for name in region.nodes:
                    if name in later:
                        continue
                    if isinstance(node := self.graph.by_name[name], Loop):
                        self._loop(node, region, generated, place)
                    else:
                        self.library(node)

    def use(self, ref: Ref) -> str:
        """Name a value, writing the views it hangs on first."""
        if ref in self.bound:
            return self.bound[ref]
        if ref.name in self.packed:
            return self.packing.keep(self.packed[ref.name])
        node = self.graph.by_name[ref.name]
        if Ref(ref.name) not in self.bound or len(node.outputs) > 1:
            if not is_view(node):
                raise KeyError(f"{ref.name} is read before it is made")
            self.library(node)
        return self.bound[ref]

    def _made(self) -> Iterator[Fact]:
        """List the sizes of what is made so far."""
        for ref, name in self.bound.items():
            if ref.name in self.graph.by_name:
                shape = self.graph.by_name[ref.name].outputs[ref.index].shape
                yield from (Fact(f"{name}.shape[{dim}]", sizes) for dim, sizes in enumerate(shape))

    def _einsum(self, node: Node) -> str:
        """Write an einsum whose operands are put in order where PyTorch would copy them."""
        orders = put_in_order(self.graph, node)
        texts = [self.caller.text(ref) for ref in node.args[1]]
        texts = [f"{IN_ORDER}({text}, {orders[ref]})" if ref in orders else text for text, ref in zip(texts, node.args[1], strict=True)]
        return self.caller.call(replace(node, args=(node.args[0], [Raw(text) for text in texts])))

    def _numbers(self, node: Node) -> str:
        """Write a few numbers by a kernel, which waits for nothing."""
        function = self.names.fresh(f"write_{node.name}")
        self.around.functions[function] = writing_text(node, function)
        return f"{function}({self.around.device}.device)"

    def library(self, node: Node) -> None:
        """Write one operator as a call of the library."""
        if isinstance(node, Dispatch):
            experts = DispatchText(node, self.use, self.names, self.around.facts, self.around.device)
            self.bound[Ref(node.name)] = experts.write()
            self.lines += experts.lines
            return
        if isinstance(node, DataSized):
            self._data_sized(node)
            return
        if node.op in SCATTERS and any(
            each.value == Ref(node.name) and each.may_be_written_by(self.graph, [node.name]) for each in carried(self.graph)
        ):
            # a copy of a cache for a few of its rows
            self.lines.append(self.caller.call(replace(node, target=node.target.replace(f".{node.op}.", f".{node.op}_."))))
            self.bound[Ref(node.name)] = self.use(node.args[0])
            self.in_place[Ref(node.name)] = node.args[0]
            return
        text = self._numbers(node) if is_written(node) and self.has_kernels else ""
        text = text or (self._einsum(node) if node.op == "einsum" else self.caller.call(node))
        if node.name in self.graph.effects or not node.outputs:
            lines = self.stored(node)
            self.lines += [text] if lines is None else lines
            for index in range(len(node.outputs)):
                self.bound[Ref(node.name, index)] = self.caller.text(node.args[0])
            return
        name = self.names.fresh(node.name)
        self.lines.append(f"{name} = {text}")
        if len(node.outputs) > 1:
            self.bound |= {Ref(node.name, index): f"{name}[{index}]" for index in range(len(node.outputs))}
        else:
            self.bound[Ref(node.name)] = name

    def stored(self, node: Node) -> list[str] | None:
        """Write a copy to where its value may lie already: not, or only where a tensor had to be put in order first; None of any other."""
        if node.op != "copy_" or not isinstance(node.args[1], Ref):
            return None
        value = source = seen_whole(self.graph, node.args[1])
        while source in self.in_place:
            source = seen_whole(self.graph, before := self.in_place[source])
        if source == value or source != node.args[0]:
            return None
        copy = f"{self.use(node.args[0])}.copy_({self.use(node.args[1])})"
        made, given = self.use(value), self.use(before)
        return [] if made == given else [f"if {made} is not {given}:", f"    {copy}"]

    def _data_sized(self, node: DataSized) -> None:
        """Write operators among which data decide sizes, each as a call of its own."""
        names = {DataSized.given(place): self.use(ref) for place, ref in enumerate(node.args)}
        caller = Caller(lambda ref: names[Ref(ref.name)], self.around.facts, self.around.device, self.around.attributes)
        for each in node.body:
            name = self.names.fresh(each.op)
            self.lines.append(f"{name} = {caller.call(each)}")
            names[Ref(each.name)] = name
        self.bound |= {Ref(node.name, index): names[ref] for index, ref in enumerate(node.left)}

    def _call(self, region: RegionText) -> None:
        arguments = [*(self.use(ref) for ref in region.inputs), *(self.caller.text(number) for number in region.numbers)]
        if region.pack:
            given = [self.packed.get(ref.name) or self.use(ref) for ref in region.pack.inputs]
            arguments.append(self.packing.add(region.pack, given))
        results = []
        for ref in region.outputs:
            name = self.names.fresh(ref.name if ref.index == 0 else f"{ref.name}_{ref.index}")
            self.bound[ref] = name
            results.append(name)
        self.lines += block(f"{', '.join(results)} = {region.function}", arguments, "")

    def _loop(self, loop: Loop, region: Region, generated: Mapping[str, RegionText], place: str) -> None:
        """Write a loop of Python, of kernels where its region has a body."""
        body = laid_out_body(self.graph, region) if region.body else loop.body_in(self.graph)
        text = LoopText(loop, self.use, self.names, self.around.facts, self.around.attributes)
        inside = RegionLines(body, self.names, self.around, self.packing, {}, step=text.step)
        text.begin(inside)
        inside.write(region.body or (Region(id="", nodes=tuple(body.by_name)),), generated, place=f"{place}{region.id}{INSIDE}")
        results = text.end(inside)
        self.lines += text.lines
        self.bound |= {Ref(loop.name, index): name for index, name in enumerate(results)}
