"""A forward captured as a CUDA graph: for modules of many short launches, whose time is spent between the kernels.

The emitted module's `forward` gets a decorator. Its first call with inputs of given shapes, strides, dtypes and devices runs twice on a
side stream, as PyTorch asks for, then is captured; later calls copy their inputs in, replay, and copy the results out. It is offered
where Python decides nothing by data and leaves nothing behind (`schedule/cuda_graph.py`): what does not launch a kernel happens at the
capture only.
"""

from __future__ import annotations

import ast

from tools.codegen.templates.shared.prepack import CHECK
from tools.syntax import parsed

HELPER = '''
def copied(value):
    """Copy results out of a graph's memory, which the next replay writes again."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return type(value)((key, copied(item)) for key, item in value.items())
    if hasattr(value, "_fields"):
        return type(value)(*map(copied, value))
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
