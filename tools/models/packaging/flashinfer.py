"""Writes delivered operators as a data set of FlashInfer-Bench: a definition, a solution and a workload for each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.guards.contract import ANY, TensorRule
from tools.models.packaging.delivered import Delivered
from tools.records import ABI, TensorSpec, content_hash

EXPORTS = "exports"
DATA_SET = Path(EXPORTS) / "flashinfer_bench"
AUTHOR = "kernelwright"
FLOATS = ("float32", "float16", "bfloat16")
"""Dtypes of inputs for which the library draws numbers that any operator can take; it would draw indices of any size."""
OUTPUTS = (*FLOATS, "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16", "int8", "bool")
REFERENCE = '''

def run({arguments}):
    """Compute the reference with the weights that are given."""
    model = Model().to({first}.device)
    with torch.no_grad():
        return torch.func.functional_call(model, {{{weights}}}, ({inputs},))
'''
ENTRY = '''"""Runs the kernel with the weights that it is given; written by kernelwright."""

import torch

from .kernel import ModelNew

NAMES = {names!r}
_LAST = []


def run({arguments}):
    """Run the kernel; what it packs of its weights is kept while they stay the same tensors."""
    held = [{held}]
    if not _LAST or any(one is not other for one, other in zip(_LAST[0], held)):
        _LAST[:] = [held, _module({first}.device, held)]
    with torch.no_grad():
        found = _LAST[1]({inputs})
    return found if isinstance(found, torch.Tensor) else tuple(found)


def _module(device, held):
    module = ModelNew().eval().to(device)
    for name, tensor in zip(NAMES, held):
        own = module._parameters if name in module._parameters else module._buffers
        own[name] = tensor
    return module
'''


def write_data_set(folder: Path, delivered: Sequence[Delivered]) -> None:
    """Write the data set into a package; operators that the library could not draw inputs for are left out."""
    for one in delivered:
        if not can_export(one):
            continue
        name, kind = f"{folder.name}_{one.group.name}", str(one.trace.work.families[0])
        made = definition(name, kind, one)
        _write(folder / DATA_SET / "definitions" / kind / f"{name}.json", made)
        _write(folder / DATA_SET / "solutions" / AUTHOR / kind / f"{name}.json", solution(name, one))
        traces = [{"definition": name, "workload": each, "solution": None, "evaluation": None} for each in workloads(name, made, one)]
        file = folder / DATA_SET / "workloads" / kind / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{json.dumps(trace)}\n" for trace in traces))


def workloads(name: str, made: dict[str, Any], one: Delivered) -> list[dict[str, Any]]:
    """Write a workload for each captured shape that the definition's fixed sizes leave."""
    found = []
    for abi in [shape.abi for shape in one.trace.shapes] or [one.trace.abi]:
        axes = {f"{each.name}_{place}": size for each in _tensors_of(abi) for place, size in enumerate(each.shape)}
        fixed = {axis: spec["value"] for axis, spec in made["axes"].items() if spec["type"] == "const"}
        if all(axes.get(axis, size) == size for axis, size in fixed.items()):
            found.append(
                {
                    "axes": {axis: axes[axis] for axis, spec in made["axes"].items() if spec["type"] == "var"},
                    "inputs": {each: {"type": "random"} for each in made["inputs"]},
                    "uuid": content_hash(name, json.dumps(axes)),
                }
            )
    return found


def can_export(one: Delivered) -> bool:
    """Whether the library has the dtypes, and random numbers are inputs that the operator takes."""
    return all(each.dtype in FLOATS for each in _specs(one)) and all(each.dtype in OUTPUTS for each in one.trace.outputs)


def definition(name: str, kind: str, one: Delivered) -> dict[str, Any]:
    """Write what the operator computes: axes, inputs with the weights behind them, outputs, and the reference."""
    axes = _Axes(one)
    inputs = [*(each.name for each in one.trace.inputs), *_weights(one)]
    weights = ", ".join(f'"{each}": {each}' for each in _weights(one))
    given = ", ".join(each.name for each in one.trace.inputs)
    run = REFERENCE.format(arguments=", ".join(inputs), first=inputs[0], weights=weights, inputs=given)
    return {
        "name": name,
        "op_type": kind,
        "axes": axes.axes,
        "inputs": axes.inputs,
        "outputs": axes.outputs,
        "reference": one.trace.source + run,
        "description": f"{one.group.title}, as it was called in a model.",
        "constraints": axes.constraints,
    }


def solution(name: str, one: Delivered) -> dict[str, Any]:
    """Write the kernel with the function that runs it."""
    given = [each.name for each in one.trace.inputs]
    names = _weights(one)
    entry = ENTRY.format(
        names=tuple(names), arguments=", ".join([*given, *names]), held=", ".join(names), first=given[0], inputs=", ".join(given)
    )
    return {
        "name": f"{name}_{content_hash(one.kernel)[:8]}",
        "definition": name,
        "author": AUTHOR,
        "spec": {
            "language": "triton",
            "target_hardware": ["cuda"],
            "entry_point": "main.py::run",
            "dependencies": [],
            "destination_passing_style": False,
        },
        "sources": [{"path": "main.py", "content": entry}, {"path": "kernel.py", "content": one.kernel}],
    }


class _Axes:
    """The sizes of an operator by name: fixed ones by number, those that vary, and how they hang together."""

    def __init__(self, one: Delivered) -> None:
        self.axes: dict[str, dict[str, Any]] = {}
        self.constraints: list[str] = []
        self._known: dict[str, str] = {}
        # an output may not have a size that no input has
        simple = all(size.isdigit() or size in _places(one) for each in one.trace.outputs for size in each.shape)
        rules = {rule.name: rule for rule in (*one.contract.inputs, *one.contract.parameters) if isinstance(rule, TensorRule)}
        self.inputs = {
            each.name: self._tensor(each, [size if simple else each.shape[place] for place, size in enumerate(rules[each.name].sizes)])
            for each in _specs(one)
        }
        self.outputs = {
            each.name: self._tensor(each, [int(size) if size.isdigit() else size for size in out.shape] if simple else list(each.shape))
            for each, out in zip(one.trace.abi.outputs, one.trace.outputs, strict=True)
        }

    def _tensor(self, spec: TensorSpec, sizes: Sequence[Any]) -> dict[str, Any]:
        return {"shape": [self._axis(spec.name, place, size) for place, size in enumerate(sizes)], "dtype": spec.dtype}

    def _axis(self, name: str, place: int, size: Any) -> str:
        axis = f"{name}_{place}"
        text = size if isinstance(size, str) else getattr(size, "text", "")
        if text in self._known:
            return self._known[text]
        self._known[f"{name}.shape[{place}]"] = axis
        self.axes[axis] = {"type": "var"} if text else {"type": "const", "value": size}
        if text.startswith(f"{ANY} * "):
            self.constraints.append(f"{axis} % {text.removeprefix(f'{ANY} * ')} == 0")
        elif text and text != ANY:
            self.constraints.append(f"{axis} == {self._named(text)}")
        return axis

    def _named(self, text: str) -> str:
        for known, axis in self._known.items():
            text = text.replace(known, axis)
        return text


def _specs(one: Delivered) -> list[TensorSpec]:
    """List the inputs and weights with the shapes of the captured call."""
    return _tensors_of(one.trace.abi)


def _tensors_of(abi: ABI) -> list[TensorSpec]:
    return [each for each in (*abi.arguments, *abi.parameters) if isinstance(each, TensorSpec)]


def _weights(one: Delivered) -> list[str]:
    return [each.name for each in one.trace.abi.parameters]


def _places(one: Delivered) -> set[str]:
    """List how sizes of inputs are written."""
    return {f"{each.name}.shape[{place}]" for each in one.trace.inputs for place in range(len(each.shape))}


def _write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=1) + "\n")
