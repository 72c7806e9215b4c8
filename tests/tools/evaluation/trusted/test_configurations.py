"""What torch.compile chose by timing, written down by the process that ran it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tools.evaluation.trusted.baseline import chosen_configurations
from tools.evaluation.wire.configurations import kernel_signature, read_configurations, write_configurations

TEXT = "def triton_poi_fused_add_3(in_ptr0, XBLOCK: tl.constexpr):\n    tl.device_assert(True, 'in bounds')\n    pass\n"


def _kernel(launchers: int) -> Any:
    config = SimpleNamespace(kwargs={"XBLOCK": 512}, num_warps=8, num_stages=1)
    function = SimpleNamespace(src=TEXT, __name__="triton_poi_fused_add_3")
    return SimpleNamespace(fn=function, launchers=[SimpleNamespace(config=config)] * launchers)


def test_what_a_kernel_took_is_found_by_its_text(tmp_path: Path) -> None:
    """Under another name and without checks of indices it is the same kernel; one that was never launched has nothing."""
    modules = [SimpleNamespace(a=_kernel(1), b=3), SimpleNamespace(c=_kernel(2))]
    file = str(tmp_path / "chosen.json")
    write_configurations(file, chosen_configurations(modules))
    other = "@triton.jit\ndef add(in_ptr0, XBLOCK: tl.constexpr):\n    pass\n"
    assert read_configurations(file) == {kernel_signature(other, "add"): {"XBLOCK": 512, "num_warps": 8, "num_stages": 1}}


def test_no_file_says_nothing(tmp_path: Path) -> None:
    """Nothing is known where nothing was written, or something else."""
    assert read_configurations(str(tmp_path / "none.json")) == {}
    (tmp_path / "wrong.json").write_text("[1]")
    assert read_configurations(str(tmp_path / "wrong.json")) == {}
