"""The candidate file: kernels, host functions for the sizes that Inductor wrote for, and `ModelNew`."""

from __future__ import annotations

import re

from tools.codegen.module.forward import attribute
from tools.codegen.module.host_integers import with_plain_integers
from tools.codegen.module.reference_text import KeptText, keep
from tools.codegen.templates.shared.naming import Names
from tools.evaluation.wire.configurations import Configurations, kernel_signature
from tools.inductor.helpers import helper_texts
from tools.inductor.host import HELPERS
from tools.inductor.records import Program, RefusedError, Written
from tools.inductor.sizes import Sized, programs_text
from tools.inductor.translate import Translation
from tools.records import Problem, ProblemForm, TensorSpec
from tools.returned import places, result_text

PROVENANCE = "Derived from torch.compile"
"""How notes and docstrings of such files begin."""
_UNREADABLE = (SyntaxError, LookupError, ValueError, AttributeError)
"""What a reader of syntax trees raises where the text is of another form."""
_TAKEN = frozenset(["n", "torch", "triton", "tl", "nn", "F", "inf", "nan", "meta", "compiled", *HELPERS])
"""Names that host functions use."""


def candidate_text(problem: Problem, written: Written, configurations: Configurations | None = None) -> str:
    """Write the file; raises RefusedError where what Inductor wrote has no plain form.

    Kernels whose signature is among `configurations` take those at the problem's own size; others are autotuned there.
    """
    if written.refused:
        raise RefusedError(written.refused)
    try:
        return _text(problem, written, configurations or {})
    except _UNREADABLE as error:
        raise RefusedError(f"Inductor of torch {written.torch} wrote a form that is not known ({type(error).__name__}: {error})") from error


def _text(problem: Problem, written: Written, configurations: Configurations) -> str:
    if problem.form is ProblemForm.EXPORTED and problem.abi.parameters:
        raise RefusedError("an exported module's parameters are not declared in a text")
    kept = keep(problem) if problem.form is ProblemForm.KERNELBENCH else None
    programs = [_settled(program, configurations) for program in written.programs[:1]]
    translation = Translation((*programs, *written.programs[1:]), kept.names if kept else frozenset())
    sized = [_sized(translation, place) for place in range(len(written.programs))]
    helpers = [*helper_texts(translation.device_helpers), *(HELPERS[name] for name in sorted(translation.host_helpers))]
    parts = [kept.module if kept else "", *helpers, *translation.kernel_texts(), programs_text(sized)]
    parts += _class_texts(problem, kept, written, Names(re.findall(r"\w+", " ".join(parts))))
    text = "\n\n\n".join(part.strip("\n") for part in parts if part.strip())
    text = with_plain_integers(text, problem.source)
    return "\n".join([f'"""{_docstring(problem, written)}"""', "", *_imports(text, kept), "", "", text, ""])


def _settled(program: Program, configurations: Configurations) -> Program:
    """Give kernels the configurations that are known to be fastest."""
    kernels = dict(program.kernels)
    for name, kernel in kernels.items():
        chosen = configurations.get(kernel_signature(kernel.source, name))
        if chosen is not None and kernel.launchers and chosen.keys() == kernel.launchers[0].keys() and not kernel.programs:
            kernels[name] = kernel.model_copy(update={"launchers": (chosen,)})
    return program.model_copy(update={"kernels": kernels})


def _sized(translation: Translation, place: int) -> Sized:
    operands = translation.programs[place].operands
    if not operands:
        raise RefusedError("the reference reads no tensor")
    host = translation.host(place, [_local(operand.name) for operand in operands])
    return Sized(tuple(operand.shape for operand in operands), host)


def _local(name: str) -> str:
    """Name a tensor within a host function: `net.0.weight` is `net_0_weight`."""
    name = re.sub(r"\W", "_", name)
    return f"p_{name}" if name[:1].isdigit() or name.startswith("buf") or name in _TAKEN or name.endswith("_kernel") else name


def _docstring(problem: Problem, written: Written) -> str:
    shapes = ", ".join(f"{spec.name} {list(spec.shape)} {spec.dtype}" for spec in problem.abi.inputs)
    results = ", ".join(f"{spec.name} {list(spec.shape)} {spec.dtype}" for spec in problem.abi.outputs)
    others = len(written.programs) - 1
    sizes = f" and for {others} more size{'s' * (others != 1)}" if others else ""
    return (
        f"{problem.name}: {PROVENANCE[0].lower()}{PROVENANCE[1:]}, the kernels that Inductor of torch {written.torch} writes for it.\n\n"
        f"Written for {shapes} -> {results}{sizes};\nsizes are compile-time numbers, and other sizes are refused.\n"
    )


def _imports(text: str, kept: KeptText | None) -> list[str]:
    lines = ["import collections"] if "collections." in text else []
    lines += ["import torch", *(["import triton", "import triton.language as tl"] if "triton." in text else []), "from torch import nn"]
    lines += ["from triton.language.extra import libdevice"] if "libdevice." in text else []
    if re.search(r"(?<![\w.])(inf|nan)\b", text):
        lines.insert(0, "from math import inf, nan")
    if re.search(r"(?<![\w.])F\.", text):
        lines.append("import torch.nn.functional as F")
    return lines + [line for line in (kept.imports if kept else ()) if line not in lines]


def _class_texts(problem: Problem, kept: KeptText | None, written: Written, names: Names) -> list[str]:
    """Write the NamedTuples that forward returns, and `ModelNew`: the reference's constructor, and a forward that runs a size's program."""
    lines = [f"class ModelNew({kept.base if kept else 'nn.Module'}):"]
    lines += [f'    """Takes the place of `{problem.entry}`: same constructor, same parameters, same results."""', ""]
    if kept and kept.body:
        lines += [kept.body, ""]
    operands = written.programs[0].operands
    given = ", ".join(one.name if one.kind == "input" else attribute(one.name, problem.form) for one in operands)
    arguments = [f"{a.name}{': torch.Tensor' if isinstance(a, TensorSpec) else ''}" for a in problem.abi.arguments]
    lines += [f"    def forward({', '.join(['self', *arguments])}):", f"        outputs = compiled({given})"]
    result, classes = _result(problem.abi.returns, written, names)
    return ["\n".join(classes), "\n".join([*lines, f"        return {result}"])]


def _result(structure: str, written: Written, names: Names) -> tuple[str, list[str]]:
    """Write what forward returns, of outputs among which every None stands, too."""
    if not structure:
        return "outputs[0]" if written.outputs == "one" else f"{written.outputs}(outputs)", []
    return result_text(structure, [f"outputs[{place}]" for place in places(structure)], names.fresh)
