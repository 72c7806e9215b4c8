"""What pages show of benches: each with its results so far, and the plots of its report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from kernelwright.bench.files import read_rows, read_settings
from kernelwright.bench.merging import gather
from kernelwright.bench.plots import plots_of
from kernelwright.bench.report import make_report
from tools.errors import KernelwrightError, UserError
from tools.tracing.places import places

Facts = dict[str, Any]
KIND = "benches"


class Benches:
    """The benches that were begun with a home folder."""

    def __init__(self, home: Path) -> None:
        """Read what is noted in `home`/benches."""
        self._home = home

    def all(self) -> list[Facts]:
        """One line a bench, the latest begun first; one that cannot be read says why in `damage`."""
        return [self._line(name, folder) for name, folder in places(self._home, KIND).items()]

    def one(self, name: str) -> Facts:
        """A bench with its report, as far as there are results; raises UserError where there is none of that name."""
        folder = self._folder(name)
        line = self._line(name, folder)
        if line.get("damage") or not line["done"]:
            return {**line, "sections": [], "rows": []}
        gathered = gather([folder], mixed=True)
        report = make_report(gathered)
        sections = [{"section": section, "plots": plots_of(section)} for section in report.sections]
        return {**line, "sections": sections, "rows": [row.model_dump(mode="json") for row in gathered.rows], "notes": report.notes}

    def home_of(self, name: str) -> Path:
        """The home folder of a bench's runs."""
        return self._folder(name) / "home"

    def _folder(self, name: str) -> Path:
        folder = places(self._home, KIND).get(name)
        if folder is None:
            raise UserError(f"There is no bench {name!r} here.", "Begin one with `kernelwright bench SUITE`.")
        return folder

    def _line(self, name: str, folder: Path) -> Facts:
        try:
            settings = read_settings(folder / "settings.json")
            rows = {row.key: row for row in read_rows(sorted(folder.glob("results-*.jsonl")))}
        except KernelwrightError as error:
            return {"name": name, "folder": str(folder), "damage": f"{error.what} {error.mend}"}
        arms = [arm.name for arm in settings.arms()]
        return {
            "name": name,
            "folder": str(folder),
            "suite": settings.suite,
            "target": settings.run.target,
            "arms": arms,
            "seeds": settings.seeds,
            "done": len(rows),
            "under_way": _under_way(folder, {row.run for row in rows.values()}),
            "ended": dict(Counter(row.status.value for row in rows.values())),
            "damage": "",
        }


def _under_way(folder: Path, done: set[str]) -> list[str]:
    """Runs that were begun and have no result yet."""
    return sorted(path.parent.name for path in (folder / "home" / "runs").glob("*/run.db") if path.parent.name not in done)
