"""The evaluator: judges candidates that may crash, hang or cheat, and says how fast they are.

`LocalPool` is the pool of this machine; `EvaluationRequest`, `Baselines` and `EvaluatorPool` are what every pool speaks. Folders:

* `supervisor`: decides; no CUDA, no candidate code. Starts phases, each a process of its own, and reads what they answer;
  `supervisor/checking` finds out what is right, `supervisor/timed` how fast that is.
* `trusted`: phases that know the reference and the secret seeds, and never meet a candidate.
* `untrusted`: phases that meet a candidate's code or what it made, behind the walls of `sandbox`.
* `processes`: how phases are started, kept and ended, and who may use the device; `processes/phase_table.py` names every phase.
* `wire`: what two sides share: jobs and answers, channels, memory, constants.

Imports run from `supervisor` to `processes` to `sandbox` to `wire`; `trusted` and `untrusted` import `wire` alone (tests/test_imports.py).
Nothing of the reference may ever reach an untrusted phase, and nothing but bytes of ABI-fixed size may decide a verdict: keep that when you
change a file here, and add the attack you had in mind to tests/hacks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.evaluation.local import LocalPool
    from tools.evaluation.protocol import EvaluatorPool
    from tools.records import Baselines, EvaluationRequest

__all__ = ["Baselines", "EvaluationRequest", "EvaluatorPool", "LocalPool"]

_PLACES = {
    "Baselines": "tools.records",
    "EvaluationRequest": "tools.records",
    "EvaluatorPool": "tools.evaluation.protocol",
    "LocalPool": "tools.evaluation.local",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: a command starts the processes of this package long before it needs a pool."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
