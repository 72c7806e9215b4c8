"""Keys stay with the agents: which variables a cluster of one's own is started with, and which look like keys on a node."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|TERM|CC|CXX|VIRTUAL_ENV|PYTHON\w*|LD_LIBRARY_PATH|CONDA_PREFIX|OMP_NUM_THREADS"
    r"|(CUDA|NVIDIA|NCCL|TRITON|TORCH|RAY|KERNELWRIGHT)_\w+"
)
"""Variables that workers may need; everything else stays behind."""
_SECRET = re.compile(r"(^|_)(API_?KEY|ACCESS_KEY(_ID)?|SECRET\w*|TOKEN|PASSWORD|PASSWD|CREDENTIALS?)$")
_OWN = "RAY_AUTH_TOKEN"


@contextmanager
def without_keys() -> Iterator[None]:
    """Leave this process only what workers may need of its environment, for as long as what they inherit from is started."""
    before = dict(os.environ)
    for name in before:
        if not _KEPT.fullmatch(name) or looks_secret(name):
            del os.environ[name]
    try:
        yield
    finally:
        os.environ.update({name: value for name, value in before.items() if name not in os.environ})


def looks_secret(name: str) -> bool:
    """Whether a variable's name is that of a key, Ray's own token apart."""
    return name != _OWN and _SECRET.search(name.upper()) is not None


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Name what looks like a key and is not empty."""
    return tuple(sorted(name for name, value in environment.items() if value and looks_secret(name)))
