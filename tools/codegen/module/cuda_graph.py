"""A forward captured as a CUDA graph: for modules of many short launches, whose time is spent between the kernels.

The emitted module's `forward` gets a decorator. Its first call with inputs of given shapes, strides, dtypes and devices runs twice on a
side stream, as PyTorch asks for, then is captured; later calls copy their inputs in, replay, and copy the results out. It is offered
where Python decides nothing by data and leaves nothing behind: what does not launch a kernel happens at the capture only.
"""

from __future__ import annotations

import ast

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.schedule import Schedule
from tools.codegen.ir.views import is_view
from tools.codegen.module.buffer_updates import deferrable
from tools.codegen.templates.prepack import CHECK
from tools.records import Problem, ProblemForm
from tools.syntax import parsed

WHOLE = "forward"
"""What stands for the region in an action on the whole forward."""
CAPTURE = "capture"
CAPTURES = ("none", "graph")
LEAST_LAUNCHES = 16
"""Launches below which nothing is offered: a replay still copies inputs in and results out, two launches a tensor."""
RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
"""Operators that launch a kernel or more for each step of a sequence, in each layer and direction."""
LAYERS, BIDIRECTIONAL, BATCH_FIRST = 4, 7, 8
"""Where ATen's recurrent operators on padded sequences have these arguments."""
DATA_DECIDES = ("cannot trace", "writes to an argument", "writes to memory")
"""Words of the reasons for which a reference that cannot be generated cannot be captured either."""

HELPER = '''
def copied(value):
    """Copy results out of a graph's memory, which the next replay writes again."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return type(value)(copied(item) for item in value) if isinstance(value, (tuple, list)) else value


class Capture:
    """One forward as a CUDA graph, with buffers for its inputs."""

    def __init__(self, forward, module, inputs):
        self.inputs = [copied(value) for value in inputs]
        self.held = [*module.parameters(), *module.buffers()]
        self.addresses = [tensor.data_ptr() for tensor in self.held]
        before = [buffer.clone() for buffer in module.buffers()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(2):
                forward(module, *self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.results = forward(module, *self.inputs)
        # what the two runs before the capture left in the module's buffers is undone
        for buffer, value in zip(module.buffers(), before):
            buffer.copy_(value)

    def is_stale(self):
        """Whether a parameter or buffer lies elsewhere now."""
        return any(tensor.data_ptr() != address for tensor, address in zip(self.held, self.addresses))

    def replay(self, inputs):
        """Copy the inputs in, run, and copy the results out."""
        for mine, given in zip(self.inputs, inputs):
            if isinstance(given, torch.Tensor):
                mine.copy_(given)
        self.graph.replay()
        return copied(self.results)


def replayed(forward):
    """Run a forward as a CUDA graph, one for each set of shapes, strides, dtypes and devices; without CUDA as it stands.

    Inputs are tensors and plain values, given by position. Parameters are read where they lie, so changes in place are seen, and one
    whose storage moves is captured anew; a parameter must not be replaced by another object. There are no gradients.
    """
    captures = weakref.WeakKeyDictionary()

    @functools.wraps(forward)
    def call(module, *inputs, **named):
        tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
        if named or not tensors or not all(tensor.is_cuda for tensor in tensors):
            return forward(module, *inputs, **named)
        layouts = tuple((tensor.shape, tensor.stride(), tensor.dtype, tensor.device) for tensor in tensors)
        key = (module.training, layouts, tuple(value for value in inputs if not isinstance(value, torch.Tensor)))
        known = captures.setdefault(module, {})
        if key not in known or known[key].is_stale():
            known[key] = Capture(forward, module, inputs)
        return known[key].replay(inputs)

    return call
'''


PACKED_FIRST = """{place}        kept = known.get("weights")
        if not kept or known["packed"] is not module.packed_weights or versions(kept) != module.packed_at:
            # new weights, or packed anew since: a capture reads what was packed before
            module.refresh_weights()
            known.clear()
            known |= {{"packed": module.packed_weights, "weights": module.weights_to_pack()}}
"""
"""What stands in a capture's way to a replay where weights are packed."""

RESTORED = """        for buffer, value in zip(module.buffers(), before):
            buffer.copy_(value)
"""
PACKED_RESTORED = """        for buffer, value, then, now in zip(module.buffers(), before, untouched, versions(module.buffers())):
            if then != now:
                buffer.copy_(value)
"""
"""How buffers are restored where weights are packed: a write to one that is packed, as a folded norm's are, would ask for packing again."""


def launches(graph: OperatorGraph, schedule: Schedule) -> int:
    """Count the launches of one call, at least: one for each generated region and each operator of the library.

    Writes to buffers that are made together at the end are not counted.
    """
    count = graph.calls if graph.blocked else 0
    together = deferrable(graph)
    for region in schedule.regions:
        if region.is_generated:
            count += 1
        else:
            nodes = [graph.by_name[name] for name in region.nodes]
            count += sum(_library_launches(graph, node) for node in nodes if not is_view(node) and node.name not in together)
    return count


def _library_launches(graph: OperatorGraph, node: Node) -> int:
    """Count the launches of one operator of the library, at least."""
    if node.op not in RECURRENT:
        return 1
    given = node.args[0] if node.args else None
    if not node.target.endswith(".input") or len(node.args) <= BATCH_FIRST or not isinstance(given, Ref):
        return LEAST_LAUNCHES
    shape = graph.meta(given).written
    steps = shape[1 if node.args[BATCH_FIRST] and len(shape) == 3 else 0]
    return max(LEAST_LAUNCHES, steps * int(node.args[LAYERS]) * (2 if node.args[BIDIRECTIONAL] else 1))


def can_capture(graph: OperatorGraph, schedule: Schedule) -> bool:
    """Whether a capture gives what the forward gives at every call, and launches enough to be worth it."""
    if graph.keeps_state or any(words in reason for reason in graph.blocked for words in DATA_DECIDES):
        return False
    return launches(graph, schedule) >= LEAST_LAUNCHES


def keeps_state(problem: Problem) -> bool:
    """Whether a call of the reference may assign attributes of its module: a replay would not.

    Looked at are `forward` and every method whose name it, or what it reaches, reads from anything; what only a constructor calls is not.
    """
    if problem.form is not ProblemForm.KERNELBENCH:
        return False
    return any(_writes_to_self(node) for method in _called_methods(parsed(problem.source)) for node in ast.walk(method))


def _writes_to_self(node: ast.AST) -> bool:
    """Whether a statement's part assigns an attribute of self, an item of one, or one by a computed name."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr")
    if not isinstance(node, ast.Attribute | ast.Subscript) or not isinstance(node.ctx, ast.Store | ast.Del):
        return False
    place: ast.expr = node
    while isinstance(place, ast.Attribute | ast.Subscript):
        place = place.value
    return isinstance(place, ast.Name) and place.id == "self"


def _called_methods(tree: ast.Module) -> list[ast.FunctionDef]:
    """List the methods that a call may reach, by name alone.

    All but constructors where one reads attributes by computed names, or anything registers a hook.
    """
    written = [method for owner in ast.walk(tree) if isinstance(owner, ast.ClassDef) for method in owner.body]
    methods = [method for method in written if isinstance(method, ast.FunctionDef) and method.name != "__init__"]
    if any(isinstance(node, ast.Attribute) and node.attr.startswith("register_") and "hook" in node.attr for node in ast.walk(tree)):
        return methods
    reached = [method for method in methods if method.name == "forward" or method.name.startswith("__")]
    for method in reached:
        nodes = list(ast.walk(method))
        if any(isinstance(node, ast.Name) and node.id in ("getattr", "vars") for node in nodes):
            return methods
        named = {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {node.id for node in nodes if isinstance(node, ast.Name)}
        reached.extend(one for one in methods if one.name in named and one not in reached)
    return reached


def captured(source: str) -> str:
    """Give the `forward` of an emitted module its decorator, and the file what that needs."""
    tree = parsed(source)
    lines = source.split("\n")
    model = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ModelNew")
    forward = next(node for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "forward")
    indent = lines[forward.lineno - 1][: forward.col_offset]
    lines.insert(forward.lineno - 1, f"{indent}@replayed")
    first = next(node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    place = min([first.lineno, *(each.lineno for each in first.decorator_list)]) - 1
    lines[place:place] = [*_helper(source).strip("\n").split("\n"), "", ""]
    start = next(node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)).lineno - 1
    known = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    lines[start:start] = [f"import {name}" for name in ("functools", "weakref") if name not in known]
    return "\n".join(lines)


def _helper(source: str) -> str:
    """Give what a capture needs; weights that are packed are looked at before a replay, which reads what was packed."""
    if f"def {CHECK}(" not in source:
        return HELPER
    place, clones = (
        "        known = captures.setdefault(module, {})\n",
        "        before = [buffer.clone() for buffer in module.buffers()]\n",
    )
    text = HELPER.replace(clones, f"{clones}        untouched = versions(module.buffers())\n").replace(RESTORED, PACKED_RESTORED)
    return text.replace(place, PACKED_FIRST.format(place=place))
