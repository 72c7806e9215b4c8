"""What a whole model's work has come to so far, in a file: the same command after a kill goes on with it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from kernelwright.models.records import ModelSettings
from tools.errors import UserError
from tools.models.choosing.chosen import Chosen
from tools.models.neighbours import neighbours
from tools.models.records import Capture
from tools.records import Record, content_hash

FOLDER = "models_under_way"
LATER = {"minutes", "jobs", "rounds", "proof_s", "max_autotune"}
"""Settings that change nothing of what is known: the same command with others goes on."""


class Done(Record):
    """What is known already."""

    capture: Capture
    rows: tuple[Chosen, ...]
    runs: dict[str, str] = Field(default_factory=dict)
    """By group: its run, begun or ended."""


class Work:
    """The record of one command; where nothing is kept of it, it is in memory alone."""

    def __init__(self, file: Path | None = None) -> None:
        """Read what is in `file`, or begin anew."""
        self._file = file
        self.done: Done | None = None
        if file is not None and file.is_file():
            try:
                self.done = Done.model_validate_json(file.read_text())
            except ValueError as error:
                raise UserError(
                    f"{file} cannot be read: {' '.join(str(error).split())[:100]}.", "Remove it: the work begins anew."
                ) from None

    def begin(self, capture: Capture, rows: tuple[Chosen, ...]) -> None:
        """Write down what is to be worked on."""
        self._write(Done(capture=capture, rows=rows))

    def run_of(self, group: str) -> str:
        """Name the run of a group; empty where none was begun."""
        return self.done.runs.get(group, "") if self.done else ""

    def note_run(self, group: str, run: str) -> None:
        """Write down which run works on a group."""
        if self.done is not None:
            self._write(self.done.model_copy(update={"runs": {**self.done.runs, group: run}}))

    def end(self) -> None:
        """Forget it: there is a package, or nothing to go on with."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def _write(self, done: Done) -> None:
        self.done = done
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            # a kill leaves the old text or the new one
            making = self._file.with_suffix(".new")
            making.write_text(done.model_dump_json())
            making.replace(self._file)


def work_of(file: Path, source: str, factory: str, out: Path, settings: ModelSettings, home: Path) -> Work:
    """Open the record of a command: the same model and place, and what operators are made by."""
    beside = neighbours(file)
    asked = settings.model_dump_json(exclude=LATER)
    key = content_hash(source, repr(sorted(beside.items())), factory, str(out.absolute()), asked)
    return Work(home / FOLDER / f"{key}.json")
