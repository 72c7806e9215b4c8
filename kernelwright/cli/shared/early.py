"""What a command line names, looked up before anything heavy is imported: a slip of the keys is refused in under a second."""

from __future__ import annotations

from pathlib import Path

from kernelwright.cli.shared.options import SEARCHES, home_folder
from tools.errors import UserError
from tools.hardware import load_sheet
from tools.hardware.devices import choose_devices
from tools.nearest import nearest
from tools.places import demand_file, demand_writable
from tools.policies import load_policy
from tools.problems.load import recognise_file
from tools.problems.source import read_source
from tools.tracing.finding import find_run


def check_problem(file: Path, entry: str | None) -> None:
    """Raise UserError where a problem's file is missing, is no Python, or holds no reference."""
    recognise_file(file, entry)


def check_kernel(file: Path) -> None:
    """Raise UserError where a kernel's file is missing or cannot be read."""
    read_source(file)


def check_device(target: str) -> None:
    """Raise UserError where a target is named that has no sheet."""
    if target:
        load_sheet(target)


def check_policies(words: str) -> None:
    """Raise UserError where one of a comma list of policies is neither known by name nor a JSON file."""
    for word in filter(None, (part.strip() for part in words.split(","))):
        load_policy(word)


def check_evaluator(evaluator: str, devices: str) -> None:
    """Raise UserError for an evaluator that there is none of, and for GPUs that this machine has not."""
    if evaluator == "local":
        choose_devices(devices)
    elif evaluator == "ray" or evaluator.startswith("ray:"):
        from tools.cluster import demand_ray

        demand_ray()
    elif not evaluator.startswith("spool:"):
        mend = "Give `local`, `spool:DIR`, a folder that workers watch, or `ray[:ADDRESS]`, a Ray cluster."
        raise UserError(f"There is no evaluator called {evaluator!r}.", mend)


def check_run(home: Path | None, run: str) -> None:
    """Raise UserError where no run has that name, or several begin with it."""
    find_run(home_folder(home), run)


def check_bundle(folder: Path | None) -> None:
    """Raise UserError where no bundle could be made at `folder`."""
    if folder is not None and folder.absolute().parent.is_dir():
        demand_writable(folder.absolute().parent)


def check_search(name: str) -> None:
    """Raise UserError for an unknown search method."""
    known = SEARCHES.split(", ")
    if name not in known:
        raise UserError(f"There is no search method {name!r}.", f"{nearest(name, known)}Choose one of: {SEARCHES}.")


def check_out(out: Path | None) -> None:
    """Raise UserError where the kernel could not be copied to `out`: before the work, not after it."""
    if out is not None:
        demand_file(out)
