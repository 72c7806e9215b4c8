"""Forged bundles with fresh hashes, found by their own figures: nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.evidence import WRONG_KERNEL, forge, rehash, timed_elsewhere
from tools.evidence import read_bundle, write_bundle
from tools.evidence.manifest import digest_of
from tools.records import DEFAULT_POLICY, PrecisionPolicy, Tier

Failing = Callable[..., set[str]]


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    """A bundle with measured times."""
    write_bundle(timed_elsewhere(), tmp_path / "timed")
    return tmp_path / "timed"


def test_an_honest_bundle_holds(folder: Path, timed: Path, failing: Failing) -> None:
    """No claim of an estimated or a measured bundle fails."""
    assert failing(folder) == set()
    assert failing(timed) == set()


def test_damage_ends_the_check(folder: Path, failing: Failing, verify: Callable[..., Any]) -> None:
    """Where a byte is not what the manifest says, that is said, and nothing else is believed or run."""
    (folder / "kernel.py").write_text("import os")
    claims = verify(folder, run=True)
    assert claims["files"].standing == "fails"
    assert "kernel.py" in claims["files"].words
    assert claims["everything else"].standing == "not checked"


def test_the_digest_finds_a_bundle_made_anew(folder: Path, failing: Failing) -> None:
    """A forgery with fresh hashes has another digest than the one that was published."""
    published = digest_of(folder)
    assert failing(folder, digest=published) == set()
    forge(folder, "origin.json", lambda value: value.update(run="another"))
    assert failing(folder) == set()
    assert failing(folder, digest=published) == {"digest"}


def test_a_swapped_kernel_is_another_candidate(folder: Path, failing: Failing) -> None:
    """A kernel put into the place of the judged one is not what the evaluation names."""
    (folder / "kernel.py").write_text(WRONG_KERNEL)
    rehash(folder)
    assert failing(folder) == {"names"}


@pytest.mark.parametrize("fields", [{"verdict": "WRONG"}, {"correctness": None}, {"rule": "x"}, {"seconds": "long"}, {"new": 1}])
def test_records_that_contradict_themselves_cannot_be_read(folder: Path, failing: Failing, fields: Any) -> None:
    """A speed without a PASS, a PASS without errors, a rule without a cheat, a field of another type: the record itself refuses."""
    forge(folder, "evaluation.json", lambda value: value["evaluation"].update(fields))
    assert failing(folder) == {"records"}


@pytest.mark.parametrize("file", ["evaluation.json", "problem.json", "seeds.json", "hardware.json", "origin.json", "baselines.json"])
@pytest.mark.parametrize("text", ["", "[1]", "null", "{}", "[" * 100_000, "\xff"])
def test_nonsense_in_a_file_is_a_failing_claim(folder: Path, failing: Failing, file: str, text: str) -> None:
    """Whatever a stranger writes into a file ends in one claim, never in a stack trace."""
    (folder / file).write_bytes(text.encode("latin-1"))
    rehash(folder)
    assert failing(folder) == {"records"}


def test_errors_beyond_their_limits_are_no_pass(folder: Path, failing: Failing) -> None:
    """A PASS whose errors are larger than its limits cannot be written down."""
    forge(folder, "evaluation.json", lambda value: value["evaluation"]["correctness"]["outputs"][0].update(relative_l2=1.0))
    assert failing(folder) == {"records"}


def test_a_pass_without_seeds_is_no_evidence(folder: Path, failing: Failing) -> None:
    """The seeds of what was judged belong to the evidence."""
    forge(folder, "seeds.json", list.clear)
    assert failing(folder) == {"seeds"}


def test_a_better_estimate_does_not_follow_from_the_launches(folder: Path, failing: Failing) -> None:
    """An estimate halved is not what the model gives."""
    us = read_bundle(folder).evaluation.estimate
    assert us is not None
    forge(folder, "evaluation.json", lambda value: value["evaluation"]["estimate"].update(candidate_us=us.candidate_us / 2))
    assert failing(folder) == {"estimate"}


def test_a_slower_baseline_does_not_follow_either(folder: Path, failing: Failing) -> None:
    """An eager time doubled in the baselines is not what the model gives."""
    forge(folder, "baselines.json", lambda value: value["estimate"].update(eager_us=1e6))
    assert failing(folder) == {"baselines"}


def test_a_better_median_does_not_follow_from_the_raw_times(timed: Path, failing: Failing) -> None:
    """A median, a speed-up and an interval are each held against the raw times."""
    forge(timed, "evaluation.json", lambda value: value["evaluation"]["timing"]["candidate"].update(median_us=2.0))
    assert failing(timed) == {"medians"}
    forge(timed, "evaluation.json", lambda value: value["evaluation"]["timing"]["speedups"].update(eager=[9.0, 8.9, 9.1]))
    assert failing(timed) == {"medians", "speed-up"}


def test_raw_times_cannot_be_left_out_of_a_comparison(timed: Path, failing: Failing) -> None:
    """Slow calls dropped from the raw times change the count."""
    forge(timed, "timings.json", lambda value: value.update(candidate=value["candidate"][:40]))
    assert "medians" in failing(timed)


def test_a_tier_must_be_allowed_by_the_clocks(tmp_path: Path, failing: Failing) -> None:
    """A time without chains that confirm it is not bracketed."""
    write_bundle(timed_elsewhere(tier=Tier.BRACKETED), tmp_path / "bundle")
    assert failing(tmp_path / "bundle") == set()
    forge(tmp_path / "bundle", "timings.json", lambda value: value.update(bracket=[]))
    forge(tmp_path / "bundle", "evaluation.json", lambda value: value["evaluation"]["timing"].update(bracket=None))
    assert failing(tmp_path / "bundle") == {"tier"}


def test_an_impossible_time_is_refused(timed: Path, failing: Failing) -> None:
    """Coherent times below what the device needs to read the inputs once are found by the floor: here 4 GiB in 4 µs."""
    forge(timed, "problem.json", lambda value: value["problem"]["abi"]["arguments"][0].update(shape=[65536, 16384]))
    forge(timed, "problem.json", lambda value: value["problem"]["work"].update(eager_bytes=2**34))
    assert failing(timed) == {"plausible"}


def test_hidden_work_is_found_again(timed: Path, failing: Failing) -> None:
    """Chains in which a call takes much longer than its events say show work outside of them."""
    forge(timed, "timings.json", lambda value: value.update(bracket=[50.0] * 5))
    forge(
        timed, "evaluation.json", lambda value: value["evaluation"]["timing"]["bracket"].update(median_us=50.0, low_us=50.0, high_us=50.0)
    )
    assert failing(timed) == {"plausible"}


def test_a_time_without_a_gpu_is_refused(timed: Path, failing: Failing) -> None:
    """A measured time beside a correctness that the interpreter judged is a contradiction."""
    forge(timed, "evaluation.json", lambda value: value["evaluation"]["correctness"].update(executor="interpreter"))
    assert failing(timed) == {"timing"}


def test_a_policy_asked_for_must_be_the_policy(folder: Path, failing: Failing) -> None:
    """Whoever asks for exact gets no bundle made under another policy, or under one that was loosened; exact will do for default."""
    assert failing(folder, policy=PrecisionPolicy()) == set()
    assert failing(folder, policy=PrecisionPolicy(name="bf16")) == {"policy"}
    assert failing(folder, policy=DEFAULT_POLICY) == set()
    forge(folder, "problem.json", lambda value: value["problem"]["policy"].update(tolerance=0.1))
    assert failing(folder, policy=PrecisionPolicy()) == {"policy", "names", "limits"}
    assert failing(folder, policy=PrecisionPolicy(tolerance=0.1)) == {"names", "limits"}


def test_what_packing_takes_follows_from_its_raw_times(timed: Path, failing: Failing) -> None:
    """A packing time with its raw times holds; one that they do not give, or without any, fails."""
    stated = {"time": {"median_us": 30.0, "low_us": 25.0, "high_us": 35.0, "count": 3}, "tier": "in-process", "nbytes": None}
    forge(timed, "evaluation.json", lambda value: value["evaluation"]["timing"].update(packing=stated))
    assert failing(timed) == {"medians"}
    forge(timed, "timings.json", lambda value: value.update(packing=[20.0, 30.0, 40.0]))
    assert failing(timed) == set()
    forge(timed, "timings.json", lambda value: value.update(packing=[20.0, 20.0, 40.0]))
    assert failing(timed) == {"medians"}
