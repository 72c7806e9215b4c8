"""Taking a job so that nobody else does: claims are made once, never moved, and numbered.

The N-th claim on a job may be made only when the one before it is over: its worker gave it back, or died. Making it is one rename
that only one maker wins, so there is no moment in which two hold the job; a worker that was only slow sees the later claim and
drops what it did.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from pathlib import Path

from pydantic import ValidationError

from tools.spool import files
from tools.spool.folder import Spool
from tools.spool.lookout import Lookout
from tools.spool.records import Claim, Identity, Job

_CLAIM = "claim.json"
_GIVEN_BACK = "given-back.json"


class Claims:
    """The claims of one spool, as one worker sees them."""

    def __init__(self, spool: Spool, worker: Identity, lookout: Lookout) -> None:
        """Claim for `worker`; `lookout` says which other workers are dead."""
        self._folder = spool.folder / "claims"
        self._spool = spool
        self._worker = worker
        self._lookout = lookout

    def take(self, job: Job) -> Claim | None:
        """Take the job; None where another worker has it, or was faster, or it is answered."""
        last = latest(self._folder, job.id)
        generation, died = 1, 0
        if last is not None:
            number, claim, given_back = last
            over = given_back or claim is None or self._lookout.is_dead(claim.worker)
            if not over:
                return None
            # a claim that cannot be read is of a taker that died while it was copied
            died = (claim.died if claim else 0) + (0 if given_back else 1)
            generation = number + 1
        made = Claim(job=job.id, token=job.token, worker=self._worker, generation=generation, died=died, since=time.time())
        if not files.create_folder(self._folder / f"{job.id}.{generation}", _CLAIM, made.model_dump_json()):
            return None
        if self._spool.has_answer(job.id):
            # answered and cleared between our look and our claim
            self.clear(job.id)
            return None
        return made

    def holds(self, claim: Claim) -> bool:
        """Whether nobody took the job over meanwhile."""
        last = latest(self._folder, claim.job)
        return last is not None and last[0] == claim.generation

    def give_back(self, claim: Claim) -> None:
        """Let anyone take the job."""
        folder = self._folder / f"{claim.job}.{claim.generation}"
        if folder.is_dir():
            files.create(folder / _GIVEN_BACK, "{}")

    def clear(self, job_id: str) -> None:
        """Remove every claim on a job that is answered or withdrawn."""
        clear(self._folder, job_id)


def latest(folder: Path, job_id: str) -> tuple[int, Claim | None, bool] | None:
    """The last claim on a job: its number, the claim (None where it cannot be read), and whether it was given back."""
    found = numbers(folder, job_id)
    if not found:
        return None
    place = folder / f"{job_id}.{max(found)}"
    try:
        text = files.read(place / _CLAIM)
        claim = Claim.model_validate_json(text) if text is not None else None
    except (ValidationError, ValueError):
        claim = None
    return max(found), claim, (place / _GIVEN_BACK).exists()


def clear(folder: Path, job_id: str) -> None:
    """Remove every claim on a job; each is moved away whole first, so that nobody meets half of one."""
    for number in numbers(folder, job_id):
        gone = folder / f".{job_id}.{number}.{secrets.token_hex(6)}"
        try:
            (folder / f"{job_id}.{number}").rename(gone)
        except FileNotFoundError:
            continue
        shutil.rmtree(gone, ignore_errors=True)


def numbers(folder: Path, job_id: str) -> list[int]:
    """Numbers of the claims on a job."""
    prefix = f"{job_id}."
    with os.scandir(folder) as entries:
        endings = [entry.name.removeprefix(prefix) for entry in entries if entry.name.startswith(prefix)]
    return [int(ending) for ending in endings if ending.isdecimal()]
