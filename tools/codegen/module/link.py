"""Link emitted regions into one file: the constants and helpers they need, a host function each, and a `ModelNew`."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.schedule import EPILOGUE
from tools.codegen.module.cuda_graph import captured
from tools.codegen.module.cudnn_fusion import HELPER
from tools.codegen.module.describe import docstring, notes
from tools.codegen.module.emit import EmittedRegions
from tools.codegen.module.forward import SPOKEN_OF, ForwardText, class_text
from tools.codegen.module.host_integers import with_plain_integers
from tools.codegen.module.library_calls import IN_ORDER, TURNING
from tools.codegen.module.reference_text import KeptText
from tools.codegen.rewrite.bind import BoundGraph
from tools.codegen.templates.device.library import LIBRARY_HELPERS
from tools.codegen.templates.device.math import HELPERS
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.prepack import VERSIONS, refuse_clash
from tools.codegen.templates.shared.prune import words
from tools.records import Problem, Record


class Emission(Record):
    """A source and what is to be said about it."""

    source: str
    notes: tuple[str, ...] = ()
    """Which operators were left to the library, and other remarks, one sentence each."""


def link(problem: Problem, bound: BoundGraph, emitted: EmittedRegions) -> Emission:
    """Write the file; raises LoweringError where a number that a library call needs cannot be told at run time."""
    forward, lines = _forward(problem, bound, emitted)
    if forward.packing.packs:
        refuse_clash(problem.source)
    model = class_text(problem, bound.rewritten, emitted.kept, lines, forward.packing, forward.spared)
    before = [*forward.inside.around.functions.values(), "\n".join(forward.named_tuples)]
    body = _body(bound, emitted.kept, list(emitted.texts.values()), [*before, model])
    body = with_plain_integers(body, problem.source)
    imports = _imports(body, emitted.kept, generates="@triton.jit" in body)
    source = emitted.functions.annotated(f'"""{docstring(problem, bound)}"""\n\n' + "\n".join(imports) + "\n\n\n" + body + "\n")
    return Emission(source=captured(source) if bound.schedule.captured else source, notes=notes(bound))


def _forward(problem: Problem, bound: BoundGraph, emitted: EmittedRegions) -> tuple[ForwardText, list[str]]:
    """Write forward, with other names for the arguments that would hide what it speaks of."""
    hiding = frozenset(bound.laid_out.arguments) & (SPOKEN_OF | (emitted.kept.names if emitted.kept else frozenset()))
    while True:
        forward = ForwardText(bound.laid_out, problem, emitted.taken, hiding=hiding)
        lines = forward.write(bound.schedule, emitted.texts)
        if hiding <= words(lines):
            return forward, lines
        hiding &= words(lines)


def _body(bound: BoundGraph, kept: KeptText | None, regions: Sequence[RegionText], last: Sequence[str]) -> str:
    """Put together what the reference's text gives, device helpers, regions, and the module after what else it calls, each helper once."""
    model = last[-1]
    packed = bound.laid_out.prepacked
    helpers = dict.fromkeys(helper for region in regions for helper in region.helpers)
    if packed or any(region.pack for region in regions):
        helpers[VERSIONS] = None
    helpers |= dict.fromkeys(node.op for node in packed if node.op in LIBRARY_HELPERS)
    helpers |= dict.fromkeys(name for name in (TURNING, IN_ORDER) if f"{name}(" in model)
    if any(EPILOGUE in region.parameters for region in bound.schedule.regions):
        helpers[HELPER] = None
    parts = [kept.module if kept else "", *(HELPERS[helper] for helper in helpers), *(region.source for region in regions), *last]
    return "\n\n\n".join(part.strip("\n") for part in parts if part)


def _imports(body: str, kept: KeptText | None, *, generates: bool) -> list[str]:
    """List the import statements that a body needs."""
    imports = ["import collections"] if "collections." in body else []
    imports += ["import math"] if "math." in body else []
    imports += ["import torch", "import torch.nn.functional as F"] if "F." in body else ["import torch"]
    imports += ["import triton", "import triton.language as tl"] if generates else []
    imports += ["from torch import nn"]
    imports += ["from triton.tools.tensor_descriptor import TensorDescriptor"] if "TensorDescriptor(" in body else []
    own = [line for line in (kept.imports if kept else ()) if line not in imports]
    future = [line for line in own if line.startswith("from __future__ ")]
    return [*future, *imports, *(line for line in own if line not in future)]
