"""The constants of the time model, each with its source; one without a source is called an assumption.

"Measured on an H200" means: one NVIDIA H200 SXM, driver 580.159.04, torch 2.11, triton 3.6, 2026-11-20, CUDA events with
the L2 cleared, eager times of KernelBench v0.2 level 1 against bytes read and written once at the copy rate of 4.3 TB/s.
"""

from __future__ import annotations

from tools.problems.families import family_of
from tools.records import HardwareSheet, OperatorFamily

COPY_SHARE = 0.896
"""Share of the datasheet's bandwidth that a device-to-device copy reaches: 4.3 of 4.8 TB/s measured on an H200; taken for
devices whose sheet has no measured copy (an assumption there)."""

LATENCY_US = 0.6
"""Time from a load's issue to its data under load, the L of Little's law. An assumption: pointer chases on an idle device find
less than 0.3 µs (479 cycles on an H100, arXiv 2402.13499), and queues lengthen it when the memory is busy."""

SM_BYTES_PER_CLOCK = 64
"""Bytes one multiprocessor takes from the L2 in a clock (arXiv 1804.06826, microbenchmarks of Volta; assumed unchanged since)."""

L2_BYTES_PER_CLOCK = 5120
"""Peak L2 read rate of the whole device (NVIDIA A100 whitepaper v1.0, L2 cache; assumed for the other devices)."""

L2_SHARE = 0.7
"""Share of that peak which kernels reach; an assumption."""

L2_RESIDENT = 0.5
"""Part of the L2 that still holds an intermediate when the next kernel reads it, the rest being overwritten; an assumption."""

ISSUES_PER_CLOCK = 4
"""Warp instructions a multiprocessor starts in a clock: one for each of its four schedulers (CUDA Programming Guide, compute
capability 8.x and 9.0, architecture). AMD compute units have four SIMDs; the same is assumed there."""

WIDTH_SHARE = {32: 1.0, 16: 1.0, 8: 0.97, 4: 0.93, 2: 0.80, 1: 0.60}
"""Share of the bandwidth that streaming reaches by the widest global access of a thread, in bytes; an assumption in its figures,
its direction is in NVIDIA's developer blog on vectorised memory access."""

LIBRARY_MATMUL_SHARE = 0.75
"""Share of the peak rate that a library's matrix product reaches: 0.75 measured on an H200 (geometric mean of six level 1
products of 4096³ size, fp32 and TF32 alike; bf16 8192³ 0.79)."""

LIBRARY_CONVOLUTION_SHARE = 0.27
"""The same for convolutions on tensor cores: measured on an H200 (geometric mean of ten dense 1-D and 2-D convolutions of level 1, NCHW,
cuDNN with TF32); 3-D and transposed ones were slower still."""

TF32_SHARE, TF32_HALF_INPUTS, TF32_FILLED = 0.85, 40, 8
"""cuDNN's convolutions with TF32 and channels last: share of the peak rate with very many input channels, the channels with which it is
half of that, and the multiple to which they are filled up. Fitted with the next eight on 25 convolutions, measured on an H200 (2026-11-23,
torch 2.11, medians, cold L2): 3 to 512 channels, kernels of 1 to 121 elements, four of them 3-D, five transposed."""

TF32_BESIDE, TF32_CALL_US, TF32_LEAST_BUSY = 0.3, 8.0, 0.3
"""What of the shorter of computing and moving is left beside the longer; start and end of a call; share of the device's rate that few tiles
still reach."""

TF32_TURNED, TF32_TURNED_VOLUME = 2.2, 4.0
"""With channels first cuDNN turns input and result: so many times what moving all tensors takes, and for 3-D ones."""

TF32_TRANSPOSED_VOLUME = 0.25
"""The rate of transposed 3-D convolutions with a stride of 1 over that of others; level 1: 61 has 28 TFLOP/s."""

TF32_NARROW_VOLUME = 128
"""Channels of the result below which such 3-D convolutions lose rate, by the root of what is missing: 49 GFLOP of 32 reached 111 TFLOP/s,
as many of 64 reached 193, and 24 of 128 about 295, channels last (an H100, 2026-11-26, torch 2.11)."""

BIAS_SHARE = 0.64
"""Share of the copy rate of the pass in which PyTorch adds a bias after cuDNN; in cuDNN's fused call bias and relu take nothing."""

LIBRARY_CONVOLUTION_SHARE_FP32 = 0.5
"""The same without tensor cores; an assumption."""

TRITON_TENSOR_SHARE = 0.46
"""The same for a Triton kernel on tensor cores: measured on an H200, 4096³, untuned pointer-based kernels (fp16x3 0.45, bf16x3
0.48, rounded tf32 0.46)."""

TRITON_FMA_SHARE = 0.5
"""The same for a Triton kernel on the ordinary cores (`tl.dot` with input_precision ieee, or sums of products); an assumption."""

SPLIT_PRODUCTS = 3
"""Tensor-core products behind one float32 product that meets the exact policy (tf32x3, fp16x3)."""

KERNEL_US = 1.5
"""Fill and drain of one kernel on the device; an assumption."""

RECURRENT_STEP_US = 9.0
"""One step of one layer and direction of cuDNN's LSTM: six layers of 256 units with 10 sequences of 512 steps took 27.7 ms (an H100,
2026-11-26, torch 2.11)."""

HOST_US = 20.0
"""Host time of one of PyTorch's operators, called from Python: 17 to 24 µs measured for seven networks of KernelBench's level 3 on the
host of an H200 whose cores did nothing else (2026-11-21, Python 3.12, torch 2.11; host time of an eager forward over its operators)."""

GENERATED_HOST_US = 35.0
"""The same of one launch of a Triton kernel, its host function included: 32 to 38 µs measured there (triton 3.6), six generated forwards of
73 to 377 kernels."""

HEAD_START_US = 1000.0
"""Host time that a timed call does not show: the evaluator lets the device spin for about as long while the host issues launches
(`tools.evaluation.wire.lead_in`). By CUDA events six generated forwards took 440 to 1210 µs less than the host took (as above)."""

CALL_US = 1.3
"""What CUDA events read beyond the launch interval when one small kernel is timed: 4.3 µs measured on an H200, less the sheet's
3.0 µs launch interval."""

FLOAT_FRACTION = 0.5
"""A kernel without tensor instructions may be a product where this part of its static instructions is floating point; an assumption.
A float32 `tl.dot` on sm_90 compiles to 0.76, but a row softmax to 0.65: it is asked only where nothing else explains the products."""

EAGER_SHARE = {
    OperatorFamily.POINTWISE: 0.98,
    OperatorFamily.REDUCTION: 0.80,
    OperatorFamily.SOFTMAX: 0.49,
    OperatorFamily.NORMALISATION: 0.30,
    OperatorFamily.POOLING: 0.22,
    OperatorFamily.SCAN: 0.44,
    OperatorFamily.LOSS: 0.30,
    OperatorFamily.MATMUL: 0.87,
    OperatorFamily.CONVOLUTION: 0.23,
}
"""Share of the copy rate that PyTorch's own kernels reach, by family: measured on an H200, geometric means over level 1's
problems of one ATen operator (10 pointwise, 6 reductions, 2 softmax, 2 normalisations, 6 pooling, 2 scans, cross entropy, a
matrix-vector product, and four depthwise and one 1x1 convolution, of which the depthwise ones reached 0.16)."""

EAGER_SHARE_OTHER = 0.8
"""The same for families without a measurement; an assumption."""

PRODUCTS = frozenset({OperatorFamily.MATMUL, OperatorFamily.CONVOLUTION, OperatorFamily.ATTENTION, OperatorFamily.RECURRENT})
"""Families whose work is counted in `Work.matmul_flops`."""


CUDNN = frozenset({OperatorFamily.CONVOLUTION, OperatorFamily.RECURRENT})
"""Families that PyTorch gives to cuDNN, whose flag for TF32 is another than that of matrix products."""


def operator_family(name: str) -> OperatorFamily:
    """Name the family of an ATen operator as launches and `Work.operators` write it: `aten.softmax.int`, `aten::mm`, `softmax`."""
    return family_of(name.replace("::", ".").removeprefix("aten.").split(".")[0])


def eager_share(family: OperatorFamily) -> float:
    """Share of the copy rate that PyTorch's own kernel of `family` reaches."""
    return EAGER_SHARE.get(family, EAGER_SHARE_OTHER)


def library_share(family: OperatorFamily | None, tensor_cores: bool) -> float:
    """Share of the peak rate that a library's products of `family` reach."""
    if family is not OperatorFamily.CONVOLUTION:
        return LIBRARY_MATMUL_SHARE
    return LIBRARY_CONVOLUTION_SHARE if tensor_cores else LIBRARY_CONVOLUTION_SHARE_FP32


def copy_gbps(sheet: HardwareSheet) -> float:
    """Bandwidth that a copy reaches on `sheet`, 1e9 bytes a second: measured where the sheet says so, else `COPY_SHARE` of the peak."""
    return sheet.copy_gbps if sheet.copy_gbps is not None else COPY_SHARE * sheet.memory_gbps


def l2_gbps(sheet: HardwareSheet) -> float:
    """Bandwidth of the L2 that kernels reach; never below the memory's own."""
    return max(L2_SHARE * L2_BYTES_PER_CLOCK * sheet.clock_mhz / 1e3, copy_gbps(sheet))


PROGRAMS_PER_CLOCK = 0.82
"""Programs that the device starts in a clock. Fitted on gelu_bias of the H200 landscape: 128 elements a program take 216 µs
however many warps share them, 256 take 111 µs."""

ALONE = 0.35
"""Part by which a multiprocessor that holds one program at a time loses bandwidth; falls with the number it holds. Fitted on the same."""

TILE_FMA_SHARE = 0.17
"""Share of the fp32 rate that `tl.dot` with input_precision ieee reaches. Fitted on attention of the H200 landscape (6,500 µs)."""

ATTENTION_SHARE = 0.65
"""What of the rate of products is left in an attention, whose products wait for its softmax. Fitted on attention's sweep (1,820 µs)."""

PROGRAM_US = 0.8
"""Start and end of one program: its first loads' addresses, its last reduction and store; an assumption."""

PROGRAM_WORK = 30.0
"""Instructions of each lane of a program besides those of its elements; an assumption."""

BARRIER_US = 0.06
"""A barrier of a program's warps with what they pass through shared memory: about 100 cycles at 1.7 GHz; an assumption."""

L1_TAGS_PER_CLOCK = 4
"""Lines of the L1 that a warp's load finds in a clock. Measured on an H100 (2026-11-26): 32 lanes in as many lines take 9 clocks where no
two of them share a bank."""

CHAINED_CLOCKS = 4.0
"""Clocks from an instruction to the one that needs its result. Measured on an H100 (2026-11-26): a warp by itself takes 4 for a
multiplication and addition, and as long for two or four that do not wait for one another."""

FEWEST_CLOCKS = 2.5
"""Clocks of a warp by itself for an instruction, at least, in kernels with loads, branches and special functions. A fit, not a measurement:
of 1, 2 and 3 the last two told the times of 62 operators best (first choices on an H100, 2026-11-26), and this lies between them."""

STEP_US = 0.1
"""What a warp waits in each step of a loop that loads what is in the L1 or L2: an assumption, of 0, 0.05 and 0.1. On an H100 (2026-11-26)
a round trip takes 40 clocks to the L1, and 300 to 650 to the L2."""

TURNED_SHARE = 0.27
"""Share of the copy rate at which PyTorch copies a turned tensor: of halves about 700 µs for 268 MB, twice in one call (an H100,
2026-11-25; decode/paged_decode of the wild suite, less its other kernels). What came turned to a depthwise convolution took about 25 µs for
8.4 MB (an H100, 2026-11-27), 22 by this."""

POOLING_L1_BYTES = 30e3
"""Input under one program's tile from which on neighbouring windows find nothing of one another in the L1. Fitted on the sweep of
max_pool2d (benchmarks/kernels/sweeps, H200): times grow with the tile from 8 KB on and no longer beyond 30 KB."""

VEC4_SHARE = 0.85
"""Share of the copy's rate that is left to a pooling of four neighbours a thread, beside what else is counted of it. Fitted on a prototype
written by hand on an H200: a maximum of 8 elements with a dilation of 3 (1859 µs, 1500 at the copy's rate) and a mean of 8 (1272, 990). One
loads twice as much from the L1 as the other and is held back as little. The rows of both results are of odd length, so that no store is
wide; whether that is the reason was not measured."""

L1_LINES_PER_CLOCK = 1
"""Lines of 128 bytes that a multiprocessor's L1 looks up in a clock for the loads and stores of its warps. Measured on an H200 on
two kernels whose lanes lay far apart, which took 0.86 and 0.98 of their lines' time (tools/codegen/templates/depthwise/launches.py)."""

ADDITIONS_PER_LINE_US = 500.0
"""Sectors of one line of the L2 that are added to in a microsecond. Measured on an H100 (2026-11-26, triton 3.6): 16.8 million additions
to 256 numbers at random, which are 8 lines, took 4,341 µs; to 8, 32, 128, 512 and 2048 copies of these 613, 300, 206, 159 and 157."""

OLD_TENSOR_SHARE = 0.6
"""Rate of Hopper's older tensor instructions (16 rows, one warp) over that of its asynchronous ones (64 rows, four warps):
about 63 % of the peak on average (arXiv 2402.13499), rounded."""
