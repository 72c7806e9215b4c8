"""What Inductor of torch 2.11 wrote for thirty operators on an H200, recorded there, is read."""

from __future__ import annotations

import ast
import gzip
import json
import re
from pathlib import Path

from tools.inductor.generate import kernel_sources
from tools.inductor.records import Program, WrittenKernel
from tools.inductor.translate import Translation

RECORDED = json.loads(gzip.decompress((Path(__file__).parent / "recorded" / "h200.json.gz").read_bytes()))


def _program(code: str, chosen: dict[str, dict[str, int]]) -> Program:
    kernels = {}
    for name, source in kernel_sources(code):
        found = re.search(r"'grid_type': '(\w+)'", source)
        assert found is not None
        programs = (1, 1, 1) if found[1].endswith("ComboKernelGrid") else ()
        kernels[name] = WrittenKernel(source=source, grid=found[1], launchers=(chosen[name],), programs=programs)
    return Program(code=code, kernels=kernels, operands=())


def _arguments(code: str) -> int:
    """How many tensors a wrapper takes."""
    unpacked = re.search(r"^ *(\w+(?:, \w+)*),? = args$", code, re.MULTILINE)
    assert unpacked is not None
    return unpacked[1].count(",") + 1


def test_every_operator_is_read() -> None:
    """Every kernel and every statement of thirty wrappers has a plain form, which names nothing of Inductor's."""
    assert len(RECORDED["records"]) == 30
    for name, record in RECORDED["records"].items():
        translation = Translation([_program(record["code"], record["chosen"])])
        host = ast.unparse(translation.host(0, [f"x{place}" for place in range(_arguments(record["code"]))]))
        text = "\n".join([host, *translation.kernel_texts()])
        assert not re.search(r"inductor|triton_helpers|tl_math|extern_kernels|get_raw_stream|async_compile", text), name
