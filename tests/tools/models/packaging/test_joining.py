"""Packages for several devices in one: the kernels of the nearest device are put in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.tools.models.packaging.test_package import CONTRACT, KERNEL, Pair, X, imported_from
from tools.errors import UserError
from tools.models.capturing.capture import capture
from tools.models.loading import Workload
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.joining import join
from tools.models.packaging.package import write_package
from tools.models.runtime.nearest import nearest

DEVICES = {
    "h100": ("NVIDIA H100 80GB HBM3", (9, 0), 132),
    "l40s": ("NVIDIA L40S", (8, 9), 142),
    "a100": ("NVIDIA A100-SXM4-80GB", (8, 0), 108),
}


@pytest.mark.parametrize(
    ("here", "found"),
    [
        (("NVIDIA L40S", (8, 9), 142), "l40s"),
        (("NVIDIA H200", (9, 0), 132), "h100"),
        (("NVIDIA GeForce RTX 4090", (8, 9), 128), "l40s"),
        (("NVIDIA A10", (8, 6), 72), "l40s"),
        (("NVIDIA A30", (8, 0), 56), "a100"),
        (("NVIDIA B200", (10, 0), 148), "h100"),
        (None, "h100"),
    ],
)
def test_an_unknown_device_gets_the_kernels_of_the_one_most_like_it(here: Any, found: str) -> None:
    """Of its generation, then by compute capability, then by multiprocessors; without a GPU the first are interpreted."""
    assert nearest(DEVICES, here) == found


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels as if they could run on the CPU, of a torch as if it were built for CUDA."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(torch.version, "cuda", "12.8")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two packages of one model; the second one's kernel gives twice as much, to be told from the other's."""
    folder = tmp_path_factory.mktemp("joined")
    found = capture(Pair().eval(), [Workload("rows", (torch.randn(6, 16),), {}, 1.0)])
    [norm] = [group for group in found.groups if group.title == "Norm"]
    assert norm.trace is not None
    one = Delivered(group=norm, trace=norm.trace, contract=CONTRACT, kernel=KERNEL, evidence=None)
    made = {
        "on_h100": (one, "NVIDIA H100 80GB HBM3"),
        "on_l40s": (replace(one, kernel=KERNEL.replace("return x", "return 2 * x")), "NVIDIA L40S"),
    }
    for name, (kernel, device) in made.items():
        write_package(folder / name, "Pair", "A test.", [kernel], {"made_for": device})
        (folder / name / "report.json").write_text(json.dumps({"target": device, "capture": {"title": "Pair"}}))
    return [folder / name for name in made]


@pytest.fixture(scope="module")
def joined(packages: list[Path]) -> Any:
    """Both in one, imported."""
    join(packages, packages[0].parent / "joined_package")
    return imported_from(packages[0].parent / "joined_package")


@pytest.fixture
def model() -> nn.Module:
    """A model whose norms have been captured."""
    return Pair().eval().requires_grad_(False)


def test_operators_of_the_chosen_device_are_put_in_and_taken_out(joined: Any, model: nn.Module) -> None:
    """One model has those of one device at a time; another may be named."""
    before = model(X)
    assert joined.chosen() == "nvidia_h100_80gb_hbm3"
    assert joined.apply(model, verify=False) == ["first", "last"]
    assert torch.allclose(model(X), before)
    assert joined.apply(model, verify=False, device="nvidia_l40s") == ["first", "last"]
    assert not torch.allclose(model(X), before)
    assert joined.counts(reset=True) == {"hits": {"norm": 4}, "misses": {}}
    assert joined.remove(model) == ["first", "last"]
    assert torch.equal(model(X), before)


def test_a_first_call_that_is_verified_goes_back_to_the_original(joined: Any, model: nn.Module) -> None:
    """Kernels of another device are held to it, and one that is wrong here is not used."""
    before = model(X)
    joined.apply(model, verify=True, device="nvidia_l40s")
    with pytest.warns(UserWarning, match="differs from the original"):
        assert torch.equal(model(X), before)
    joined.remove(model)


def test_it_has_the_layout_of_the_hugging_face_library(joined: Any, packages: list[Path]) -> None:
    """One build with all devices, whose layers are those of the nearest."""
    kernels = pytest.importorskip("kernels")
    found = kernels.get_local_kernel(packages[0].parent / "joined_package")
    assert found.chosen() == joined.chosen()
    assert isinstance(found.layers.Norm, type)


@pytest.mark.parametrize(
    ("names", "said"), [(["on_h100"], "two or more"), (["on_h100", "on_h100"], "both for NVIDIA H100"), (["on_h100", "."], "is no package")]
)
def test_what_cannot_be_joined_is_refused(packages: list[Path], tmp_path: Path, names: list[str], said: str) -> None:
    """One package, two for one device, and a folder that is none."""
    with pytest.raises(UserError) as caught:
        join([packages[0].parent / name for name in names], tmp_path / "out")
    assert said in f"{caught.value.what} {caught.value.mend}"
