"""What outlives the threads that trace, and what modules without contents can do."""

from __future__ import annotations

import copy
import threading

import pytest
import torch

from tools.native import fake_tensors, lasting_guard


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
