"""The evaluator: judges candidates that may crash, hang or cheat, and says how fast they are.

`LocalPool` is the pool of this machine; `EvaluationRequest`, `Baselines` and `EvaluatorPool` are what every pool speaks.
Trusted: supervisor (supervisor, correctness, conversation, workshop, nursery, ancestry, child), zygote, inputs, oracle, baseline.
Untrusted: builder and runner, which alone meet candidate code, inside `sandbox`. Nothing of the reference may ever reach them, and
nothing but bytes of ABI-fixed size may decide a verdict: keep that when you change a file here, and add the attack you had in
mind to tests/hacks.
"""

from tools.evaluation.local import LocalPool
from tools.evaluation.protocol import EvaluatorPool
from tools.records import Baselines, EvaluationRequest

__all__ = ["Baselines", "EvaluationRequest", "EvaluatorPool", "LocalPool"]
