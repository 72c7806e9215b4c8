"""Joins a Ray cluster, or starts one of this machine alone: once a process, whatever asks for it.

Ray 2.60 listens on every interface of a machine, unless its address is the loopback one: a cluster of one's own gets that, and a token.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

from tools.cluster.dashboard import dashboard_warning
from tools.cluster.keys import without_keys
from tools.errors import MachineError, UserError
from tools.records import Record

RAY = "ray"
INSTALL = "pip install 'kernelwright[ray]'"
STORE_BYTES = 200 << 20
"""Object store of a cluster of one's own: only text travels."""
_CONNECT_S = 5.0
_PORT = 6379
"""Where `ray start --head` listens unless it is told otherwise."""
_LOCK = threading.Lock()
_OWN = threading.Event()
"""Set once this process has a cluster of its own."""


class Joined(Record):
    """A cluster that this process belongs to."""

    address: str
    own: bool = False
    """Whether this process has started it, for itself alone."""
    warnings: tuple[str, ...] = ()


def address_of(evaluator: str) -> str | None:
    """The address in `ray[:ADDRESS]`, empty where none is given; None for any other evaluator."""
    word, _, address = evaluator.partition(":")
    return address if word == RAY else None


def demand_ray() -> None:
    """Raise UserError where Ray is not installed."""
    from importlib.util import find_spec

    try:
        is_there = find_spec("ray") is not None
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        raise UserError("Ray is not installed here.", f"Install it: {INSTALL}.")


def join(address: str) -> Joined:
    """Join the cluster at `address`; without one a job's own (RAY_ADDRESS), else start one of this machine. UserError says what is wrong.

    A process that has joined one stays in that.
    """
    demand_ray()
    with _LOCK:
        ray: Any = sys.modules.get("ray")
        if ray is not None and ray.is_initialized():
            return Joined(address=str(ray.get_runtime_context().gcs_address), own=_OWN.is_set())
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # actors without a GPU are to see none, which Ray would else warn of
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
        place = address or os.environ.get("RAY_ADDRESS", "")
        if not place:
            return _own()
        if place != "auto":
            place = _answering(place)
        return _existing(place)


def _own() -> Joined:
    with without_keys():
        # Ray's way to have its ports on the loopback interface alone, which its name tells of two other systems; read at its import
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        # Ray's is 15, and whoever times would wait for everybody else
        os.environ.setdefault("RAY_worker_niceness", "0")
        import ray

        try:
            with same_sigterm():
                ray.init("local", include_dashboard=False, object_store_memory=STORE_BYTES, **_quiet())
        except Exception as error:
            what = f"Ray cannot be started on this machine: {' '.join(str(error).split())[:300]}"
            raise MachineError(what, "Look at its logs in /tmp/ray/session_latest/logs.") from error
    _OWN.set()
    return Joined(address=str(ray.get_runtime_context().gcs_address), own=True)


@contextlib.contextmanager
def same_sigterm() -> Iterator[None]:
    """Keep what SIGTERM does: Ray would have it end the process, where a command clears up first."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _existing(place: str) -> Joined:
    import ray

    try:
        with same_sigterm():
            found: Any = ray.init(place, **_quiet())
    except Exception as error:
        raise refusal(place, error) from error
    warning = dashboard_warning(str(found.dashboard_url or ""))
    return Joined(address=str(ray.get_runtime_context().gcs_address), warnings=(warning,) if warning else ())


def _quiet() -> dict[str, Any]:
    return {"log_to_driver": False, "logging_level": "error", "namespace": "kernelwright"}


def _answering(place: str) -> str:
    """Refuse an address where nobody listens, before Ray tries for a minute; give it with its port."""
    if "://" in place:
        mend = "Give the head's own, HOST:PORT, from a machine of the cluster's network, or submit a job (docs/ray.md)."
        raise UserError(f"{place} is an address of Ray Client, by which no evaluator can be asked.", mend)
    host, _, port = place.rpartition(":") if ":" in place else (place, "", str(_PORT))
    try:
        socket.create_connection((host, int(port)), _CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        mend = "Start the cluster (`ray start --head`), or correct the address: HOST:PORT as `ray start` prints it."
        raise UserError(f"No Ray cluster answers at {place} ({error}).", mend) from error
    return f"{host}:{port}"


def refusal(place: str, error: Exception) -> UserError:
    """Say in a line what Ray says in many where it cannot join."""
    said = " ".join(str(error).split())
    if "ersion mismatch" in said:
        versions = re.findall(r"(Ray|Python): ([\w.+]+)", str(error))
        both = " and ".join(f"{one} {number}" for one, number in versions[:2]), ", ".join(f"{one} {number}" for one, number in versions[2:])
        return UserError(
            f"The cluster at {place} has {both[0]}, and this machine {both[1] or 'another version'}.", "Install the same on every machine."
        )
    if type(error).__name__ == "AuthenticationError":
        return UserError(
            f"The cluster at {place} asks for a token.", "Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or put it into ~/.ray/auth_token."
        )
    return UserError(f"The Ray cluster at {place} cannot be joined: {said[:300]}.", "Look at `ray status` on its head.")
