"""What Inductor wrote is read by its syntax tree: kernels, host functions, and what makes one of several."""

from __future__ import annotations

import ast

import pytest

from tools.inductor import RefusedError
from tools.inductor.host import host_function
from tools.inductor.kernels import plain_kernel, short_name
from tools.inductor.launches import configuration, grid_text, tuned_grid_text
from tools.inductor.lifting import lifted, skeleton
from tools.inductor.records import Launcher, Program, WrittenKernel
from tools.inductor.translate import Translation

KERNEL = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

@triton_heuristics.pointwise(size_hints={'x': 1024})
@triton.jit
def triton_poi_fused_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xnumel = 1000
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    rnumel = xnumel
    tl.device_assert(xindex < 1000, "index out of bounds")
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tmp1 = HELPER
    tl.store(out_ptr0 + xindex, tl_math.abs(tmp1), xmask)
"""
CALL = """
def call(args):
    arg0_1, arg1_1 = args
    args.clear()
    assert_size_stride(arg0_1, (3, 4), (4, 1))
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((3, 4), (4, 1), torch.float32)
        stream0 = get_raw_stream(0)
        triton_poi_fused_relu_0.run(arg0_1, buf0, 12, stream=stream0)
        del arg0_1
        buf1 = buf0; del buf0  # reuse
        buf2 = STATEMENT
        del buf1
    return (buf2, )
"""


def _kernel(helper: str) -> WrittenKernel:
    return WrittenKernel(
        source=KERNEL.replace("HELPER", helper), grid="Grid1D", launchers=({"XBLOCK": 256, "num_warps": 4, "num_stages": 1},)
    )


def _host(statement: str) -> list[str]:
    def launch(name: str, arguments: list[ast.expr]) -> str:
        return f"{short_name(name)}({', '.join(map(ast.unparse, arguments))})"

    return host_function(CALL.replace("STATEMENT", statement), ["x", "weight"], launch).lines


def test_a_kernel_keeps_nothing_of_inductors_modules() -> None:
    """Decorators, helpers, checks of indices and names that nobody reads go; the number of elements is a compile-time parameter."""
    kernel = plain_kernel(_kernel("triton_helpers.maximum(tmp0, 0)").source, "triton_poi_fused_relu_0")
    text = ast.unparse(kernel.function)
    assert text.startswith("@triton.jit\ndef triton_poi_fused_relu_0(in_ptr0, out_ptr0, xnumel: tl.constexpr, XBLOCK: tl.constexpr):")
    assert kernel.helpers == {"maximum"}
    assert "tmp1 = maximum(tmp0, 0)" in text
    assert "tl.math.abs(tmp1)" in text
    assert not any(word in text for word in ("xnumel = 1000", "rnumel", "device_assert", "triton_helpers", "heuristics"))


def test_a_kernel_that_calls_something_else_is_refused() -> None:
    """A helper without a plain form is named, and nothing is written."""
    with pytest.raises(RefusedError, match=r"triton_helpers.sort_with_index, which has no plain form here"):
        plain_kernel(_kernel("triton_helpers.sort_with_index(tmp0)").source, "triton_poi_fused_relu_0")


@pytest.mark.parametrize(
    ("name", "short"),
    [("triton_poi_fused__softmax_add_mul_0", "softmax_add_mul"), ("triton_for_fused_1", "fused"), ("triton_red_fused_sum_sum_12", "sum")],
)
def test_names_are_short(name: str, short: str) -> None:
    """Inductor's prefixes, numbers and repetitions go."""
    assert short_name(name) == short


def test_a_host_function_allocates_launches_and_returns() -> None:
    """Buffers become calls of torch, reuse a renaming, and checks, streams and devices go."""
    assert _host("extern_kernels.convolution(buf1, arg1_1, groups=1, bias=None)") == [
        "buf0 = torch.empty((3, 4), dtype=torch.float32, device=x.device)",
        "relu(x, buf0, 12)",
        "buf2 = torch.convolution(buf0, weight, groups=1, bias=None)",
        "del buf0",
        "return buf2,",
    ]


@pytest.mark.parametrize("statement", ["open('x')", "cpp_fused_0(buf1)", "torch.ops.other.thing(buf1)", "buf1 + 1"])
def test_a_host_function_with_anything_else_is_refused(statement: str) -> None:
    """What is no call of ATen's and no known form is not guessed."""
    with pytest.raises(RefusedError, match="which has no plain form here"):
        _host(statement)


def test_what_the_library_makes_is_laid_out_as_kernels_expect() -> None:
    """Strides that Inductor asserts of a library's result are made, where they differ."""
    made = "torch.ops.aten.relu.default(buf1); assert_size_stride(buf2, (3, 4), (1, 3))"
    read = f"{made}; triton_poi_fused_relu_0.run(buf2, buf1, 12, stream=stream0)"
    assert "buf2 = laid_out(buf2, (3, 4), (1, 3))" in _host(read)
    assert not any("laid_out" in line for line in _host(made)), "what is only returned may lie in any way"
    seen = CALL.replace("return (buf2, )", "return (reinterpret_tensor(buf2, (12, ), (1, ), 0), )").replace("STATEMENT", made)
    assert "buf2 = laid_out(buf2, (3, 4), (1, 3))" in host_function(seen, ["x", "weight"], lambda *_: "").lines


LAUNCHER: Launcher = {"XBLOCK": 64, "YBLOCK": 1, "num_warps": 8, "num_stages": 1}


@pytest.mark.parametrize(
    ("grid", "written"),
    [
        ("Grid1D", "(triton.cdiv(1000, 64),)"),
        ("Grid2D", "(triton.cdiv(1000, 64), triton.cdiv(70000, 1))"),
        ("Grid2DWithYZOverflow", "(triton.cdiv(1000, 64), 35000, 2)"),
    ],
)
def test_grids_follow_from_sizes_and_blocks(grid: str, written: str) -> None:
    """Each axis is its elements by its block, even a block of one, as a tuner changes both; a second axis too long goes on in the third."""
    kernel = WrittenKernel(source="", grid=grid, launchers=(LAUNCHER,))
    assert grid_text(kernel, {"xnumel": 1000, "ynumel": 70000}, LAUNCHER) == written


def test_an_unknown_grid_is_refused() -> None:
    """A template's grid is not guessed."""
    with pytest.raises(RefusedError, match="the grid PrecomputedGrid"):
        grid_text(WrittenKernel(source="", grid="PrecomputedGrid", launchers=(LAUNCHER,)), {}, LAUNCHER)


def test_autotuned_forms_have_names_of_their_own() -> None:
    """A kernel that is tuned for two of its launches is not taken for another kernel whose name is a number longer."""
    launchers: tuple[Launcher, ...] = tuple({"XBLOCK": block, "num_warps": 4, "num_stages": 1} for block in (256, 512))
    kernels, calls = {}, []
    for place, (helper, size) in enumerate((("tmp0", 1000), ("tmp0", 2000), ("tmp0 + 1.0", 1000))):
        name = f"triton_poi_fused_relu_{place}"
        source = _kernel(helper).source.replace("triton_poi_fused_relu_0", name).replace("1000", str(size))
        kernels[name] = WrittenKernel(source=source, grid="Grid1D", launchers=launchers)
        calls.append(f"        {name}.run(arg0_1, buf0, {size}, stream=stream0)")
    code = CALL.replace("        triton_poi_fused_relu_0.run(arg0_1, buf0, 12, stream=stream0)", "\n".join(calls))
    translation = Translation([Program(code=code.replace("STATEMENT", "buf1"), kernels=kernels, operands=())])
    host = ast.unparse(translation.host(0, ["x", "y"]))
    names = [line.split(" = ")[0] for text in translation.kernel_texts() for line in text.splitlines() if " = triton.autotune(" in line]
    assert len(names) == len(set(names)) == 3
    assert all(f"{name}[" in host for name in names)


def test_a_tuned_grid_depends_on_the_configuration() -> None:
    """Where blocks are chosen on the device, the grid is a function of them."""
    assert tuned_grid_text("Grid1D", {"xnumel": 9}) == 'lambda meta: (triton.cdiv(9, meta["XBLOCK"]),)'
    assert configuration(LAUNCHER, ("x", "XBLOCK")) == {"XBLOCK": 64, "num_warps": 8, "num_stages": 1}


def test_functions_that_differ_in_numbers_become_one() -> None:
    """Equal numbers stay; others become names with one value a function, and 4 and 4.0 are not the same."""
    texts = ["def f(x):\n    return g(x * 4, 4.0, 7)", "def h(x):\n    return g(x * 5, 5.0, 7)"]
    functions = [node for text in texts for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert skeleton(functions[0]) == skeleton(functions[1])
    made = lifted(functions, lambda index: ast.Name(f"n{index}", ast.Load()))
    assert ast.unparse(made.function) == "def f(x):\n    return g(x * n1, n0, 7)"
    assert made.values == ((4.0, 4), (5.0, 5))
