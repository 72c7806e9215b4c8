"""Embedders: the carried model and the hashing one."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.records import Situation
from knowledge.vectors.embedding import MODEL_SHA256, HashingEmbedder, SentenceTransformerEmbedder, demand, open_embedder
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.errors import UserError
from tools.records import Action, ActionKind


def cosine(left: list[float], right: list[float]) -> float:
    """Cosine of two unit vectors."""
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def test_hashing_is_deterministic_over_processes() -> None:
    """The same text gives the same unit vector, whatever Python's hash seed."""
    script = "from knowledge.vectors.embedding import HashingEmbedder; print(HashingEmbedder(8).embed(['one pass over the row'])[0])"
    printed = subprocess.run([sys.executable, "-c", script], env={"PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=True).stdout
    (vector,) = HashingEmbedder(8).embed(["one pass over the row"])
    assert printed.strip() == str(vector)
    assert cosine(vector, vector) == pytest.approx(1.0)


def test_hashing_finds_shared_words_and_survives_none() -> None:
    """Shared words are nearer than other words; a text without a word still has a direction."""
    softmax, other, product, nothing = HashingEmbedder().embed(["row softmax", "softmax of rows", "matrix product", "…"])
    assert cosine(softmax, other) > cosine(softmax, product)
    assert cosine(nothing, nothing) == pytest.approx(1.0)


def test_settings_choose_the_embedder() -> None:
    """`hashing` must be asked for by name; the default is the carried model; nothing is loaded yet."""
    assert isinstance(open_embedder("hashing"), HashingEmbedder)
    assert isinstance(open_embedder(), SentenceTransformerEmbedder)
    assert open_embedder().name == f"all-MiniLM-L6-v2@{MODEL_SHA256[:12]}"


@pytest.mark.parametrize("setting", ["", "/no/such/model", "./no-such-model"])
def test_a_missing_model_is_a_user_error(setting: str) -> None:
    """A wrong name or path is said with the choices."""
    with pytest.raises(UserError, match="embed") as error:
        _ = open_embedder(setting).name
    assert "hashing" in error.value.mend


def test_a_folder_that_holds_no_model_is_a_user_error(tmp_path: Path) -> None:
    """An empty folder has no weights to name, and is found before anything is begun."""
    with pytest.raises(UserError, match="no weights"):
        _ = open_embedder(str(tmp_path)).name
    with pytest.raises(UserError, match="no weights"):
        demand(str(tmp_path))


def test_embedders_that_are_here_are_not_loaded_to_find_out() -> None:
    """Asking for the carried model or for hashing costs next to nothing, and a missing folder is refused."""
    demand("default")
    demand("hashing")
    with pytest.raises(UserError, match="no embedding model"):
        demand("/no/such/model")


@pytest.mark.slow
async def test_the_carried_model_recalls_by_meaning(
    make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the real model, other words for the same thing are found first, offline and without a progress bar."""
    base = make_base(embedder=open_embedder())
    for plan, lesson in (("a", "Renormalise a running sum of exponentials."), ("b", "Store feature maps with channels innermost.")):
        words = situation.model_copy(update={"summary": lesson})
        action = Action(kind=ActionKind.ALGORITHM, region="r0", parameters={"split": ord(plan)})
        await base.learn(make_outcome(plan=plan, action=action, lesson=lesson, situation=words))
    assert "exponentials" in base.search("online softmax", 1)[0].lesson
    assert "channels" in base.search("NHWC memory format for convolutions", 1)[0].lesson
    assert capfd.readouterr() == ("", "")


def test_a_hub_out_of_reach_is_one_quick_line(tmp_path: Path) -> None:
    """A model that is not on this machine is refused within seconds where the hub does not answer, and the library says nothing."""
    script = (
        "import sys; from knowledge.vectors.embedding import demand\ntry: demand('nobody/has-this')\nexcept Exception as e: print(e.what)\n"
    )
    script += "print('sentence_transformers' in sys.modules)"
    env = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True, timeout=60)
    said, imported = done.stdout.splitlines()
    assert "nobody/has-this does not load: it is not on this machine, and http://127.0.0.1:9 cannot be reached" in said
    assert (imported, done.stderr) == ("False", "")
