"""Bundles against this machine: what a hash cannot prove is found by evaluating again, kernel and reference both in the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.evidence import PROBLEM, WRONG_KERNEL, forge, real_bundle, rehash, rename, timed_elsewhere
from tools.evidence import Claim, write_bundle

Verify = Callable[..., dict[str, Claim]]


def _failed(claims: dict[str, Claim]) -> set[str]:
    return {name for name, claim in claims.items() if claim.standing == "fails"}


def test_an_honest_bundle_holds_on_this_machine(folder: Path, verify: Verify) -> None:
    """Fresh seeds give the same verdict, class and estimate, and nothing is left unchecked."""
    claims = verify(folder, run=True)
    assert {claim.standing.value for claim in claims.values()} == {"holds"}, claims
    assert {"correct here", "errors", "class", "estimated time", "shapes"} <= claims.keys()


def test_what_another_machine_tells_is_not_believed(folder: Path, verify: Verify) -> None:
    """Versions and isolation that are not those of this machine are told, and said to be proved by nothing."""
    forge(folder, "evaluation.json", lambda value: value["evaluation"].update(sandbox="a vault", versions={"torch": "9.9"}))
    claims = verify(folder, run=True)
    assert {name for name, claim in claims.items() if claim.standing == "not checked"} == {"versions", "isolation"}
    assert "torch 9.9 in the bundle" in claims["versions"].words
    assert "nothing proves it" in claims["isolation"].words


def test_a_swapped_kernel_is_found_by_running_it(folder: Path, verify: Verify) -> None:
    """A forger who renames everything passes every check of figures; the kernel itself does not."""
    (folder / "kernel.py").write_text(WRONG_KERNEL)
    rehash(folder)
    rename(folder)
    assert _failed(verify(folder)) == set()
    claims = verify(folder, run=True)
    assert _failed(claims) == {"correct here"}
    assert "WRONG" in claims["correct here"].words


def test_a_loosened_policy_does_not_loosen_this_machine(folder: Path, verify: Verify) -> None:
    """A wrong kernel under an `exact` that was made a million times looser is judged by the real exact, and fails."""
    (folder / "kernel.py").write_text(WRONG_KERNEL)
    forge(folder, "problem.json", lambda value: value["problem"]["policy"].update(factor=4e6))
    loose = {"limit_relative_l2": 10.0, "limit_worst_row": 10.0}
    forge(folder, "evaluation.json", lambda value: value["evaluation"]["correctness"]["outputs"][0].update(loose))
    rename(folder)
    assert _failed(verify(folder, run=True)) == {"policy", "correct here"}


def test_times_of_another_machine_are_not_checked_here(tmp_path: Path, verify: Verify) -> None:
    """A GPU's bundle on a machine without one: correctness is decided by the interpreter, times are said to be beyond reach."""
    write_bundle(timed_elsewhere(), tmp_path / "bundle")
    claims = verify(tmp_path / "bundle", run=True)
    assert claims["correct here"].standing == "holds"
    assert "interpreter" in claims["correct here"].words
    assert claims["measured time"].standing == "not checked"
    assert "no such GPU" in claims["measured time"].words
    assert _failed(claims) == set()


def test_a_reference_that_reaches_for_this_machine_is_held(folder: Path, tmp_path: Path, verify: Verify) -> None:
    """A stranger's reference runs in the sandbox: what it tries to write outside is not there, and the bundle fails."""
    booty = tmp_path / "booty"
    (folder / "problem.py").write_text(f"open({str(booty)!r}, 'w').write('x')\n{PROBLEM}")
    rehash(folder)
    rename(folder)
    claims = verify(folder, run=True)
    assert not booty.exists()
    assert _failed(claims) == {"shapes"}


def test_a_record_that_misdescribes_its_problem_is_found(folder: Path, verify: Verify) -> None:
    """Fewer sizes than the source gives, so that less would be checked, are found; the source's own sizes are used."""
    forge(folder, "problem.json", lambda value: value.update(variants=[]))
    claims = verify(folder, run=True)
    assert _failed(claims) == {"shapes"}
    assert "rows=3, columns=65" in claims["correct here"].words


@pytest.mark.parametrize(("returns", "failed"), [("", set()), ("[tensor]", {"shapes"})])
def test_a_records_structure_of_results_is_checked(folder: Path, verify: Verify, returns: str, failed: set[str]) -> None:
    """An older record says nothing of it, and holds; one that says another structure than the source gives is found."""
    forge(folder, "problem.json", lambda value: value["problem"]["abi"].update(returns=returns))
    rename(folder)
    assert _failed(verify(folder, run=True)) == failed


def test_another_problem_than_your_own_is_named(folder: Path, verify: Verify) -> None:
    """With your own copy of the problem, a bundle about a problem that looks alike fails, and your copy judges the kernel."""
    own: Any = real_bundle().problem
    easier = own.model_copy(update={"source": PROBLEM.replace("* 0.5", "* 0.25")})
    claims = verify(folder, run=True, own_copy=easier)
    assert _failed(claims) == {"problem", "correct here"}
