"""A delivered package as the Hugging Face library kernels loads it, with that library itself and without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kernels
import pytest
import torch
from torch import nn

from tests.tools.models.packaging.test_package import CONTRACT, KERNEL, Pair
from tests.tools.models.samples import Norm
from tools.models.capturing.capture import capture
from tools.models.loading import Workload
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.hub import VARIANT, kernel_name
from tools.models.packaging.package import write_operators, write_package

X = torch.linspace(-1.0, 1.0, 96).view(6, 16)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with one operator, in a folder."""
    found = capture(Pair().eval(), [Workload("rows", (X,), {}, 1.0)])
    [norm] = [group for group in found.groups if group.title == "Norm"]
    assert norm.trace is not None
    folder = tmp_path_factory.mktemp("hub") / "faster_pair"
    write_package(folder, "Pair", "", [Delivered(group=norm, trace=norm.trace, contract=CONTRACT, kernel=KERNEL, evidence=None)], {})
    return folder


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, and kernels as if they could run on the CPU, of a torch as if it were built for CUDA."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a network was asked"))
    monkeypatch.setattr(torch.version, "cuda", "12.8")


@pytest.fixture
def extensible() -> Iterator[None]:
    """Norms that `kernelize` may give another forward."""
    kernels.replace_kernel_forward_from_hub(Norm, "Norm")
    yield
    for name in ("kernel_layer_name", "kernel_condition"):
        delattr(Norm, name)


@pytest.mark.usefixtures("offline")
def test_the_library_finds_the_build_and_loads_it(package: Path) -> None:
    """`get_local_kernel` on the package's folder gives a module with `apply` and layers."""
    loaded = kernels.get_local_kernel(package)
    assert loaded.__name__.startswith("_faster_pair_cuda_")
    model = Pair().eval().requires_grad_(False)
    expected = model(X)
    assert loaded.apply(model) == ["first", "last"]
    assert torch.allclose(model(X), expected)
    assert loaded.counts(reset=True)["hits"] == {"norm": 2}


def kernelized(package: Path, model: nn.Module) -> Any:
    """Have the library give a model the layers of the package; return the module that it loaded."""
    repository = kernels.LocalLayerRepository(package, layer_name="Norm")
    with kernels.use_kernel_mapping({"Norm": {"cpu": repository}}, inherit_mapping=False):
        kernels.kernelize(model, mode=kernels.Mode.INFERENCE, device="cpu", use_fallback=False)
    loaded = kernels.get_local_kernel(package)
    loaded.counts(reset=True)
    return loaded


@pytest.mark.usefixtures("offline", "extensible")
def test_kernelize_takes_the_layers(package: Path) -> None:
    """Modules of the class answer by the operator, twice over, and a call of another shape goes to the original."""
    model = Pair().eval().requires_grad_(False)
    expected, other = model(X), model(X.repeat(4, 1))
    loaded = kernelized(package, model)
    assert torch.allclose(model(X), expected)
    assert torch.allclose(model(X), expected)
    assert torch.equal(model(X.repeat(4, 1)), other)
    assert loaded.counts() == {"hits": {"norm": 4}, "misses": {"Norm: other shapes, dtypes or strides": 2}}


@pytest.mark.usefixtures("offline", "extensible")
def test_a_layer_leaves_modules_of_another_configuration_to_their_own_forward(package: Path) -> None:
    """The class is the same, its eps is not."""
    model = nn.Sequential(Norm(eps=0.5)).eval().requires_grad_(False)
    expected = model(X)
    loaded = kernelized(package, model)
    assert torch.equal(model(X), expected)
    assert loaded.counts() == {"hits": {}, "misses": {"Norm: not a module that the kernels were made for": 1}}


@pytest.mark.usefixtures("offline", "extensible")
def test_training_keeps_the_originals(package: Path) -> None:
    """The layers say that they have no backward pass, and the library refuses them for training."""
    repository = kernels.LocalLayerRepository(package, layer_name="Norm")
    model = Pair()
    with kernels.use_kernel_mapping({"Norm": {"cpu": repository}}, inherit_mapping=False):
        kernels.kernelize(model, mode=kernels.Mode.TRAINING, device="cpu")
    loaded = kernels.get_local_kernel(package)
    loaded.counts(reset=True)
    model(X)
    assert loaded.counts() == {"hits": {}, "misses": {}}


def test_metadata_have_the_keys_that_the_library_requires(package: Path) -> None:
    """Identifier, name with dashes, version, licence, dependencies and backend."""
    found = json.loads((package / VARIANT / "metadata.json").read_text())
    assert set(found) == {"id", "name", "version", "license", "python-depends", "backend"}
    assert found["name"] == "faster-pair"
    assert found["backend"] == {"type": "cuda"}


@pytest.mark.parametrize(
    ("folder", "name"),
    [("faster_Decoder", "faster-decoder"), ("_x_", "kernels-x"), ("q", "kernels-q"), ("v2", "v2"), ("ü", "kernels-here")],
)
def test_any_folder_has_a_name_that_the_library_takes(folder: str, name: str) -> None:
    """Small letters, digits and dashes, at least two, a letter first."""
    assert kernel_name(folder) == name


def test_without_an_operator_there_is_no_build(package: Path, tmp_path: Path) -> None:
    """An empty package has nothing to load."""
    write_package(tmp_path / "empty", "Pair", "", [], {})
    write_operators(tmp_path / "empty", [])
    assert not (tmp_path / "empty" / "build").exists()
