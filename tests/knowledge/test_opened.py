"""Opening a store, and letting go of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.records import Situation
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.errors import UserError


def test_opening_and_listing_load_nothing_heavy(tmp_path: Path) -> None:
    """Listing a store imports neither Chroma nor sentence-transformers nor torch, and makes no index."""
    script = (
        "import sys; from knowledge.store import KnowledgeBase; base = KnowledgeBase(sys.argv[1]); assert base.all(); base.close();"
        "print([name for name in ('chromadb', 'sentence_transformers', 'torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "store")], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert not (tmp_path / "store" / "index").exists()


def test_making_one_touches_nothing(make_base: MakeBase, tmp_path: Path) -> None:
    """The folder appears on first use."""
    base = make_base()
    assert not base.folder.exists()
    assert base.all() == ()
    assert base.folder.is_dir()


async def test_a_corrupt_store_is_one_clear_error(make_base: MakeBase, make_outcome: MakeOutcome) -> None:
    """Garbage in place of the log names the file and the way out, for every entrance."""
    base = make_base()
    await base.learn(make_outcome())
    base.close()
    (base.folder / "log.sqlite3").write_bytes(b"garbage" * 5000)
    for entrance in (lambda b: b.all(), lambda b: b.check(), lambda b: b.learn_now(make_outcome())):
        with pytest.raises(UserError, match="damaged"):
            entrance(make_base())


async def test_a_store_can_be_used_again_after_close(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Closing lets go of the files only."""
    await base.learn(make_outcome())
    await base.recall(situation)
    base.close()
    assert len(await base.recall(situation)) == 1
    assert base.check() == 1
