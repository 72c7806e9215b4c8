"""Write the emitted module: its constructor, and the forward that calls host functions and library operators in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.graph import Node, OperatorGraph, Raw, Ref
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.schedule import EPILOGUE, Schedule
from tools.codegen.ir.sizes import Fact, with_constants
from tools.codegen.ir.views import is_view
from tools.codegen.module.buffer_updates import written_together
from tools.codegen.module.cudnn_fusion import call_text
from tools.codegen.module.dispatch_text import DispatchText
from tools.codegen.module.library_calls import IN_ORDER, Caller
from tools.codegen.module.loop_text import LoopText
from tools.codegen.module.reference_text import KeptText
from tools.codegen.rewrite.fold_constants import packed_sources
from tools.codegen.schedule.buffer_updates import deferrable
from tools.codegen.schedule.einsum_copies import put_in_order
from tools.codegen.templates.shared.frame import RegionText, block
from tools.codegen.templates.shared.naming import Names
from tools.codegen.templates.shared.prepack import CHECK, Packing
from tools.records import Problem, ProblemForm, TensorSpec


@dataclass
class ForwardText:
    """Writes the body of `forward`."""

    graph: OperatorGraph
    problem: Problem
    taken: frozenset[str]
    lines: list[str] = field(default_factory=list)
    bound: dict[Ref, str] = field(default_factory=dict)
    packing: Packing = field(default_factory=Packing)
    """Weights that regions want packed in a step of their own."""

    def __post_init__(self) -> None:
        """Name the arguments and the parameters."""
        self.names = Names({*self.taken, *self.graph.arguments})
        self._make_packed()
        inputs = {name: meta for name, meta in self.graph.inputs.items() if name not in self.packed}
        for name in inputs:
            key = self.graph.parameters.get(name)
            text = name if key is None else attribute(key, self.problem.form)
            self.bound[Ref(name)] = text
        facts = [
            Fact(f"{self.bound[Ref(name)]}.shape[{place}]", sizes)
            for name, meta in inputs.items()
            for place, sizes in enumerate(meta.shape)
        ]
        self.facts = with_constants(facts, self.graph.constants)
        attributes = [replace(each, text=attribute(each.text, self.problem.form)) for each in self.graph.attributes]
        device = next((self.bound[Ref(name)] for name in inputs), "")
        self.caller = Caller(self.use, self.facts, device, attributes)

    def _make_packed(self) -> None:
        """Write the statements of the step that makes values of parameters alone, and name these values."""
        self.packed: dict[str, str] = {}
        if not self.graph.prepacked:
            return
        made = {node.name for node in self.graph.prepacked}
        inputs = {name: meta for name, meta in self.graph.inputs.items() if name not in made}
        step = ForwardText(
            replace(self.graph, nodes=(*self.graph.prepacked, *self.graph.nodes), inputs=inputs, prepacked=()), self.problem, self.taken
        )
        for node in self.graph.prepacked:
            step._library(node)
            self.packed[node.name] = step.bound[Ref(node.name)]
        self.packing.lines += step.lines
        self.packing.values = frozenset(self.packed.values())
        self.packing.watch(step.bound[ref] for ref in packed_sources(self.graph))

    def write(self, schedule: Schedule, generated: Mapping[str, RegionText]) -> list[str]:
        """Write every region in order, what is left to write to buffers, then the return."""
        later = deferrable(self.graph)
        for region in schedule.regions:
            if region.id in generated:
                self._call(generated[region.id])
            elif EPILOGUE in region.parameters:
                name = self.names.fresh(region.nodes[-1])
                self.lines.append(f"{name} = {call_text(self.caller, self.graph, region)}")
                self.bound[Ref(region.nodes[-1])] = name
            elif not region.is_generated:
                for name in region.nodes:
                    if name not in later:
                        self._library(self.graph.by_name[name])
        self.lines += written_together([node for node in self.graph.nodes if node.name in later], self.use)
        self.lines.append(f"return {self._output(self.graph.outputs)}")
        return [f"self.{CHECK}()", *self.lines] if self.packing.packs else self.lines

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
            self._library(node)
        return self.bound[ref]

    def _einsum(self, node: Node) -> str:
        """Write an einsum whose operands are put in order where PyTorch would copy them."""
        orders = put_in_order(self.graph, node)
        texts = [self.caller.text(ref) for ref in node.args[1]]
        texts = [f"{IN_ORDER}({text}, {orders[ref]})" if ref in orders else text for text, ref in zip(texts, node.args[1], strict=True)]
        return self.caller.call(replace(node, args=(node.args[0], [Raw(text) for text in texts])))

    def _library(self, node: Node) -> None:
        if isinstance(node, Dispatch):
            experts = DispatchText(node, self.use, self.names, self.facts, self.caller.device)
            self.bound[Ref(node.name)] = experts.write()
            self.lines += experts.lines
            return
        if isinstance(node, Loop):
            loop = LoopText(node, self.use, self.names, self.facts, self.caller.device, self.caller.attributes)
            self.bound |= {Ref(node.name, index): name for index, name in enumerate(loop.write())}
            self.lines += loop.lines
            return
        text = self._einsum(node) if node.op == "einsum" else self.caller.call(node)
        if node.name in self.graph.effects or not node.outputs:
            self.lines.append(text)
            for index in range(len(node.outputs)):
                self.bound[Ref(node.name, index)] = self.caller.text(node.args[0])
            return
        name = self.names.fresh(node.name)
        self.lines.append(f"{name} = {text}")
        if len(node.outputs) > 1:
            self.bound |= {Ref(node.name, index): f"{name}[{index}]" for index in range(len(node.outputs))}
        else:
            self.bound[Ref(node.name)] = name

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

    def _output(self, tree: object) -> str:
        if isinstance(tree, Ref):
            return self.use(tree)
        if isinstance(tree, tuple):
            return f"({', '.join(self._output(item) for item in tree)}{',' if len(tree) == 1 else ''})"
        if isinstance(tree, list):
            return f"[{', '.join(self._output(item) for item in tree)}]"
        if isinstance(tree, dict):
            return "{" + ", ".join(f"{key!r}: {self._output(item)}" for key, item in tree.items()) + "}"
        return repr(tree)


def attribute(key: str, form: ProblemForm) -> str:
    """Write the path of a parameter: `self.net[0].weight`."""
    text = "self"
    for part in key.split("."):
        if part.isidentifier():
            text = f"{text}.{part}"
        elif form is ProblemForm.KERNELBENCH and part.isdigit():
            text = f"{text}[{part}]"
        else:
            text = f"getattr({text}, {part!r})"
    return text


def class_text(problem: Problem, graph: OperatorGraph, kept: KeptText | None, forward: Iterable[str], packing: Packing) -> str:
    """Write `ModelNew`."""
    base = kept.base if kept else "nn.Module"
    arguments = ", ".join(["self", *(f"{name}{_annotation(problem, name)}" for name in graph.arguments)])
    lines = [f"class ModelNew({base}):", f'    """{_purpose(problem)}"""', ""]
    if kept and kept.body:
        lines += [kept.body, ""]
    elif problem.form is ProblemForm.EXPORTED and problem.abi.parameters:
        lines += [*_constructor(problem, graph), ""]
    if methods := packing.methods():
        lines += [*(f"    {line}" if line else "" for line in methods), ""]
    lines += [f"    def forward({arguments}):", *(f"        {line}" for line in forward)]
    return "\n".join(lines)


def _purpose(problem: Problem) -> str:
    return f"Takes the place of `{problem.entry}`: same constructor, same parameters, same results."


def _annotation(problem: Problem, name: str) -> str:
    spec = next((each for each in problem.abi.arguments if each.name == name), None)
    return ": torch.Tensor" if isinstance(spec, TensorSpec) else ""


def _constructor(problem: Problem, graph: OperatorGraph) -> list[str]:
    """Register parameters and buffers under the names of the reference's state dict."""
    lines = ["    def __init__(self) -> None:", "        super().__init__()"]
    owners: set[str] = set()
    buffers = {graph.parameters[name] for name in graph.buffers}
    for spec in problem.abi.parameters:
        *path, leaf = spec.name.split(".")
        for depth in range(1, len(path) + 1):
            owner = ".".join(path[:depth])
            if owner not in owners:
                owners.add(owner)
                parent = attribute(".".join(path[: depth - 1]), problem.form) if depth > 1 else "self"
                lines.append(f'        {parent}.add_module("{path[depth - 1]}", nn.Module())')
        holder = attribute(".".join(path), problem.form) if path else "self"
        empty = f"torch.empty({spec.shape}, dtype=torch.{spec.dtype})"
        floating = re.match(r"b?float", spec.dtype)
        if spec.name in buffers or not floating:
            lines.append(f'        {holder}.register_buffer("{leaf}", {empty})')
        else:
            lines.append(f'        {holder}.register_parameter("{leaf}", nn.Parameter({empty}))')
    return lines
