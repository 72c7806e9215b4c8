"""Cross-compile every kernel that an emitted source launches, without a GPU.

Runs as its own process: compilers print to standard output. Reads a JSON list of jobs (`problem`, `source`, `arch`), runs each
emitted module on the CPU with its launches recorded instead of made, and compiles what was recorded.
"""

from __future__ import annotations

import ast
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import torch
import triton
from interpreter_worker import load
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction, mangle_type

from tools.problems import open_problem
from tools.records import Problem

POINTERS = {
    torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.int64: "*i64", torch.int32: "*i32", torch.bool: "*i1",
    torch.int8: "*i8", torch.uint8: "*u8", torch.float8_e4m3fn: "*fp8e4nv", torch.float8_e5m2: "*fp8e5",
}  # fmt: skip
OPTIONS = {"num_warps", "num_stages"}


class Recorder:
    """Stands where a kernel stood: keeps the arguments of each launch."""

    def __init__(self, kernel: Any, launches: list[tuple[Any, dict[str, Any]]]) -> None:
        """Keep the kernel and the list to add to."""
        self.kernel, self.launches = kernel, launches

    def __getitem__(self, grid: Any) -> Any:
        """Return what records a launch."""

        def launch(*args: Any, **kwargs: Any) -> None:
            names = [parameter.name for parameter in self.kernel.params]
            self.launches.append((self.kernel, dict(zip(names, args, strict=False)) | kwargs))

        return launch


def compile_launch(kernel: Any, arguments: dict[str, Any], arch: int | str) -> dict[str, Any]:
    """Compile one recorded launch and count what the compiler gave it."""
    options = {key: value for key, value in arguments.items() if key in OPTIONS}
    signature, constants, attributes = {}, {}, {}
    for place, parameter in enumerate(kernel.params):
        value = arguments[parameter.name]
        if parameter.is_constexpr:
            constants[parameter.name] = value
            signature[parameter.name] = "constexpr"
        elif isinstance(value, torch.Tensor):
            signature[parameter.name] = POINTERS[value.dtype]
            attributes[(place,)] = [["tt.divisibility", 16]]
        elif hasattr(value, "block_shape"):
            signature[parameter.name] = mangle_type(value)
        elif isinstance(value, int):
            signature[parameter.name] = "i32"
            if value % 16 == 0:
                attributes[(place,)] = [["tt.divisibility", 16]]
        else:
            signature[parameter.name] = "fp32"
    source = ASTSource(kernel, signature, constants, attributes)
    target = GPUTarget("hip", arch, 64) if isinstance(arch, str) else GPUTarget("cuda", arch, 32)
    compiled = triton.compile(source, target=target, options=options)
    return {"name": kernel.__name__, "shared": compiled.metadata.shared, "ptx": compiled.asm.get("ptx", ""), "ttgir": compiled.asm["ttgir"]}


def compile_job(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Record one source's launches and compile them."""
    problem = Problem.model_validate_json(Path(job["problem"]).read_text())
    module = load(job["source"])
    launches: list[tuple[Any, dict[str, Any]]] = []
    for name, value in list(vars(module).items()):
        if isinstance(value, JITFunction):
            # modules share functions, and Triton's cache tells equal ones apart by where they stand
            value.starting_line_number = 1
        if name.endswith(("_kernel",)) or "_partial_kernel" in name:
            setattr(module, name, Recorder(value, launches))
    candidate = module.ModelNew(*ast.literal_eval(problem.abi.init))
    with torch.no_grad():
        candidate(*open_problem(problem).inputs(7))
    return [compile_launch(kernel, arguments, job["arch"]) for kernel, arguments in launches]


def main() -> None:
    """Compile every job of the file named on the command line."""
    results = []
    for job in json.loads(Path(sys.argv[1]).read_text()):
        try:
            results.append({"kernels": compile_job(job)})
        except Exception:
            results.append({"crash": traceback.format_exc()[-2000:]})
    Path(sys.argv[2]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
