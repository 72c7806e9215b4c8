"""Which evaluator a run asks: this machine's devices, workers at a spool, or a Ray cluster."""

from __future__ import annotations

from pathlib import Path

from graphs.run.settings import RunSettings, settings_of
from tools.cluster import RAY, address_of, check_devices, cluster_target, join, open_ray
from tools.errors import UserError
from tools.evaluation.protocol import EvaluatorPool
from tools.evaluation.several import open_local
from tools.hardware import load_sheet
from tools.hardware.devices import choose_devices
from tools.records import Baselines
from tools.spool import Spool, SpoolPool
from tools.spool.records import Executor
from tools.tracing import RunStore

LOCAL = "local"
_SPOOL = "spool:"
KNOWN = f"Give `{LOCAL}`, `{_SPOOL}DIR`, a folder that workers watch, or `{RAY}[:ADDRESS]`, a Ray cluster."


def checked(settings: RunSettings) -> RunSettings:
    """Refuse an evaluator that cannot work; a spool's folder is made, and named so that a resume finds it from anywhere.

    A Ray cluster is joined.
    """
    address = address_of(settings.evaluator)
    if address is not None:
        _check_ray(settings, address)
        return settings
    folder = spool_folder(settings.evaluator)
    if folder is None:
        choose_devices(settings.devices)
        return settings
    return settings.model_copy(update={"evaluator": f"{_SPOOL}{Spool(folder).folder}"})


def _check_ray(settings: RunSettings, address: str) -> None:
    if not settings.wait:
        raise UserError("A Ray cluster keeps no questions for later.", "Leave --no-wait out, or use a spool (docs/workers.md).")
    join(address)
    target = settings.target or announced_target(settings)
    if target or settings.devices != "all":
        check_devices(settings.devices, load_sheet(target).title if target else "")


def spool_folder(evaluator: str) -> Path | None:
    """The folder that `spool:DIR` names, or None for another evaluator; UserError for what is none."""
    if evaluator == LOCAL or address_of(evaluator) is not None:
        return None
    folder = evaluator.removeprefix(_SPOOL)
    if folder == evaluator or not folder:
        raise UserError(f"There is no evaluator called {evaluator!r}.", KNOWN)
    return Path(folder)


def announced_target(settings: RunSettings) -> str:
    """The one device that the spool's GPU workers have announced, or the cluster has; empty where there is none, or several."""
    address = address_of(settings.evaluator)
    if address is not None:
        return cluster_target(address, settings.devices)
    folder = spool_folder(settings.evaluator)
    targets = {one.target for one in Spool(folder).announcements() if one.target} if folder else set()
    return targets.pop() if len(targets) == 1 else ""


def open_evaluator(settings: RunSettings, store: RunStore) -> EvaluatorPool:
    """Open the evaluator that `settings` name; nothing starts before the first question."""
    shared = open_shared(settings, store.folder / "scratch")
    if shared is not None:
        return shared
    known = next(iter(store.all("baselines", Baselines).values()), None)
    # a run whose reference was measured goes on measuring, one that was estimated goes on estimating
    executor: Executor = "any" if known is None else "gpu" if known.samples else "interpreter"
    folder = spool_folder(settings.evaluator)
    assert folder is not None
    return SpoolPool(folder, executor, wait=settings.wait)


def open_shared(settings: RunSettings, scratch: Path, *, max_autotune: bool = False) -> EvaluatorPool | None:
    """Open an evaluator that several runs may share; None for a spool, where each has its own."""
    if spool_folder(settings.evaluator) is not None:
        return None
    title, compile_s = load_sheet(settings.target).title, settings.compile_timeout_s
    address = address_of(settings.evaluator)
    if address is not None:
        return open_ray(address, settings.devices, title, max_autotune=max_autotune, compile_s=compile_s)
    return open_local(scratch, settings.devices, title, max_autotune=max_autotune, compile_s=compile_s)


def change_evaluator(store: RunStore, evaluator: str, devices: str, *, wait: bool) -> None:
    """Have a run go on with another evaluator, where one is named, and wait for its answers or not."""
    settings = settings_of(store)
    given = {name: value for name, value in (("evaluator", evaluator), ("devices", devices)) if value}
    settings = checked(settings.model_copy(update={**given, "wait": wait}))
    store.set_meta("settings", settings.model_dump_json())
