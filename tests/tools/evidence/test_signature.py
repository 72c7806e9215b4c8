"""Signatures of bundles, made and checked by the real ssh-keygen."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.evidence import forge
from tools.errors import MachineError, UserError
from tools.evidence import Claim, Signature
from tools.evidence.manifest import digest_of
from tools.evidence.signature import NAMESPACE

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen makes the keys and signatures")
Verify = Callable[..., dict[str, Claim]]


def keygen(*words: str) -> None:
    """Run ssh-keygen."""
    subprocess.run(["ssh-keygen", *words], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys of two people, and a file that accepts both."""
    place = tmp_path_factory.mktemp("keys")
    lines = []
    for name in ("ada", "bob"):
        keygen("-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(place / name))
        lines.append(f"{name}@example.com {(place / f'{name}.pub').read_text()}")
    (place / "signers").write_text("".join(lines))
    (place / "only_ada").write_text(lines[0])
    return place


def signed(keys: Path, folder: Path, tmp_path: Path, *, by: str = "ada", namespace: str = NAMESPACE) -> Path:
    """Publish a bundle's digest and sign it, as docs/evidence.md says."""
    text = tmp_path / "bundle.digest"
    text.write_text(f"{digest_of(folder)}\n")
    keygen("-q", "-Y", "sign", "-f", str(keys / by), "-n", namespace, str(text))
    return tmp_path / "bundle.digest.sig"


def test_a_signature_names_who_made_it(folder: Path, keys: Path, tmp_path: Path, verify: Verify) -> None:
    """A digest that an allowed signer signed holds, with name and key; the one who is asked for must be the one."""
    file = signed(keys, folder, tmp_path)
    claim = verify(folder, signature=Signature(file, keys / "signers"))["signature"]
    assert claim.standing == "holds"
    assert "ada@example.com" in claim.words
    assert "SHA256:" in claim.words
    assert verify(folder, signature=Signature(file, keys / "signers", "ada@example.com"))["signature"].standing == "holds"
    assert verify(folder, signature=Signature(file, keys / "signers", "bob@example.com"))["signature"].standing == "fails"


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("seeds.json", lambda value: value[0]["calls"][0].update(seed=value[0]["calls"][0]["seed"] + 1)),
        ("evaluation.json", lambda value: value["evaluation"]["versions"].update(torch="9.9")),
        ("evaluation.json", lambda value: value["evaluation"].update(sandbox="a vault")),
    ],
)
def test_what_nothing_else_proves_is_found_by_the_signature(
    folder: Path, keys: Path, tmp_path: Path, verify: Verify, file: str, change: Callable[..., None]
) -> None:
    """A seed, a version or the isolation changed, with fresh hashes, breaks no other claim; the signature no longer fits."""
    signature = Signature(signed(keys, folder, tmp_path), keys / "signers")
    forge(folder, file, change)
    assert {name for name, claim in verify(folder).items() if claim.standing == "fails"} == set()
    claims = verify(folder, signature=signature, run=True)
    assert {name for name, claim in claims.items() if claim.standing == "fails"} == {"signature"}
    assert "nothing of them was run" in claims["everything else"].words


def test_whose_signature_counts(folder: Path, keys: Path, tmp_path: Path, verify: Verify) -> None:
    """A signature by somebody who is not in the file fails, and so does one that was made for something else."""
    stranger = signed(keys, folder, tmp_path, by="bob")
    assert "nobody" in verify(folder, signature=Signature(stranger, keys / "only_ada"))["signature"].words
    stranger.unlink()
    other = signed(keys, folder, tmp_path, namespace="git")
    assert verify(folder, signature=Signature(other, keys / "signers"))["signature"].standing == "fails"


def test_nonsense_is_no_signature(folder: Path, keys: Path, tmp_path: Path, verify: Verify) -> None:
    """A file that holds something else is a claim that fails, not an error."""
    (tmp_path / "nonsense").write_text("\x1b[2Jsigned, honestly")
    assert verify(folder, signature=Signature(tmp_path / "nonsense", keys / "signers"))["signature"].standing == "fails"


def test_what_cannot_be_checked_is_said_first(keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not there, and a machine without ssh-keygen, are one clear line each."""
    with pytest.raises(UserError, match="--signature: there is no file"):
        Signature(tmp_path / "nowhere.sig", keys / "signers")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="ssh-keygen is not installed") as missing:
        Signature(keys / "ada.pub", keys / "signers")
    assert "OpenSSH" in missing.value.mend
