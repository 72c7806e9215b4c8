"""A library in the CUDA driver's place, compiled from CUDA's own header: it writes down what it is given, and can write to memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import triton

HEADERS = Path(triton.__file__).parent / "backends" / "nvidia" / "include"
LIBRARY = r"""
#include <cuda.h>
#include <stdio.h>
#include <string.h>
static char said[4096];
int works;
const char *what_was_said(void) { return said; }
static int modules;
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  *module = (CUmodule)image;
  sprintf(said, "module %d", ++modules);
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  if (strcmp(name, "kernel")) return CUDA_ERROR_NOT_FOUND;
  *function = (CUfunction)module;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) { return CUDA_SUCCESS; }
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  sprintf(said, "attribute %d %d", attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value);
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  if (index >= 2) return CUDA_ERROR_INVALID_VALUE;
  *offset = 8 * index;
  *size = index ? 4 : 8;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char **name) { *name = "CUDA_ERROR_NOT_FOUND"; return CUDA_SUCCESS; }
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **parameters, void **extra) {
  int end = sprintf(said, "grid %u %u %u block %u %u %u shared %u stream %p parameters %llx %d", c->gridDimX, c->gridDimY, c->gridDimZ,
    c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, (void *)c->hStream,
    *(unsigned long long *)parameters[0], *(int *)parameters[1]);
  // a kernel that writes its second argument to where its first points
  if (works) **(int **)parameters[0] = *(int *)parameters[1];
  for (unsigned i = 0; i < c->numAttrs; i++) {
    CUlaunchAttribute a = c->attrs[i];
    if (a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      end += sprintf(said + end, " cluster %u %u %u", a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z);
    else if (a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
      end += sprintf(said + end, " spread %d", a.value.clusterSchedulingPolicyPreference == CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
    else if (a.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      end += sprintf(said + end, " cooperative %d", a.value.cooperative);
    else if (a.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      end += sprintf(said + end, " overlapping %d", a.value.programmaticStreamSerializationAllowed);
  }
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
    const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if ((unsigned long long)map % 64) return CUDA_ERROR_INVALID_VALUE;
  int end = sprintf(said, "map float32 %d rank %u at %p sizes", type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, address);
  for (unsigned i = 0; i < rank; i++) end += sprintf(said + end, " %llu", (unsigned long long)sizes[i]);
  end += sprintf(said + end, " strides");
  for (unsigned i = 0; i + 1 < rank; i++) end += sprintf(said + end, " %llu", (unsigned long long)strides[i]);
  end += sprintf(said + end, " box");
  for (unsigned i = 0; i < rank; i++) end += sprintf(said + end, " %u/%u", box[i], steps[i]);
  sprintf(said + end, " plain %d swizzled %d promoted %d nan %d", interleave == CU_TENSOR_MAP_INTERLEAVE_NONE,
    swizzle == CU_TENSOR_MAP_SWIZZLE_128B, promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  memset(map, 0x5A, sizeof *map);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream stream) {
  sprintf(said, "d8 %llx %x %zu", at, value, count);
  if (works) memset((void *)at, value, count);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t count, CUstream stream) {
  sprintf(said, "d16 %llx %x %zu", at, value, count); return CUDA_SUCCESS;
}
CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t count, CUstream stream) {
  sprintf(said, "d32 %llx %x %zu", at, value, count);
  for (size_t i = 0; works && i < count; i++) ((unsigned *)at)[i] = value;
  return CUDA_SUCCESS;
}
"""


def compile_library(folder: Path) -> Path:
    """Compile it in `folder`."""
    (folder / "driver.c").write_text(LIBRARY)
    made = folder / "libstandin.so"
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{HEADERS}", str(folder / "driver.c"), "-o", str(made)], check=True)
    return made
