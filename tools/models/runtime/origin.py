"""With which device and libraries a package's kernels were tried, and how this machine differs from that."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


def strange(tried: Sequence[tuple[str, str, str]], made_for: str, model: nn.Module) -> str:
    """Say what is new about this machine; empty where the kernels were tried on it, and on a CPU, where they are interpreted.

    `tried` has device, torch and triton; `made_for` is the device for which the numbers of the kernels were chosen.
    """
    device = next((value.device for value in model.parameters() if value.is_cuda), None)
    if device is None:
        return ""
    import triton

    here = (torch.cuda.get_device_name(device), torch.__version__, triton.__version__)
    if here in tried:
        return ""
    if here[0] not in {one[0] for one in tried}:
        known = " and ".join(dict.fromkeys(one[0] for one in tried))
        return (
            f"its kernels were made for {made_for}" + (f" and tried on {known}" if known else " and timed nowhere") + f", this is {here[0]}"
        )
    return f"its kernels were not tried with torch {here[1]} and triton {here[2]}"
