"""Native extensions of candidates: built once, loaded elsewhere, within what is allowed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.evaluation.supervisor.provenance import provenance
from tools.evaluation.untrusted import extensions
from tools.evaluation.wire.source_text import needs_device
from tools.hardware import load_sheet
from tools.records import Evaluation

ROOT = Path(__file__).parents[4]
SOFTMAX = (Path(__file__).parents[1] / "cuda_kernels" / "softmax.py").read_text()

TINY = '''
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, "answer() -> int"}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tiny", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_tiny() { return PyModule_Create(&definition); }
"""
tiny = load_inline("tiny", SOURCE, no_implicit_headers=True, FLAGS)
print("answer", tiny.answer())
'''

HARNESS = """
import sys
sys.path.insert(0, {root!r})
from tools.evaluation.untrusted import extensions
from tools.hardware import load_sheet
extensions.install(load_sheet("h200"))
extensions.install(load_sheet("h200"))
exec(compile(sys.stdin.read(), "candidate.py", "exec"))
"""


def run(folder: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a source as a candidate's process does, its cache in `folder`."""
    given = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), **environment}
    code = HARNESS.format(root=str(ROOT))
    return subprocess.run([sys.executable, "-c", code], input=source, env=given, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None or shutil.which("ninja") is None, reason="no compiler or no ninja here")
def test_what_is_built_is_loaded_elsewhere(tmp_path: Path) -> None:
    """A second process with the same cache loads the library, though no compiler is within its reach."""
    source = TINY.replace("FLAGS", "extra_cflags=['-O1']")
    first = run(tmp_path, source)
    assert "answer 42" in first.stdout, first.stderr
    assert [path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".so"]
    second = run(tmp_path, source, PATH="/nowhere", CXX="/nowhere/c++")
    assert "answer 42" in second.stdout, second.stderr


def test_flags_outside_the_list_are_refused(tmp_path: Path) -> None:
    """A flag that is not allowed ends the build before it begins, and is named."""
    done = run(tmp_path, TINY.replace("FLAGS", "extra_cflags=['-fplugin=/tmp/x.so']"))
    assert "UnsupportedBuildError: extra_cflags may not hold -fplugin=/tmp/x.so." in done.stderr


@pytest.mark.parametrize(
    "flag",
    [
        "-O3",
        "-std=c++17",
        "--use_fast_math",
        "-use_fast_math",
        "-maxrregcount=64",
        "--fmad=false",
        "-DBLOCK=128",
        "-lineinfo",
        "-Xptxas=-v",
    ],
)
def test_usual_flags_are_allowed(flag: str) -> None:
    """What kernels are usually built with is allowed."""
    assert extensions.FLAGS.fullmatch(flag)


@pytest.mark.parametrize("flag", ["-arch=sm_80", "-gencode=arch=compute_80", "-I/etc", "-o /x", "@file", "-Xcompiler=-fplugin=x"])
def test_strange_flags_are_not(flag: str) -> None:
    """Architectures, paths and plugins are not."""
    assert not extensions.FLAGS.fullmatch(flag)
    assert not extensions.LIBRARIES.fullmatch(flag)


def test_the_target_sets_the_architecture() -> None:
    """Hopper gets its own instructions, Ampere has none of its own."""
    assert extensions.arch_list(load_sheet("h200")) == "9.0a"
    assert extensions.arch_list(load_sheet("b200")) == "10.0a"
    assert extensions.arch_list(load_sheet("a100")) == "8.0"


def test_cuda_sources_are_recognised() -> None:
    """A source needs a device where it gives load_inline CUDA sources, by keyword or by place."""
    assert needs_device(SOFTMAX)
    assert needs_device("load_inline('x', 'a', 'b')")
    assert not needs_device("load_inline('x', 'a')")
    assert not needs_device("def broken(:")


def test_the_telling_part_of_a_build() -> None:
    """Of ninja's log the compiler's complaint with its source line is left, and no command."""
    log = """Error building extension 'x': [1/3] /usr/bin/nvcc -isystem /a -c cuda.cu -o cuda.o
FAILED: cuda.o
/usr/bin/nvcc -isystem /a -c cuda.cu -o error.o
/scratch/build-1/cuda.cu(9): error: identifier "share" is undefined
      most = of_block(most, share);
                            ^

1 error detected in the compilation of "cuda.cu".
ninja: build stopped: subcommand failed.
"""
    said = extensions.telling_build(log)
    assert said.splitlines()[1] == 'cuda.cu(9): error: identifier "share" is undefined'
    assert "of_block(most, share);" in said
    assert "-isystem" not in said
    assert "ninja" not in said


def test_without_a_gpu_cuda_is_not_judged(judge: Callable[..., Evaluation]) -> None:
    """Where there is no GPU a candidate in CUDA C++ is not judged, and the note says why."""
    found = judge(SOFTMAX)
    assert found.verdict == "INFRASTRUCTURE"
    assert "NVIDIA GPU" in found.notes[0]


def test_a_function_of_an_extension_is_the_candidates_own() -> None:
    """Kernels of an extension count as authored, a library's beside them as mixed."""
    assert provenance([("cuda", "softmax")]) == "authored"
    assert provenance([("cuda", "softmax"), ("library", "aten.mm.default")]) == "mixed"
