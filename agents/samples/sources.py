"""The sample case's sources: its reference, a kernel in Triton, and one in CUDA C++."""

REFERENCE = """import torch

ROWS, COLUMNS = 4096, 1024


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
"""

KERNEL = '''import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK_N: tl.constexpr):
    """y[row] = softmax(2 x[row])."""
    row = tl.program_id(0)
    off_n = tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * columns + off_n, mask=off_n < columns, other=-float("inf")) * 2
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * columns + off_n, e / tl.sum(e, 0), mask=off_n < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK_N=triton.next_power_of_2(x.shape[1]))
        return y
'''

CUDA_KERNEL = '''import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>

__device__ float twice(float x) { return 2.0f * x; }

// out[row] = softmax(2 x[row])
__global__ void __launch_bounds__(256) softmax_kernel(const float* __restrict__ x, float* __restrict__ out, int columns) {
    // one thread a row
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int at = 0; at < columns; ++at) sum += expf(twice(x[at]));
        for (int at = 0; at < columns; ++at) out[at] = expf(twice(x[at])) / sum;
    }
}

void launch_softmax(const float* x, float* out, int rows, int columns, cudaStream_t stream) {
    softmax_kernel<<<rows, 256, 0, stream>>>(x, out, columns);
}
"""

CPP = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

void launch_softmax(const float* x, float* out, int rows, int columns, cudaStream_t stream);

void softmax(torch::Tensor x, torch::Tensor out) {
    launch_softmax(x.data_ptr<float>(), out.data_ptr<float>(), x.size(0), x.size(1), c10::cuda::getCurrentCUDAStream());
}
"""

extension = load_inline(name="softmax", cpp_sources=CPP, cuda_sources=CUDA, functions=["softmax"], no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        extension.softmax(x, out)
        return out
'''
