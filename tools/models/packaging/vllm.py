"""Writes a plug-in for vLLM: operators of a package that compute one of vLLM's own operators become implementations of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tools.models.packaging.delivered import Delivered
from tools.models.packaging.flashinfer import EXPORTS
from tools.models.packaging.hub import copy_files, kernel_name
from tools.records import content_hash

PLUGIN = Path(EXPORTS) / "vllm"
FILES = ("table.py", "kernels", "runtime")
RMS_NORM = re.compile(
    r"""
    (?P<wide>\w+) \ =\ torch\.ops\.aten\.to\.dtype\((?P<x>\w+),\ torch\.float32\)\n
    (?P<square>\w+) \ =\ torch\.ops\.aten\.pow\.Tensor_Scalar\((?P=wide),\ 2\)\n
    (?P<mean>\w+) \ =\ torch\.ops\.aten\.mean\.dim\((?P=square),\ \[-1\],\ True\)\n
    (?P<sum>\w+) \ =\ torch\.ops\.aten\.add\.Tensor\((?P=mean),\ (?P<eps>[\d.e+-]+)\)\n
    (?P<root>\w+) \ =\ torch\.ops\.aten\.rsqrt\.default\((?P=sum)\)\n
    (?P<scaled>\w+) \ =\ torch\.ops\.aten\.mul\.Tensor\((?P=wide),\ (?P=root)\)\n
    (?P<narrow>\w+) \ =\ torch\.ops\.aten\.to\.dtype\((?P=scaled),\ torch\.(?P<dtype>\w+)\)\n
    (?P<result>\w+) \ =\ torch\.ops\.aten\.mul\.Tensor\(
        (?:(?P=narrow),\ self\.(?P<weight>\w+)|self\.(?P<weight_first>\w+),\ (?P=narrow))\)\n
    return \ (?P=result)\n
    """,
    re.VERBOSE,
)
"""A trace of vLLM's `rms_norm`, step by step: in float32, back to the input's dtype, times the weight. Gemma's norms, say, are others."""
PROJECT = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "{project}"
version = "0.1.0"
dependencies = ["torch", "triton"]

[project.entry-points."vllm.general_plugins"]
{package} = "{package}:register"

[tool.setuptools]
packages = ["{package}", "{package}.kernels", "{package}.runtime"]
"""
INIT = '''"""Implementations of vLLM's operators, written by kernelwright; vLLM calls `register` in each of its processes.

Serve with `--kernel-config.ir_op_priority.rms_norm={provider}`: what the guards do not take goes to vLLM's own.
"""

import torch
from torch import Tensor

from .runtime.rows import answered, taken
from .table import PLACES

PROVIDER = "{provider}"
RMS_NORMS = {norms!r}
"""By name of an operator: the epsilon that it was made for."""
_ENTRIES = {{entry.operator.name: entry for place in PLACES for entry in place.entries}}


def supports_rms_norm(x, weight, epsilon, variance_size=None):
    """Whether one of the kernels was made for these tensors."""
    return variance_size is None and weight is not None and _entry(x, weight, epsilon) is not None


def rms_norm(x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None) -> Tensor:
    """Scale rows by their root mean square, then by the weight."""
    return answered(_entry(x, weight, epsilon), x, weight)


def register():
    """Offer the kernels to vLLM; a second call changes nothing."""
    from vllm import ir

    if PROVIDER not in ir.ops.rms_norm.impls:
        ir.ops.rms_norm.register_impl(PROVIDER, supported=torch.version.cuda is not None, supports_args=supports_rms_norm)(rms_norm)


def _entry(x, weight, epsilon):
    made = (_ENTRIES[name] for name, eps in RMS_NORMS.items() if eps == epsilon)
    return next((entry for entry in made if taken(entry, x, weight)), None)
'''


def write_plugin(folder: Path, delivered: Sequence[Delivered]) -> None:
    """Write a project that can be installed beside vLLM, where an operator is one of vLLM's."""
    norms = {one.group.name: eps for one in delivered if (eps := rms_norm_eps(one)) is not None}
    if not norms:
        return
    package = f"{kernel_name(folder.name).replace('-', '_')}_vllm"
    provider = f"kernelwright_{content_hash(*(one.kernel for one in delivered))[:8]}"
    home = folder / PLUGIN / package
    home.mkdir(parents=True)
    (folder / PLUGIN / "pyproject.toml").write_text(PROJECT.format(project=package.replace("_", "-"), package=package))
    (home / "__init__.py").write_text(INIT.format(provider=provider, norms=norms))
    copy_files(folder, FILES, home)
    for part in ("kernels", "runtime"):
        (home / part / "__init__.py").touch()


def rms_norm_eps(one: Delivered) -> float | None:
    """Read the epsilon of an operator whose trace is vLLM's `rms_norm`; None for any other."""
    _, _, body = one.trace.source.partition(f"def forward(self, {one.trace.inputs[0].name}):\n")
    found = RMS_NORM.match(re.sub(r"^ +", "", body, flags=re.MULTILINE))
    known = found is not None and len(one.trace.inputs) == 1 and found["x"] == one.trace.inputs[0].name
    return float(found["eps"]) if found and known and found["dtype"] == one.trace.inputs[0].dtype else None
