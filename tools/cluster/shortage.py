"""What a cluster lacks for an evaluator or a build that Ray does not place, in words."""

from __future__ import annotations

from collections.abc import Mapping

LOGS = "worker-*.err and raylet.out in /tmp/ray/session_latest/logs on its node"
_WORDS = {"CPU": "processors", "GPU": "GPUs"}
_NAMES = {"num_cpus": "CPU", "num_gpus": "GPU"}


def shortage(options: Mapping[str, object]) -> str:
    """What of an actor's options is not free on the cluster that was joined: `GPUs: 1 needed, 0 of 2 free`."""
    import ray

    return lacking(needed(options), ray.cluster_resources(), ray.available_resources())


def needed(options: Mapping[str, object]) -> dict[str, float]:
    """By Ray's name what an actor with these options takes."""
    found = {_NAMES[name]: float(str(value)) for name, value in options.items() if name in _NAMES and value}
    kind = options.get("accelerator_type")
    # Ray's own share, by which it keeps actors with nodes of a kind
    return found | ({f"accelerator_type:{kind}": 0.001} if kind else {})


def lacking(need: Mapping[str, float], has: Mapping[str, float], free: Mapping[str, float]) -> str:
    """Name each resource that is short; where none is, that nothing is."""
    short = [
        f"{_WORDS.get(name, name)}: {amount:g} needed, {free.get(name, 0):g} of {has.get(name, 0):g} free"
        for name, amount in need.items()
        if free.get(name, 0) < amount
    ]
    held = (
        ", held by others or by a process that has not started" if all(has.get(name, 0) >= amount for name, amount in need.items()) else ""
    )
    return f"{'; '.join(short)}{held}" if short else "what it needs is free, though maybe not on one node, or its process does not start"
