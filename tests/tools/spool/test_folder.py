"""The folder: what is put is read back whole, once, and nothing else is taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.spool_worker import announcement
from tests.tools.spool.conftest import request_of
from tools.errors import UserError
from tools.spool import Spool
from tools.spool.records import Answer, Failure, Job


def job_of(source: str = "a", token: str = "t") -> Job:
    """An asking."""
    return Job(token=token, asked=0.0, asker="here", evaluation=request_of(source))


def answer_to(job: Job, what: str) -> Answer:
    """An answer that is a failure."""
    failure = Failure(what=what, mend="Mend it.")
    return Answer(job=job.id, key=job.question.key, announced=announcement(), finished=0.0, failure=failure)


def test_a_job_is_read_back_as_it_was_put(spool: Spool) -> None:
    """Problem, source, target and stage survive the folder."""
    job = job_of("# verdict: PASS")
    assert spool.put_job(job)
    assert spool.job(job.id) == job


def test_the_same_job_is_asked_once(spool: Spool) -> None:
    """A second asking of one job changes nothing."""
    spool.put_job(job_of(token="first"))
    assert not spool.put_job(job_of(token="second"))
    found = spool.job(job_of().id)
    assert found is not None
    assert found.token == "first"


def test_the_first_answer_stays(spool: Spool) -> None:
    """A later answer to the same job is refused and changes nothing."""
    job = job_of()
    assert spool.put_answer(answer_to(job, "first"))
    assert not spool.put_answer(answer_to(job, "second"))
    found = spool.answer(job.id)
    assert found is not None
    assert found.failure is not None
    assert found.failure.what == "first"


def test_a_file_on_its_way_is_not_seen(spool: Spool) -> None:
    """What begins with a dot, as rsync and we name unfinished files, is no job yet."""
    (spool.folder / "jobs" / ".half.json.x7f3").write_text("{")
    assert spool.job_files() == []


def test_a_renamed_job_is_not_believed(spool: Spool) -> None:
    """A job under another job's name is an error, not another job's question."""
    job = job_of()
    spool.put_job(job)
    (spool.folder / "jobs" / f"{job.id}.json").rename(spool.folder / "jobs" / "0123456789abcdef.json")
    with pytest.raises(ValueError, match="renamed"):
        spool.job("0123456789abcdef")


def test_nothing_is_left_beside_what_was_put(spool: Spool) -> None:
    """No temporary file outlives the writing."""
    spool.put_job(job_of())
    spool.put_job(job_of(token="again"))
    assert [path.name for path in (spool.folder / "jobs").iterdir()] == [f"{job_of().id}.json"]


def test_a_folder_of_other_things_is_no_spool(tmp_path: Path) -> None:
    """Somebody's folder is refused, and nothing is made in it."""
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UserError, match=r"thesis\.tex"):
        Spool(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_spool_of_another_version_is_refused(spool: Spool) -> None:
    """Both sides must speak the same version, and are told so."""
    (spool.folder / "spool.json").write_text('{"format": "kernelwright spool", "version": 2}')
    with pytest.raises(UserError, match="version 2"):
        Spool(spool.folder)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A path that cannot be a folder is named with the system's reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be used"):
        Spool(tmp_path / "file" / "spool")
