"""The release check: what it runs, and what it keeps."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from benchmarks.evaluator import honest_corpus, soak
from benchmarks.release import Part, Release, parts


def python(name: str, code: str, limit_s: float = 20, least_s: float = 0) -> Part:
    """A part that runs a line of Python."""
    return Part(name, f'-c "{code}"', limit_s, least_s)


def test_each_gpu_has_a_part_and_each_part_a_log(tmp_path: Path) -> None:
    """Two parts at once see one GPU each; their logs and a table of endings are kept."""
    release = Release(tmp_path, 0)
    code = "import os, time; time.sleep(1); print('GPU', os.environ['CUDA_VISIBLE_DEVICES'])"
    assert release.run([python("one", code), python("two", code)], [4, 7])
    assert {release.results[name].last for name in ("one", "two")} == {"GPU 4", "GPU 7"}
    assert "GPU 4" in (tmp_path / "one.log").read_text() + (tmp_path / "two.log").read_text()
    assert "| one |" in (tmp_path / "summary.md").read_text()


def test_a_part_is_cut_off_at_its_limit_and_keeps_its_log(tmp_path: Path) -> None:
    """What takes too long is ended with all it started; that is no success, and the next part runs."""
    # where whoever started the tests ignores SIGINT, so would it, and be waited for
    heard = "import signal, time; signal.signal(signal.SIGINT, signal.default_int_handler)"
    slow = python("slow", f"{heard}; print('begun', flush=True); time.sleep(60)", limit_s=1.5)
    release = Release(tmp_path, 0)
    assert not release.run([slow, python("next", "print('well')")], [0])
    assert release.results["slow"].status is None
    assert "begun" in (tmp_path / "slow.log").read_text()
    assert release.results["next"].last == "well"


def test_the_same_folder_goes_on_with_what_failed(tmp_path: Path) -> None:
    """A part that ended well is not run again; one that failed is."""
    flag = tmp_path / "flag"
    good = python("good", f"open('{flag}', 'a').write('x')")
    assert not Release(tmp_path, 0).run([good, python("bad", "raise SystemExit(3)")], [0])
    assert Release(tmp_path, 0).run([good, python("bad", "print('mended')")], [0])
    assert flag.read_text() == "x"
    assert [row["status"] for row in json.loads((tmp_path / "summary.json").read_text())] == [0, 0]


def test_what_does_not_fit_is_not_begun(tmp_path: Path) -> None:
    """A part that needs longer than what is left waits for another time; a shorter one takes its place."""
    release = Release(tmp_path, 30)
    assert not release.run([python("long", "print(1)", least_s=300), python("short", "print(2)")], [0])
    assert list(release.results) == ["short"]


def test_the_long_benchmarks_take_their_command_lines() -> None:
    """What the check says to the soak and to the honest corpus, folders with blanks included, is what they understand."""
    given = argparse.Namespace(liger=Path("/a b"), fla=None, triton=None, kernelbench=None, only=["soak", "corpus"])
    corpus, soaked = (shlex.split(part.command.format(out="out"))[2:] for part in parts(given))
    assert soak.command_line().parse_args(soaked).out == Path("out.jsonl")
    assert honest_corpus.command_line().parse_args(corpus).liger == Path("/a b")
