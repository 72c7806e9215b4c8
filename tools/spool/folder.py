"""The spool's folder: where what lies, and how it gets there.

```
spool.json            what this folder is, and its version
jobs/ID.json          questions, put by agents
claims/ID.N/          the N-th taking of a job: claim.json, and given-back.json where the taker gave it back
answers/ID.json       what came of it; kept, so that the same question is answered once
withdrawn/ID.json     the agents no longer want it
workers/SESSION.json  who works here, written anew at every beat
aside/FOLDER.NAME     what could not be read, each with FOLDER.NAME.reason; jobs.NAME.left says who is of another version than a job
```

Only announcements are ever replaced. All else is made once under a name of its own, by a link or a rename that only one maker wins.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from tools.errors import UserError
from tools.records import Record
from tools.spool import files
from tools.spool.forms import unreadable
from tools.spool.records import VERSION, Announcement, Answer, Job, Withdrawal

R = TypeVar("R", bound=Record)

_FORMAT = "kernelwright spool"
_FOLDERS = ("jobs", "claims", "answers", "withdrawn", "workers", "aside")


class _Marker(Record):
    """Contents of `spool.json`."""

    format: str = _FORMAT
    version: int = VERSION


class Spool:
    """A spool folder; every method may be called from several threads, processes and machines."""

    def __init__(self, folder: Path) -> None:
        """Open `folder`, making a spool of it where it is empty or not there; anything else in its place raises UserError."""
        self.folder = folder.resolve()
        try:
            self._open()
        except OSError as error:
            raise UserError(f"The spool {folder} cannot be used: {error.strerror}.", "Name a folder that you may write to.") from error

    def _open(self) -> None:
        if not self.folder.is_dir():
            # questions are programs that workers run: only their owner may put one
            self.folder.mkdir(mode=0o700, parents=True)
        marker = self.folder / "spool.json"
        text = files.read(marker)
        if text is None:
            strange = sorted(path.name for path in self.folder.iterdir() if not path.name.startswith(".") and path.name not in _FOLDERS)
            if strange:
                raise UserError(f"{self.folder} is no spool: it holds {strange[0]!r}.", "Name an empty folder, or a new one.")
            files.create(marker, _Marker().model_dump_json())
        else:
            self._check(text)
        for name in _FOLDERS:
            (self.folder / name).mkdir(exist_ok=True)
        if not os.access(self.folder / "answers", os.W_OK | os.X_OK):
            raise UserError(f"The spool {self.folder} cannot be written to.", "Name a folder that you may write to.")

    def _check(self, text: str) -> None:
        try:
            found = _Marker.model_validate_json(text)
        except ValidationError:
            found = _Marker(format="", version=0)
        if found.format != _FORMAT:
            raise UserError(f"{self.folder} is no spool: its spool.json says something else.", "Name an empty folder, or a new one.")
        if found.version != VERSION:
            raise UserError(
                f"The spool {self.folder} is of version {found.version}; this kernelwright speaks version {VERSION}.",
                "Use the same version on both sides, with a new folder.",
            )

    def put_job(self, job: Job) -> bool:
        """Ask; False where the same job is asked already."""
        return files.create(self._at("jobs", job.id), job.model_dump_json())

    def job_files(self) -> list[str]:
        """Names of the files in the jobs' folder, oldest first; each should be a job's id with `.json`."""
        return files.names(self.folder / "jobs")

    def has_job(self, job_id: str) -> bool:
        """Whether a job is asked."""
        return self._at("jobs", job_id).exists()

    def job(self, job_id: str) -> Job | None:
        """Read a job; None where it is not (or no longer) asked, ValueError where it cannot be read, OtherVersionError among them."""
        job = self._read("jobs", job_id, Job)
        if job is not None and job.id != job_id:
            raise ValueError(f"it says of itself that it is {job.id}: it was renamed, changed, or written by another version")
        return job

    def drop_job(self, job_id: str) -> None:
        """Take a job away that was answered or withdrawn."""
        self._at("jobs", job_id).unlink(missing_ok=True)

    def put_answer(self, answer: Answer) -> bool:
        """Answer a job; False where it is answered already: the first answer stays."""
        return files.create(self._at("answers", answer.job), answer.model_dump_json())

    def has_answer(self, job_id: str) -> bool:
        """Whether a job is answered."""
        return self._at("answers", job_id).exists()

    def answer(self, job_id: str) -> Answer | None:
        """Read the answer to a job; None where there is none yet, ValueError where it cannot be read."""
        answer = self._read("answers", job_id, Answer)
        if answer is not None and answer.job != job_id:
            raise ValueError(f"it says of itself that it answers {answer.job}")
        return answer

    def withdraw(self, job: Job) -> None:
        """Say that an asking is no longer wanted, and take it away."""
        files.replace(self._at("withdrawn", job.id), Withdrawal(job=job.id, token=job.token).model_dump_json())
        self.drop_job(job.id)

    def is_withdrawn(self, job_id: str, token: str) -> bool:
        """Whether this very asking of a job was withdrawn."""
        try:
            found = self._read("withdrawn", job_id, Withdrawal)
        except ValueError:
            return False
        return found is not None and found.token == token

    def announce(self, announcement: Announcement) -> None:
        """Write who works here; a beat that a power cut loses is followed by the next."""
        files.replace(self._at("workers", announcement.worker.session), announcement.model_dump_json(), durable=False)

    def announcement(self, session: str) -> Announcement | None:
        """Read what a worker says of itself; None where there is nothing (readable) of it."""
        try:
            return self._read("workers", session, Announcement)
        except ValueError:
            return None

    def announcements(self) -> list[Announcement]:
        """Everyone who ever announced itself here, whoever spoke last at the end."""
        found = [self.announcement(session) for session in self._sessions()]
        return [one for one in found if one is not None]

    def _sessions(self) -> list[str]:
        return [name.removesuffix(".json") for name in files.names(self.folder / "workers")]

    def set_aside(self, folder: str, name: str, reason: str) -> None:
        """Move a file that cannot be used out of the way, with the reason beside it."""
        source, place = self.folder / folder / name, self.folder / "aside" / f"{folder}.{name}"
        try:
            source.rename(place)
        except FileNotFoundError:
            # another worker was faster
            return
        except OSError:
            # a folder of that name lies there from an earlier time
            source.rename(place.with_name(f"{place.name}.{os.urandom(4).hex()}"))
        files.replace(place.with_name(f"{place.name}.reason"), f"{folder}/{name}: {reason}\n")

    def reason(self, job_id: str) -> str:
        """Why a job was set aside; empty where it was not."""
        return (files.read(self.folder / "aside" / f"jobs.{job_id}.json.reason") or "").strip()

    def leave(self, job_id: str, reason: str) -> None:
        """Say why a worker leaves a job that is of another version than it is: another worker may take it."""
        files.replace(self.folder / "aside" / f"jobs.{job_id}.json.left", reason)

    def why_left(self, job_id: str) -> str:
        """Why a worker left a job; empty where none did."""
        return files.read(self.folder / "aside" / f"jobs.{job_id}.json.left") or ""

    def forget_left(self, job_id: str) -> None:
        """Forget who left a job that is answered."""
        (self.folder / "aside" / f"jobs.{job_id}.json.left").unlink(missing_ok=True)

    def forget_reason(self, job_id: str) -> None:
        """Have a job that was set aside judged by its next asking."""
        for name in (f"jobs.{job_id}.json.reason", f"jobs.{job_id}.json"):
            (self.folder / "aside" / name).unlink(missing_ok=True)

    def _at(self, folder: str, name: str) -> Path:
        return self.folder / folder / f"{name}.json"

    def _read(self, folder: str, name: str, kind: type[R]) -> R | None:
        text = files.read(self._at(folder, name))
        if text is None:
            return None
        try:
            return kind.model_validate_json(text)
        except ValidationError as error:
            raise unreadable(error) from error
