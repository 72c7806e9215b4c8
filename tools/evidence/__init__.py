"""Evidence: a bundle of everything an evaluation rests on, and the checks that say which of its claims hold.

`write_bundle` and `read_bundle` move a `Bundle` to a folder and back, `damages` names every byte that is not what the manifest
says, `consistency` holds a bundle against itself, and `repetition` against a new evaluation on this machine. A bundle may come from a
stranger: nothing here imports or unpickles what is in one. Its kernel and its reference run in the evaluator's sandbox alone;
keep that when you change a file here.
"""

from tools.evidence.bundle import Bundle, Origin, make_bundle
from tools.evidence.claims import Claim, Report, Standing
from tools.evidence.folder import read_bundle, write_bundle
from tools.evidence.manifest import Damage, damages
from tools.evidence.signature import Signature
from tools.evidence.verify import Verifier

__all__ = [
    "Bundle", "Claim", "Damage", "Origin", "Report", "Signature", "Standing", "Verifier", "damages", "make_bundle", "read_bundle",
    "write_bundle",
]  # fmt: skip
