"""Who stands for a bundle: a detached signature over its digest, in the form of `ssh-keygen -Y`, checked by ssh-keygen itself.

What is signed is one line: the digest and a line feed, as `kernelwright verify BUNDLE --digest` prints it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.errors import MachineError, UserError
from tools.evidence.claims import Claim, fails, holds
from tools.logs import printable

NAMESPACE = "kernelwright-evidence"
"""What such signatures are for: one made for anything else, a commit or a mail, does not count."""
TOOL = "ssh-keygen"
LIMIT_S = 20.0
PATTERN = frozenset("*?!")
"""Signs in the allowed signers' file that make a name a pattern."""


@dataclass(frozen=True)
class Signature:
    """A signature, and whose is accepted."""

    file: Path
    """Made by `ssh-keygen -Y sign -n kernelwright-evidence`."""
    allowed: Path
    """Names and public keys, as ssh-keygen's page describes under ALLOWED SIGNERS."""
    signer: str = ""
    """Name in that file that must have signed; empty: anyone in it."""

    def __post_init__(self) -> None:
        """Refuse what cannot be checked at all: before the bundle is looked at."""
        for path, option in ((self.file, "--signature"), (self.allowed, "--allowed-signers")):
            if not path.is_file():
                raise UserError(f"{option}: there is no file {path}.", "Name one that is there; docs/evidence.md shows how both are made.")
        if shutil.which(TOOL) is None:
            raise MachineError(f"{TOOL} is not installed, and it alone checks signatures.", "Install OpenSSH's client tools, 8.2 or newer.")


def signature_claim(signature: Signature, digest: str) -> Claim:
    """Say whether one of the allowed signers, or the one that was named, signed this digest."""
    named = (signature.signer,) if signature.signer else _signers(signature)
    if not named:
        return fails("signature", f"the key that signed is of nobody in {signature.allowed}")
    said = ""
    for name in named:
        done = _run("verify", signature, "-I", name, "-n", NAMESPACE, text=f"{digest}\n")
        if done.returncode == 0:
            return holds("signature", f"{name} signed this digest: {_last(done.stdout)}")
        said = _last(done.stderr or done.stdout)
    return fails("signature", f"{', '.join(named)} did not sign this digest: {said}")


def _signers(signature: Signature) -> tuple[str, ...]:
    """Names of the key that signed in the allowed signers' file; patterns name nobody."""
    found = _run("find-principals", signature).stdout.replace(",", "\n").splitlines()
    return tuple(name for line in found if (name := line.strip()) and not PATTERN & set(name))


def _run(what: str, signature: Signature, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [TOOL, "-Y", what, "-f", str(signature.allowed), "-s", str(signature.file), *words]
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=LIMIT_S, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError(f"{TOOL} gave no answer ({error}).", "Try again, or leave --signature out.") from error


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return printable(lines[-1]) if lines else f"{TOOL} gave no reason"
