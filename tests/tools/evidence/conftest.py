"""A fresh copy of the session's bundle for each test, and the verifier's answer as a dictionary."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.evidence import real_bundle, wary_pool
from tools.evidence import Claim, Report, Verifier, write_bundle

Verify = Callable[..., dict[str, Claim]]


@pytest.fixture(scope="session", autouse=True)
def _closing() -> Iterator[None]:
    yield
    asyncio.run(wary_pool().close())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a real bundle."""
    write_bundle(real_bundle(), tmp_path / "bundle")
    return tmp_path / "bundle"


@pytest.fixture
def verify() -> Verify:
    """Verify a folder and return its claims by name; with `run`, its kernel is evaluated again."""

    def check(folder: Path, *, run: bool = False, **expected: Any) -> dict[str, Claim]:
        verifier = Verifier(folder, **expected)
        report: Report = asyncio.run(verifier.verify((lambda bundle, wary: wary_pool()) if run else None))
        return {claim.name: claim for claim in report.claims}

    return check


@pytest.fixture
def failing(verify: Verify) -> Callable[..., set[str]]:
    """Name the claims that fail."""

    def check(folder: Path, **given: Any) -> set[str]:
        return {name for name, claim in verify(folder, **given).items() if claim.standing == "fails"}

    return check
