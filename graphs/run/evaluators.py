"""Which evaluator a run asks: this machine's devices, or workers at a spool."""

from __future__ import annotations

from pathlib import Path

from graphs.run.settings import RunSettings, settings_of
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


def checked(settings: RunSettings) -> RunSettings:
    """Refuse an evaluator that cannot work; a spool's folder is made, and named so that a resume finds it from anywhere."""
    folder = spool_folder(settings.evaluator)
    if folder is None:
        choose_devices(settings.devices)
        return settings
    return settings.model_copy(update={"evaluator": f"{_SPOOL}{Spool(folder).folder}"})


def spool_folder(evaluator: str) -> Path | None:
    """The folder that `spool:DIR` names, or None for `local`."""
    if evaluator == LOCAL:
        return None
    folder = evaluator.removeprefix(_SPOOL)
    if folder == evaluator or not folder:
        raise UserError(f"There is no evaluator called {evaluator!r}.", f"Give `{LOCAL}`, or `{_SPOOL}DIR`, a folder that workers watch.")
    return Path(folder)


def announced_target(settings: RunSettings) -> str:
    """The one device that the spool's GPU workers have announced; empty where there is none, several, or no spool."""
    folder = spool_folder(settings.evaluator)
    targets = {one.target for one in Spool(folder).announcements() if one.target} if folder else set()
    return targets.pop() if len(targets) == 1 else ""


def open_evaluator(settings: RunSettings, store: RunStore) -> EvaluatorPool:
    """Open the evaluator that `settings` name; nothing starts before the first question."""
    folder = spool_folder(settings.evaluator)
    if folder is None:
        title = load_sheet(settings.target).title
        return open_local(store.folder / "scratch", settings.devices, title, compile_s=settings.compile_timeout_s)
    known = next(iter(store.all("baselines", Baselines).values()), None)
    # a run whose reference was measured goes on measuring, one that was estimated goes on estimating
    executor: Executor = "any" if known is None else "gpu" if known.samples else "interpreter"
    return SpoolPool(folder, executor, wait=settings.wait)


def change_evaluator(store: RunStore, evaluator: str, devices: str, *, wait: bool) -> None:
    """Have a run go on with another evaluator, where one is named, and wait for its answers or not."""
    settings = settings_of(store)
    given = {name: value for name, value in (("evaluator", evaluator), ("devices", devices)) if value}
    settings = checked(settings.model_copy(update={**given, "wait": wait}))
    store.set_meta("settings", settings.model_dump_json())
