"""Tensors without contents, on a device that need not be there."""

from __future__ import annotations

import torch

from tools.evaluation.untrusted import fake_device


def test_a_module_converts_itself() -> None:
    """A constructor that says `self.half()`, or sends its parts elsewhere, is followed: parameters and buffers have their new type."""
    with torch.no_grad(), fake_device.fake_device(), fake_device.on_device("cpu"):
        model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.GRU(6, 5)).half()
        model.to(torch.bfloat16).cuda()
        fake_device.move(model, "cpu")
        kinds = {value.dtype for value in model.state_dict().values() if value.is_floating_point()}
        result = model[:2].eval()(torch.empty(3, 4, dtype=torch.bfloat16))
    assert kinds == {torch.bfloat16}
    assert (result.dtype, tuple(result.shape)) == (torch.bfloat16, (3, 6))
