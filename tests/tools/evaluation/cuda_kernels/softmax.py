"""softmax(2 x) of each row, CUDA C++: one block a row, three passes over it, the second and third out of the cache."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>

template <bool MAXIMUM>
__device__ float of_block(float value, float* shared) {
    for (int lane = 16; lane > 0; lane >>= 1) {
        float other = __shfl_xor_sync(0xffffffff, value, lane);
        value = MAXIMUM ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp) value = MAXIMUM ? fmaxf(value, shared[warp]) : value + shared[warp];
    __syncthreads();
    return value;
}

__global__ void softmax_kernel(const float* __restrict__ x, float* __restrict__ out, int columns) {
    __shared__ float shared[32];
    x += (long long)blockIdx.x * columns;
    out += (long long)blockIdx.x * columns;
    float most = -INFINITY;
    for (int at = threadIdx.x; at < columns; at += blockDim.x) most = fmaxf(most, 2.0f * x[at]);
    most = of_block<true>(most, shared);
    float sum = 0.0f;
    for (int at = threadIdx.x; at < columns; at += blockDim.x) sum += expf(2.0f * x[at] - most);
    sum = of_block<false>(sum, shared);
    for (int at = threadIdx.x; at < columns; at += blockDim.x) out[at] = expf(2.0f * x[at] - most) / sum;
}

void launch_softmax(const float* x, float* out, int rows, int columns, cudaStream_t stream) {
    if (rows > 0) softmax_kernel<<<rows, 256, 0, stream>>>(x, out, columns);
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

extension = load_inline(
    name="row_softmax",
    cpp_sources=CPP,
    cuda_sources=CUDA,
    functions=["softmax"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        extension.softmax(x, out)
        return out
