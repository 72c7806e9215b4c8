"""Verifying one bundle: its files, then itself, then its kernel on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tools.errors import UserError
from tools.evaluation.local import LocalPool
from tools.evaluation.wire.jobs.derive import Derived
from tools.evaluation.wire.size_classes import LARGE_BYTES
from tools.evidence import manifest
from tools.evidence.bundle import Bundle
from tools.evidence.claims import Claim, Report, Standing, either, fails, holds, unchecked
from tools.evidence.consistency import consistency, own_sheet, policy_claim
from tools.evidence.folder import read_bundle
from tools.evidence.repetition import problem_claims, repeated
from tools.evidence.signature import Signature, signature_claim
from tools.hardware import detect_sheet
from tools.hardware.devices import visible_devices
from tools.records import Evaluation, EvaluationRequest, HardwareSheet, PrecisionPolicy, Problem

OpenPool = Callable[[Bundle, bool], LocalPool]
"""Opens the pool that repeats a bundle's evaluation; the flag asks for a wary one. Whoever opens it closes it."""

MAX_TIMEOUT_S = 600.0
"""What a phase may take here, whatever the bundle asks for."""


class Verifier:
    """Checks the bundle in one folder."""

    def __init__(
        self,
        folder: Path,
        *,
        digest: str = "",
        signature: Signature | None = None,
        policy: PrecisionPolicy | None = None,
        own_copy: Problem | None = None,
    ) -> None:
        """Open `folder`; one that holds no bundle raises UserError.

        `digest`, `signature` and `policy` are what the user demands of it. `own_copy` is the user's own problem: the reference then is the
        user's, and is trusted.
        """
        self._folder = folder
        self._digest = manifest.digest_of(folder)
        self._expected = digest.strip().lower()
        self._signature = signature
        self._policy = policy
        self._own_copy = own_copy
        self._claims: list[Claim] = []

    async def verify(self, open_pool: OpenPool | None) -> Report:
        """Check everything; None for `open_pool` leaves the kernel unrun."""
        bundle = self._read()
        fresh = None
        if bundle is not None:
            self._claims += [policy_claim(bundle, self._policy), *consistency(bundle)]
            if open_pool is None:
                self._claims.append(unchecked("correct here", "asked not to run anything"))
            else:
                fresh = await self._repeat(bundle, open_pool)
        return Report(bundle=str(self._folder), digest=self._digest, claims=tuple(self._claims), evaluation=fresh)

    def _read(self) -> Bundle | None:
        """Check the files and read the records; None where they cannot be read, or are not what the manifest says."""
        self._claims += self._files()
        try:
            bundle = read_bundle(self._folder)
        except UserError as error:
            self._claims.append(fails("records", error.what))
            return None
        self._claims.append(holds("records", "every file is a valid record, and no speed is given without a PASS"))
        if any(claim.standing is Standing.FAILS for claim in self._claims):
            self._claims.append(unchecked("everything else", "these files are not what was written: nothing of them was run"))
            return None
        return bundle

    def _files(self) -> Iterator[Claim]:
        found = manifest.damages(self._folder)
        for damage in found:
            yield fails("files", str(damage))
        if not found:
            yield holds("files", "every byte is what the manifest says; that proves no more than that they belong together")
        if self._expected:
            words = f"the bundle's digest is {self._digest[:16]}…, expected {self._expected[:16]}…"
            yield either("digest", self._digest == self._expected, words)
        if self._signature is not None:
            yield signature_claim(self._signature, self._digest)

    async def _repeat(self, bundle: Bundle, open_pool: OpenPool) -> Evaluation | None:
        pool = open_pool(bundle, self._own_copy is None)
        try:
            derived = await pool.derive(self._asked(bundle))
            self._claims += problem_claims(bundle, derived, self._own_copy)
            if derived.problem is None or _too_large(derived):
                return None
            fresh = await pool.evaluate(self._request(bundle, derived))
            self._claims += repeated(bundle, fresh)
            return fresh
        except (ValueError, LookupError) as error:
            # a stranger's reference answers for itself: what is no answer must not end the command
            self._claims.append(fails("correct here", f"the problem's own process gave no usable answer: {error}"))
            return None

    def _asked(self, bundle: Bundle) -> Problem:
        """The problem under the policy to judge by: never looser than its name allows, and the user's own where one was given."""
        problem = self._own_copy or bundle.problem
        given = bundle.problem.policy
        standard = given.model_copy(update={"factor": min(given.factor, PrecisionPolicy().factor)})
        return problem.model_copy(update={"policy": self._policy or standard})

    def _request(self, bundle: Bundle, derived: Derived) -> EvaluationRequest:
        assert derived.problem is not None
        return bundle.request.model_copy(
            update={
                "problem": derived.problem,
                "variants": derived.variants,
                "target": _target(bundle),
                "timeout_s": min(bundle.timeout_s, MAX_TIMEOUT_S),
            },
        )


def _too_large(derived: Derived) -> bool:
    """Whether a stranger's small sizes would fill this machine's memory."""
    return any(variant.abi.nbytes >= LARGE_BYTES for variant in derived.variants)


def _target(bundle: Bundle) -> HardwareSheet:
    """The device to judge for: this machine's where the bundle was timed and there is one, else the bundle's."""
    there = visible_devices().values() if bundle.evaluation.timing else ()
    here = detect_sheet() if there and bundle.hardware.title not in there else None
    return here or own_sheet(bundle) or bundle.hardware
