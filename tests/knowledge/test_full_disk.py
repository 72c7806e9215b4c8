"""A store that can grow no more."""

import subprocess
import sys
from pathlib import Path

from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome

FILLER = """
import resource, signal, sys
from knowledge.vectors.embedding import HashingEmbedder
from knowledge.records import Outcome
from knowledge.store import KnowledgeBase
from tools.errors import MachineError
# past the limit a write fails as on a full disk, instead of ending the process
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
outcome = Outcome.model_validate_json(sys.stdin.read())
base = KnowledgeBase(sys.argv[1], HashingEmbedder(), seeds=None)
for number in range(2000):
    try:
        base.learn_now(outcome.model_copy(update={"run": f"run{number}"}))
    except MachineError as error:
        print(f"{number} {error.what} {error.mend}")
        break
"""


def test_a_full_disk_is_one_clear_line_and_loses_nothing(tmp_path: Path, make_base: MakeBase, make_outcome: MakeOutcome) -> None:
    """What was learnt before the disk was full is there, and learning goes on once there is room."""
    given = make_outcome().model_dump_json()
    done = subprocess.run([sys.executable, "-c", FILLER, str(tmp_path / "store")], input=given, capture_output=True, text=True, check=True)
    count, _, said = done.stdout.partition(" ")
    assert "what was kept before is still there" in said
    base: KnowledgeBase = make_base()
    assert len(base.all()[0].trials) == int(count) > 10
    assert base.learn_now(make_outcome(run="later"))
    assert [one.state for one in base.diagnose()] == ["fine"] * 4
