"""What pages show of work on whole models: the share of each operator, what came of it, and what the model does now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelwright.models.recording import KIND
from kernelwright.models.records import Outcome
from kernelwright.models.report import beyond_words, left_alone, summary, time_rows
from kernelwright.ui.charts import bars
from tools.errors import UserError

Facts = dict[str, Any]


class Models:
    """The models that were worked on with a home folder."""

    def __init__(self, home: Path) -> None:
        """Read what is in `home`/models."""
        self._folder = home / KIND

    def all(self) -> list[Facts]:
        """One line a model, the latest first; one that cannot be read says why in `damage`."""
        found = sorted(self._folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)
        return [self._line(path) for path in found]

    def one(self, name: str) -> Facts:
        """A model whole; raises UserError where there is none of that name, or it cannot be read."""
        path = self._folder / f"{name}.json"
        if path not in self._folder.glob("*.json"):
            raise UserError(f"There is no work on a model {name!r} here.", "Begin one with `kernelwright model FILE --out DIR`.")
        outcome = _read(path)
        by_name = {one.name: one for one in outcome.operators}
        rows = [{**row.model_dump(mode="json"), "over": row.over, "outcome": by_name.get(row.group)} for row in outcome.chosen]
        known = sum(row.share for row in outcome.chosen if row.budget)
        shares = [
            (row.group, row.share, f"{row.share:.1%}", "best" if _kept(by_name.get(row.group)) else "")
            for row in outcome.chosen
            if row.budget
        ]
        rest = [("everything else", 1.0 - known, f"{1.0 - known:.1%}", "floor")] if known < 1.0 else []
        return {
            **_facts(name, outcome),
            "outcome": outcome,
            "rows": rows,
            "shares": bars([*shares, *rest]),
            "left_alone": left_alone(outcome.capture),
            "times": time_rows(outcome),
            "beyond": beyond_words(outcome.chosen),
        }

    def _line(self, path: Path) -> Facts:
        try:
            return _facts(path.stem, _read(path))
        except UserError as error:
            return {"name": path.stem, "damage": f"{error.what} {error.mend}"}


def _read(path: Path) -> Outcome:
    try:
        return Outcome.model_validate_json(path.read_text())
    except (ValidationError, OSError) as error:
        raise UserError(
            f"{path} holds no work on a model that this version can read.", "Remove it; the package's own report stays."
        ) from error


def _facts(name: str, outcome: Outcome) -> Facts:
    done = {one.name for one in outcome.operators}
    chosen = [row.group for row in outcome.chosen if row.budget]
    return {
        "name": name,
        "title": outcome.capture.title,
        "target": outcome.target,
        "under_way": outcome.under_way,
        "said": f"{len(done)} of {len(chosen)} operators are done." if outcome.under_way else summary(outcome),
        "chosen": len(chosen),
        "kept": sum(one.kept for one in outcome.operators),
        "expected": outcome.expected,
        "measured": bool(outcome.ratios),
        "damage": "",
    }


def _kept(outcome: Any) -> bool:
    return outcome is not None and outcome.kept
