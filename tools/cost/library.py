"""How long the library takes for a region that could be generated: what a kernel of ours is compared with before either has run."""

from __future__ import annotations

from tools.codegen import Region, Schedule
from tools.codegen.ir.graph import Node, OperatorGraph
from tools.codegen.ir.products import DenseConvolution
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.cuda_graph import launches
from tools.codegen.schedule.plan import Planned
from tools.hardware import peak_tflops, rates
from tools.records import ITEM_BYTES, HardwareSheet, OperatorFamily, PrecisionPolicy

GATHERS = {"embedding", "index", "index_select", "gather", "take_along_dim"}
"""Operators that read a part of what they are given."""
SUMMED_US = 0.034
"""Time in which cuDNN's float32 convolutions without tensor cores add up one product of an element's sum, however few elements there are:
1065 µs for the nineteen convolutions of ResNet-18 on two images, whose sums have 30,976 products together (an H200, 2026-11-21)."""


CONVOLUTION_SHARE, TRANSPOSED_SHARE = 0.5, 0.3
"""Share of the float32 rate at which cuDNN's convolutions without tensor cores, and their transposes, do what they compute, which is more
than is asked for: the channels of the result and of the input are filled up to multiples of `FILLED`, and a strided transposed one takes
every element of its kernel for each position. Fitted to eleven problems of KernelBench (levels 1 and 2, numbers that leave 1 divided by 3;
an H200, float32, 2026-11-22). Where a fast transform applies, cuDNN can be five times as fast."""
FILLED = (32, 8)


def library_us(
    planned: Planned, sheet: HardwareSheet, policy: PrecisionPolicy, family: OperatorFamily | None = None, *, channels_last: bool = False
) -> float:
    """Time of a region's library calls by the shares of the peak rates that `tools.hardware.rates` has, microseconds.

    The template tells the family, unless it is given: a convolution with a kernel of one element is a product to us, not to the library.
    Only a convolution with TF32 knows the layout.
    """
    products = planned.template.products(planned.kernel)
    family = family or products.family
    if family is OperatorFamily.CONVOLUTION and rounds_convolutions(sheet, policy, products.dtype) and not planned.kernel.depthwise:
        return tf32_convolution_us(planned, sheet, channels_last=channels_last)
    loads, outputs = planned.kernel.builder.loads, planned.kernel.outputs
    metas = [*(load.meta for load in loads), *(output.meta for output in outputs)]
    moved = sum(meta.numel * ITEM_BYTES[meta.dtype] for meta in metas)
    memory = moved / (rates.copy_gbps(sheet) * rates.eager_share(family)) / 1e3
    peak = peak_tflops(sheet, policy.name, products.dtype)
    tensor_cores = peak > sheet.fp32_tflops
    if products.convolution and not tensor_cores:
        computing = _convolution_us(products.convolution, peak)
    else:
        computing = products.flops / (peak * rates.library_share(family, tensor_cores=tensor_cores)) / 1e6
    if family is OperatorFamily.CONVOLUTION and not tensor_cores:
        computing = max(computing, products.summed * SUMMED_US)
    return float(max(sheet.launch_us, rates.KERNEL_US + max(memory, computing)))


def left_us(graph: OperatorGraph, nodes: tuple[str, ...], sheet: HardwareSheet) -> float:
    """Time of library calls that could not be generated either, at least: of their launches, or of the bytes they move."""
    counted = launches(graph, Schedule(regions=(Region(id="left", nodes=nodes),)))
    calls = [graph.by_name[name] for name in nodes]
    moved = sum(_moved(graph, node) / rates.eager_share(rates.operator_family(node.target)) for node in calls if not is_view(node))
    return max(counted * sheet.launch_us, moved / rates.copy_gbps(sheet) / 1e3 if counted else 0.0)


def _moved(graph: OperatorGraph, node: Node) -> int:
    """Bytes that a call reads and writes; of what it gathers from, it reads as much as it writes."""
    metas = [*node.outputs, *(node.outputs if node.op in GATHERS else (graph.meta(ref) for ref in node.refs))]
    return sum(meta.numel * ITEM_BYTES[meta.dtype] for meta in metas if meta.dtype in ITEM_BYTES)


def rounds_convolutions(sheet: HardwareSheet, policy: PrecisionPolicy, dtype: str) -> bool:
    """Whether the library's convolutions run on TF32 tensor cores."""
    return policy.precision.cudnn_tf32 and dtype == "float32" and sheet.tf32_tflops is not None


def tf32_convolution_us(planned: Planned, sheet: HardwareSheet, *, channels_last: bool) -> float:
    """Time of cuDNN's convolution with TF32, microseconds; one over a kernel of one element, with channels first, is a product."""
    products, kernel = planned.template.products(planned.kernel), planned.kernel
    metas = [*(load.meta for load in kernel.builder.loads), *(output.meta for output in kernel.outputs)]
    moved = sum(meta.numel * ITEM_BYTES[meta.dtype] for meta in metas) / rates.copy_gbps(sheet) / 1e3
    tflops, asked = float(sheet.tf32_tflops or sheet.fp32_tflops), products.convolution
    if asked is None:
        time = max(moved / rates.TF32_UNIT_SHARE, products.flops / (tflops * rates.TF32_CONVOLUTION_SHARE) / 1e6)
        return float(max(sheet.launch_us, rates.KERNEL_US + time))
    results, inputs = (-(-count // whole) * whole for count, whole in zip((asked.results, asked.inputs), rates.TF32_FILLED, strict=True))
    volume = kernel.convolution is not None and len(kernel.convolution.size) > 2
    share = rates.TF32_VOLUME_SHARE if volume else rates.TF32_CONVOLUTION_SHARE
    computing = 2.0 * asked.positions * asked.groups * results * inputs * asked.taps / (tflops * share) / 1e6
    turning = 1.0 if channels_last else rates.TF32_TURNED_PASSES
    return float(max(sheet.launch_us, rates.KERNEL_US + computing + turning * moved))


def _convolution_us(asked: DenseConvolution, tflops: float) -> float:
    """Time of cuDNN's float32 products of a convolution, microseconds, on cores with a peak of so many TFLOP/s."""
    results, inputs = (-(-count // whole) * whole for count, whole in zip((asked.results, asked.inputs), FILLED, strict=True))
    share = TRANSPOSED_SHARE if asked.transposed else CONVOLUTION_SHARE
    return 2.0 * asked.positions * asked.groups * results * inputs * asked.taps / (tflops * share) / 1e6
