"""What outlives the threads that trace, and what modules without contents can do."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

from tools.native import fake_tensors, lasting_guard, results_shared


def test_what_torch_ties_to_a_thread_is_tied_to_one_that_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for a missing device is made in a thread that is still there when the thread that asked for it has ended."""
    makers: list[threading.Thread] = []
    monkeypatch.setattr(torch._C, "_ensureCUDADeviceGuardSet", lambda: makers.append(threading.current_thread()))
    asking = threading.Thread(target=lasting_guard.__wrapped__)
    asking.start()
    asking.join()
    assert len(makers) == 1
    assert makers[0] is not asking
    assert makers[0].is_alive()
    assert makers[0].daemon


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")  # a copy of a tensor does, in torch itself
def test_a_module_without_contents_changes_its_dtype_as_any_other() -> None:
    """`self.half()` in a constructor works under the mode, for copied layers and tied weights too."""
    with fake_tensors():
        layer, tied = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        tied.weight = layer.weight
        module = torch.nn.ModuleList([layer, tied, copy.deepcopy(layer)]).half()
    assert {parameter.dtype for parameter in module.parameters()} == {torch.float16}
    assert tied.weight is layer.weight


class Called(torch.nn.Module):
    """Calls a function."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.forward = function


def _exported(function: Callable[[torch.Tensor], torch.Tensor], *sizes: int) -> int:
    """Export a function and count the results that were not known."""
    before = FakeTensorMode.cache_misses
    with fake_tensors(), results_shared():
        torch.export.export(Called(function), (torch.empty(sizes),), strict=False)
    return FakeTensorMode.cache_misses - before


def _waves(x: torch.Tensor) -> torch.Tensor:
    return x.sin().cos().exp()


def test_an_export_knows_what_operators_gave_without_contents() -> None:
    """A reference is run before it is traced: its three operators at these sizes are worked out once, and torch is as before afterwards."""
    own = FakeTensorMode._cache_key
    with fake_tensors():
        _waves(torch.empty(7, 1013))
    assert _exported(_waves, 7, 1019) - _exported(_waves, 7, 1013) >= 3
    assert FakeTensorMode._cache_key is own


def test_what_depends_on_contents_is_known_to_the_export_alone() -> None:
    """It takes how many rows there are as a number to be found, and a run without contents still refuses."""
    _exported(lambda x: x.nonzero(), 7, 1021)
    with fake_tensors(), pytest.raises(DynamicOutputShapeException):
        torch.nonzero(torch.empty(7, 1021))
