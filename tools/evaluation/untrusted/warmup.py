"""What zygotes do before they fork phases, so that none pays for it: imports, and one small kernel built and thrown away."""

from __future__ import annotations

import contextlib
import importlib
import os
from functools import cache
from types import SimpleNamespace
from typing import Any

from tools.evaluation.untrusted.audit import heard_in
from tools.evaluation.wire import kernel_cache
from tools.scratch import PREFIX, scratch

_LATE_MODULES = (
    "torch._subclasses.fake_tensor",
    "torch._meta_registrations",
    "torch._decomp",
    "torch._refs",
    "torch.fx.experimental.symbolic_shapes",
    "torch._higher_order_ops.triton_kernel_wrap",
    "torch.distributed.fsdp",
)
"""What torch imports at the first call under a dispatch mode: 2.5 s, in each builder."""
_COMPILER = "torch._dynamo"
"""What torch.compile imports first: its first call in a fork took 3.7 s on an H200 with it and 6.4 s without.

Builders need it, too: a call without contents imports it, and its tables by recurrent layers must be there before those are listened to.
No more of it may be imported here: after `torch._inductor.compile_fx` no fork could use CUDA.
"""


def warm_up() -> dict[str, str]:
    """Import and build what else phases need in this environment, and return the versions; starts no thread and no CUDA."""
    import torch
    import triton

    if os.environ.get("TRITON_INTERPRET"):
        # what every call needs is imported once, here: a sandbox cannot read it; and what listening to a call imports
        from tools.evaluation.untrusted.interpreter import libdevice, teaching

        del teaching
        libdevice.functions()
        importlib.import_module("triton.language.extra.cuda.libdevice")
        heard_in(lambda: torch.ones(2) + 1)
        # and what the first launch imports, to know the type of its first argument
        jit: Any = importlib.import_module("triton.runtime.jit")
        jit.mangle_type(torch.ones(1))
    else:
        _build_once()
        importlib.import_module(_COMPILER)
    host_modules()
    return {"triton": str(triton.__version__)}


def _build_once() -> None:
    """Build a kernel in a child's place: Triton asks ptxas its version and loads its languages only once a process."""
    import torch
    from triton.runtime import driver as driver_config
    from triton.runtime import jit

    from tools.evaluation.untrusted import fake_device, gpu_stand_in, triton_identity, warmup_kernel

    triton_identity.spare_hashing()
    # Triton ships no types
    driver: Any = driver_config
    mock: Any = jit.MockTensor
    kernel: Any = warmup_kernel.copy
    before = driver._active, driver._default
    with scratch(f"{PREFIX}warm-") as folder:
        os.environ["TRITON_CACHE_DIR"] = str(folder)
        try:
            driver.set_active(gpu_stand_in.DriverStandIn(_sheet()))
            pointer = mock(torch.float32)
            kernel.warmup(pointer, pointer, 64, BLOCK=64, grid=(1,))
        finally:
            os.environ.pop("TRITON_CACHE_DIR")
            driver._active, driver._default = before
    for module in _LATE_MODULES:
        importlib.import_module(module)
    if torch.version.cuda:
        # seen on an H200: where there is a driver, a mode of fake tensors starts it in this process, and no fork can use CUDA then
        return
    with fake_device.fake_device():
        value = torch.empty(4, 4, device=fake_device.fake_name())
        torch.softmax(value @ value + 1, -1)


@cache
def host_modules() -> str:
    """Have a child compile the C module by which Triton talks to the driver and pack its cache; empty without a GPU.

    Called before the first fork, so that every runner has it and none compiles it again.
    """
    if os.environ.get("TRITON_INTERPRET") or not os.environ.get("CUDA_VISIBLE_DEVICES"):
        return ""
    with scratch(f"{PREFIX}warm-") as folder:
        pid = os.fork()
        if pid == 0:
            try:
                os.environ["TRITON_CACHE_DIR"] = str(folder)
                # no compiler or no driver: then there is nothing to keep, and a runner says what is missing
                with contextlib.suppress(Exception):
                    importlib.import_module("triton.backends.nvidia.driver").CudaUtils()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        return kernel_cache.pack(folder)


@cache
def load_triton() -> Any:
    """Have Triton find the driver in this process, by the module that was compiled before the fork: the first launch does so otherwise."""
    from triton.runtime import driver

    # Triton ships no types
    config: Any = driver
    if (folder := kernel_cache.cache_folder()) is not None:
        kernel_cache.unpack(host_modules(), folder)
        return config.active
    return None


def start_triton() -> None:
    """Have it ask for the device as well."""
    if (driver := load_triton()) is not None:
        driver.get_current_device()


def _sheet() -> Any:
    """As much of a hardware sheet as a driver is asked for."""
    return SimpleNamespace(backend="cuda", arch="sm_90", warp_size=32)
