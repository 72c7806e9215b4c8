"""Ways of running a whole model, and in which workloads a compiler makes it faster with its operators: in the others they step aside."""

from __future__ import annotations

from collections.abc import Collection
from statistics import median

from tools.evaluation.supervisor.timed.statistics import speedup
from tools.models.jobs import AUTOTUNED, AUTOTUNED_OURS, COMPILED, COMPILED_OURS, EAGER, IN_GRAPH, OURS, Proof

PLAIN = ((EAGER, OURS), (COMPILED, COMPILED_OURS))
GRAPHED = tuple((f"{way}{IN_GRAPH}", f"{ours}{IN_GRAPH}") for way, ours in PLAIN)
PAIRS = (*PLAIN, *GRAPHED, (AUTOTUNED, AUTOTUNED_OURS))
"""Ways of running the model without the operators and with them."""
THROUGH = {way: ours for way, ours in PAIRS if not way.startswith(EAGER)}
"""Those through a compiler."""
COPIED = "There torch.compile's times with operators are its own without them, copied: it is the same program."
"""Said where times were not measured with operators, but taken from those without."""


def no_faster(proof: Proof, workloads: Collection[str]) -> dict[str, float]:
    """Find workloads in which the best way through a compiler is no faster with the operators, and how many times as fast it is.

    0 stands for what was not timed with them: where a compiler took the model alone, or where no workload that was timed was faster.
    """
    found: dict[str, float] = {}
    faster = False
    for name in workloads:
        without, ours = _fastest(proof, THROUGH, name), _fastest(proof, THROUGH.values(), name)
        value, low, _ = speedup(without, ours) if without and ours else (0.0, 0.0, 0.0)
        faster |= low > 1.0
        if without and low <= 1.0:
            found[name] = value
    timed = any(proof.times.get(way) for way in THROUGH)
    return found if faster or not timed else dict.fromkeys(workloads, 0.0) | found


def _fastest(proof: Proof, ways: Collection[str], workload: str) -> list[float]:
    """Give the times of the fastest of some ways; empty where none was timed."""
    found = [list(proof.times[way][workload]) for way in ways if workload in proof.times.get(way, {})]
    return min(found, key=median, default=[])


def as_compiled(proof: Proof, workloads: Collection[str]) -> Proof:
    """Take a compiler's times without operators for those with them where all of these step aside: it is the same program."""
    times = dict(proof.times)
    for way, ours in THROUGH.items():
        same = {name: each for name, each in proof.times.get(way, {}).items() if name in workloads}
        times |= {ours: proof.times.get(ours, {}) | same} if same else {}
    return proof.model_copy(update={"times": times})
