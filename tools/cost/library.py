"""How long the library takes for a region that could be generated: what a kernel of ours is compared with before either has run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tools.codegen import Region, Schedule
from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.graph import Node, OperatorGraph
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.operators.families import CONVOLUTIONS, PRODUCTS
from tools.codegen.ir.products import DenseConvolution
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.cuda_graph import launches
from tools.codegen.schedule.plan import Planned
from tools.codegen.templates.attention.scores import scores_of
from tools.cost.library_float32 import float32_us, is_float32_product
from tools.cost.library_orders import orders_us
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
SINGLE_ROW_SHARE = 0.73
"""Share of the copy rate at which cuBLAS multiplies batches of matrices of halves by a vector each: 64 µs for 135 MB (an H100, 2026-11-25;
decode/window_sink_decode of the wild suite, less its softmax)."""
UNALIGNED_SHARE = 0.2
"""What is left of the rate of cuBLAS's products of halves whose rows do not all begin at a multiple of 16 bytes: 32768 by 588 by 1024 took
about 280 µs, modelled 55 without this (an H100, 2026-11-26, torch 2.11; image/patch_embedding of the wild suite). Those of the result are
taken to count alike: 1024 by 768 by 50257 and the losses of it took 1140 µs, modelled 360 without this (an H200, 2026-11-29)."""
TILE, TILE_US = 128, 0.7
"""Rows and columns of cuBLAS's tiles, and how long a multiprocessor takes for one at least: 8192 products of 27 by 64 by 27 in float16 took
45.6 µs, modelled 22 by their bytes (an H100, 2026-11-26, torch 2.11)."""
SLICE_ROWS, SLICE_US = 64, 4.0
"""Rows of weights that a multiprocessor goes through at least in cuBLAS's products with few rows, at its part of the L2's rate, and how
long that takes at most, as long sums are split. With 1 and with 32 rows, 512 and 2048 columns of 2048 took 5.1 to 6.4 µs in bfloat16 (an
H100 and an H200, 2026-11-26, torch 2.11)."""
FEW_INPUTS, FILLED_RESULTS, RESULTS_PER_CLOCK = 16, 64, 1.7
"""Input channels below which cuDNN's TF32 convolutions with channels last have kernels of their own, the multiple to which they fill up the
result's, and how many elements of it a multiprocessor makes in a clock: 8 channels into 64, 32 and 32 with kernels of 3x3 and one of 3x3x3
took 1303, 150, 1157 and 1342 µs on an H100 (2026-11-26, torch 2.11), less what filled up the input. The result's are filled up where there
are more, too: four of 96 to 192 channels into 32 on [10, 224, 224] took 2725 µs with what turns them, modelled 2252, 1746 without."""
EXPERT_US = 150.0
"""Time of one expert in a loop that picks its rows, in which the host waits for how many they are: two layers of 64 experts took 24.4 ms
(an H200, 2026-11-26; data/models/mixture.py), 190 µs an expert with all else in the model."""
SCORES_PER_CLOCK = 1.7
"""Scores that a multiprocessor makes in a clock in PyTorch's attention with a mask that is data, which FlashAttention does not take: 67
million with heads of 32 halves took about 168 µs, modelled 28 by their bytes (an H100, 2026-11-26, torch 2.11;
protein/pair_biased_attention of the wild suite, less its other kernels)."""
DEPTHWISE_WORK = 24
"""Instructions of PyTorch's depthwise convolution for an element of its kernel: 7x7 on [64, 192, 56, 56] in float16 took about 1390 µs
(an H100, 2026-11-25, torch 2.11). Small kernels in float32 were slower still by their share of the copy rate."""

PASSES, LARGE = {"logsumexp": (9, 6.0)}, 4
"""Launches of operators that PyTorch makes of several, and how often all elements go past in them; of so many launches these are the large
ones. A logarithm of sums is a maximum, a subtraction, an exponential and a sum, with five small kernels between: 60 of 8 x 513 x 513, each
after an addition, took about 2300 µs captured, modelled 585 without this (an H100, 2026-11-27; decoding/sinkhorn_match of the suite of
strangers)."""
COMPLEX_SHARE = 0.72
"""Share of the float32 rate that cuBLAS's products of complex numbers reach: see `_complex_product_us`."""


@dataclass(frozen=True)
class Call:
    """How the library is asked for a convolution, or for a product."""

    channels_last: bool = False
    biased: bool = False
    """Whether it adds a bias in a pass of its own, as PyTorch does outside of cuDNN's fused call."""
    single_row: bool = False
    """Whether it multiplies matrices of halves by a vector each."""
    unaligned: bool = False
    """Whether it multiplies halves whose rows do not all begin at a multiple of 16 bytes."""
    tiles: int = 0
    """Tiles of a batch of products, whose matrices share none."""


def library_us(
    planned: Planned, sheet: HardwareSheet, policy: PrecisionPolicy, family: OperatorFamily | None = None, call: Call = Call()
) -> float:
    """Time of a region's library calls by the shares of the peak rates that `tools.hardware.rates` has, microseconds.

    The template tells the family, unless it is given: a convolution with a kernel of one element is a product to us, not to the library.
    Only of a convolution on tensor cores it is known what layout and bias come to.
    """
    products = planned.template.products(planned.kernel)
    family = family or products.family
    if family is OperatorFamily.CONVOLUTION and on_tensor_cores(sheet, policy, products.dtype) and not planned.kernel.depthwise:
        return tensor_core_convolution_us(planned, sheet, policy, call)
    loads, outputs = planned.kernel.builder.loads, planned.kernel.outputs
    metas = [*(load.meta for load in loads), *(output.meta for output in outputs)]
    moved = sum(meta.numel * ITEM_BYTES[meta.dtype] for meta in metas)
    share = SINGLE_ROW_SHARE if call.single_row else rates.eager_share(family)
    memory = moved / (rates.copy_gbps(sheet) * share) / 1e3
    peak = peak_tflops(sheet, policy.name, products.dtype)
    tensor_cores = peak > sheet.fp32_tflops
    if products.convolution and not tensor_cores:
        computing = _convolution_us(products.convolution, peak)
    elif family is not OperatorFamily.CONVOLUTION and not tensor_cores and is_float32_product(planned.kernel, products.dtype):
        computing = memory = float32_us(planned.kernel, products, sheet)
    else:
        reached = peak * rates.library_share(family, tensor_cores=tensor_cores) * (UNALIGNED_SHARE if call.unaligned else 1.0)
        computing = products.flops / reached / 1e6
    if call.single_row or (family is OperatorFamily.MATMUL and tensor_cores):
        summed = min(loads, key=lambda load: load.meta.numel).meta.written[-1] if call.single_row else products.summed
        slice_us = SLICE_ROWS * summed * ITEM_BYTES[products.dtype] * sheet.sms / rates.l2_gbps(sheet) / 1e3
        computing = max(computing, min(slice_us, SLICE_US))
    if planned.kernel.depthwise:
        # no tensor cores: each channel is a sum of its own
        computing = products.flops * DEPTHWISE_WORK / sheet.fp32_tflops / 1e6
    if planned.kernel.attention is not None and scores_of(planned.kernel).is_masked:
        computing = max(computing, _scores(planned.kernel) / SCORES_PER_CLOCK / sheet.sms / sheet.clock_mhz)
    computing = max(computing, call.tiles * TILE_US / sheet.sms)
    if family is OperatorFamily.CONVOLUTION and not tensor_cores:
        computing = max(computing, products.summed * SUMMED_US)
    return float(max(sheet.launch_us, rates.KERNEL_US + max(memory, computing)))


def _scores(kernel: Kernel) -> int:
    """Count an attention's scores."""
    assert kernel.contraction is not None
    sides = (kernel.contraction.batch, kernel.contraction.rows, kernel.contraction.cols)
    return math.prod(kernel.builder.count(atoms)[0] for atoms in sides)


def batch_tiles(kernel: Kernel) -> int:
    """Count the tiles of a batch of products; none of another region, or of a single product."""
    if kernel.contraction is None or not kernel.contraction.batch:
        return 0
    batch, rows, cols = (
        kernel.builder.count(atoms)[0] for atoms in (kernel.contraction.batch, kernel.contraction.rows, kernel.contraction.cols)
    )
    return batch * math.ceil(rows / TILE) * math.ceil(cols / TILE)


def left_us(graph: OperatorGraph, nodes: tuple[str, ...], sheet: HardwareSheet) -> float:
    """Time of library calls that could not be generated either, at least: of their launches, or of the bytes they move, and of orders."""
    counted = launches(graph, Schedule(regions=(Region(id="left", nodes=nodes),)))
    calls = [graph.by_name[name] for name in nodes]
    moved = sum(_moved(graph, node) / rates.eager_share(rates.operator_family(node.target)) for node in calls if not is_view(node))
    blurring = sum(_one_channel_us(graph, node, sheet) for node in calls if node.op in CONVOLUTIONS)
    memory = moved / rates.copy_gbps(sheet) / 1e3 if counted else 0.0
    multiplying = sum(_complex_product_us(graph, node, sheet) for node in calls if node.op in PRODUCTS)
    waiting = sum(node.experts for node in calls if isinstance(node, Dispatch)) * EXPERT_US
    found = max(counted * sheet.launch_us, memory, blurring, multiplying, waiting) + orders_us(graph, nodes, sheet)
    return found + sum(_beside_launches_us(node, sheet) for node in calls if isinstance(node, Loop))


def _beside_launches_us(loop: Loop, sheet: HardwareSheet) -> float:
    """Time that the steps of a loop take beside a launch for each operator: what moves longer than that, and what is several kernels."""
    body, total = loop.body, 0.0
    for node in body.nodes:
        if is_view(node) or isinstance(node, Loop):
            continue
        launched, passes = PASSES.get(node.op, (1, 1.0))
        family = OperatorFamily.POINTWISE if launched > 1 else rates.operator_family(node.target)
        moved = _moved(body, node) * passes / rates.eager_share(family)
        large = min(launched, LARGE)
        kernels = max(large * sheet.launch_us, moved / rates.copy_gbps(sheet) / 1e3) + (launched - large) * sheet.launch_us
        total += kernels - sheet.launch_us
    return loop.steps[0] * total


def _one_channel_us(graph: OperatorGraph, node: Node, sheet: HardwareSheet) -> float:
    """Time of cuDNN's convolution of one channel into one, whose channels are filled up all the same; 0 of others.

    Two of 9 elements each took 17.9 ms for 44.7 million results each, modelled 12.2 (an H100, 2026-11-26; image/unsharp_mask of the wild
    suite).
    """
    weight, out = graph.meta(node.args[1]).written, node.outputs[0]
    if "transpose" in node.op or weight[:2] != (1, 1):
        return 0.0
    asked = DenseConvolution(positions=out.numel, groups=1, results=1, inputs=1, taps=math.prod(weight[2:]), transposed=False)
    return _convolution_us(asked, sheet.fp32_tflops)


def _complex_product_us(graph: OperatorGraph, node: Node, sheet: HardwareSheet) -> float:
    """Time of a product of complex numbers, which takes no tensor cores: four products of real ones; 0 of others.

    4096 by 512 by 512 took about 178 µs, modelled 3 by its launch (an H100, 2026-11-27; layers/complex_layer of the suite of strangers,
    less its other kernels).
    """
    out = node.outputs[0]
    if out.dtype != "complex64" or node.op == "einsum" or len(node.refs) < 2:
        return 0.0
    summed = graph.meta(node.refs[0]).written[-1]
    return 8.0 * out.numel * summed / (sheet.fp32_tflops * COMPLEX_SHARE) / 1e6


def _moved(graph: OperatorGraph, node: Node) -> int:
    """Bytes that a call reads and writes; of what it gathers from, it reads as much as it writes."""
    metas = [*node.outputs, *(node.outputs if node.op in GATHERS else (graph.meta(ref) for ref in node.refs))]
    return sum(meta.numel * ITEM_BYTES[meta.dtype] for meta in metas if meta.dtype in ITEM_BYTES)


def on_tensor_cores(sheet: HardwareSheet, policy: PrecisionPolicy, dtype: str) -> bool:
    """Whether the library's convolutions run on tensor cores: of halves, and of float32 where it may take TF32."""
    if dtype == "float32":
        return policy.precision.cudnn_tf32 and sheet.tf32_tflops is not None
    return dtype in ("float16", "bfloat16") and peak_tflops(sheet, policy.name, dtype) > sheet.fp32_tflops


def convolves_on_tensor_cores(graph: OperatorGraph, sheet: HardwareSheet, policy: PrecisionPolicy) -> bool:
    """Whether all convolutions of a graph do."""
    dtypes = {node.outputs[0].dtype for node in graph.nodes if node.op in CONVOLUTIONS}
    return bool(dtypes) and all(on_tensor_cores(sheet, policy, dtype) for dtype in dtypes)


def tensor_core_convolution_us(planned: Planned, sheet: HardwareSheet, policy: PrecisionPolicy, call: Call) -> float:
    """Time of cuDNN's convolution with TF32, microseconds; the channels of few inputs are filled up.

    Halves are taken to reach the same shares of their own rate: an assumption. One of 128 channels with a kernel of 3x3 took about 196 µs
    with its channels first, modelled 202 (an H100, 2026-11-25; convolutions/convolution_norm_silu of the wild suite).
    """
    products, kernel = planned.template.products(planned.kernel), planned.kernel
    asked, volume = products.convolution, kernel.convolution is not None and len(kernel.convolution.size) > 2
    inputs = asked.inputs if asked else products.summed
    filled = -(-inputs // rates.TF32_FILLED) * rates.TF32_FILLED
    deep = max(filled, 2 * rates.TF32_FILLED)
    share = rates.TF32_SHARE * deep / (deep + rates.TF32_HALF_INPUTS)
    if volume and kernel.convolution and kernel.convolution.transposed and max(kernel.convolution.stride) == 1:
        share *= rates.TF32_TRANSPOSED_VOLUME
    if volume and asked and not asked.transposed:
        share *= min(1.0, asked.results / rates.TF32_NARROW_VOLUME) ** 0.5
    if asked and not volume and not asked.transposed:
        share *= asked.results / (-(-asked.results // FILLED_RESULTS) * FILLED_RESULTS)
    rate = sheet.tf32_tflops if products.dtype == "float32" else peak_tflops(sheet, policy.name, products.dtype)
    tflops = float(rate or sheet.fp32_tflops) * share * _busy(asked, sheet)
    computing = products.flops * filled / inputs / tflops / 1e6
    moved = _passed_us(kernel, sheet)
    few = _few_inputs_us(asked, kernel, sheet) if asked and call.channels_last and products.dtype == "float32" else 0.0
    time = max(few, max(computing, moved) + rates.TF32_BESIDE * min(computing, moved) + rates.TF32_CALL_US)
    if asked and not call.channels_last:
        time += (rates.TF32_TURNED_VOLUME if volume else rates.TF32_TURNED) * moved + rates.TF32_CALL_US
    if call.biased:
        result = sum(output.meta.numel * ITEM_BYTES[output.meta.dtype] for output in kernel.outputs)
        time += 2 * result / (rates.copy_gbps(sheet) * rates.BIAS_SHARE) / 1e3
    return float(max(sheet.launch_us, time))


def _few_inputs_us(asked: DenseConvolution, kernel: Kernel, sheet: HardwareSheet) -> float:
    """Time of a TF32 convolution of few channels that lie last, and of filling them up first; 0 where there are more."""
    if asked.inputs >= FEW_INPUTS or kernel.convolution is None:
        return 0.0
    results = asked.positions * asked.groups * -(-asked.results // FILLED_RESULTS) * FILLED_RESULTS
    image = kernel.builder.loads[kernel.convolution.source].meta
    filling = 2 * image.numel * ITEM_BYTES[image.dtype] / rates.copy_gbps(sheet) / 1e3
    return filling + results / sheet.sms / RESULTS_PER_CLOCK / sheet.clock_mhz


def _busy(asked: DenseConvolution | None, sheet: HardwareSheet) -> float:
    """Share of the multiprocessors that tiles of 128 by 128 results keep busy; cuDNN shares out the sums of few."""
    if asked is None:
        return 1.0
    tiles = -(-asked.positions // 128) * -(-asked.results // 128) * asked.groups
    return min(1.0, max(rates.TF32_LEAST_BUSY, tiles / sheet.sms))


def _passed_us(kernel: Kernel, sheet: HardwareSheet) -> float:
    """Time of moving all that a region reads and writes once."""
    metas = [*(load.meta for load in kernel.builder.loads), *(output.meta for output in kernel.outputs)]
    return sum(meta.numel * ITEM_BYTES[meta.dtype] for meta in metas) / rates.copy_gbps(sheet) / 1e3


def _convolution_us(asked: DenseConvolution, tflops: float) -> float:
    """Time of cuDNN's float32 products of a convolution, microseconds, on cores with a peak of so many TFLOP/s."""
    results, inputs = (-(-count // whole) * whole for count, whole in zip((asked.results, asked.inputs), FILLED, strict=True))
    share = TRANSPOSED_SHARE if asked.transposed else CONVOLUTION_SHARE
    return 2.0 * asked.positions * asked.groups * results * inputs * asked.taps / (tflops * share) / 1e6
