"""What the interpreter replaces of the language, and how often."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import triton.language as tl

from tools.evaluation.untrusted.interpreter.patching import _listed_once, _once_a_launch, _with_whole_numbers


class _Scope:
    """What a launch has replaced."""

    def __init__(self) -> None:
        self.restored = 0

    def restore(self) -> None:
        """Put back what was there."""
        self.restored += 1


def _function(**names: Any) -> Any:
    return SimpleNamespace(__globals__=names)


def test_a_launch_replaces_once_for_all_functions_that_see_the_same_of_the_language() -> None:
    """A device function of another module is looked at once more; what comes after the launch's end begins anew."""
    made: list[_Scope] = []
    patch = _once_a_launch(lambda function: made.append(_Scope()) or made[-1])
    launch = patch(_function(tl=tl))
    for _ in range(3):
        assert patch(_function(tl=tl, more=1)) is None
        patch(_function(core=tl.core))
    assert len(made) == 2
    launch.restore()
    assert made[0].restored == 1
    assert patch(_function(tl=tl)) is made[2]


def test_functions_are_looked_for_once_and_replaced_every_time() -> None:
    """What a class of the language offers does not change between launches; what replaces it is set at each."""
    replaced: list[str] = []
    scope = SimpleNamespace(set_attr=lambda package, name, value: replaced.append(name))
    patch = _listed_once(lambda package, name, member, builder, scope: replaced.append(name))
    patch(tl.tensor, None, scope)
    first = list(replaced)
    assert "sum" not in first
    assert "__add__" in first
    patch(tl.tensor, None, scope)
    assert replaced == first * 2


def test_the_end_of_a_loop_is_a_whole_number_for_every_numpy() -> None:
    """Triton 3.6 asks an array of one element for a number, which numpy 2.4 refuses: no kernel with a loop could be run."""

    class Tensor:
        handle = SimpleNamespace(data=np.array([3], dtype=np.int32))

    def as_triton_does(tensor: Any, scope: Any) -> None:
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data))

    _with_whole_numbers(as_triton_does)(Tensor, SimpleNamespace(set_attr=setattr))
    assert list(range(cast("Any", Tensor()))) == [0, 1, 2]
