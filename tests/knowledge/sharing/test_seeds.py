"""The seeds that ship, and how they are planted."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from knowledge.records import StrategyState
from knowledge.sharing.seeds import Seed, read_seeds
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.actions.guide import GUIDE
from tools.errors import UserError
from tools.records import Bottleneck, OperatorFamily

SHIPPED = read_seeds()
FREE = {"persistent", "split", "layout"}
"""Parameters that language models may follow and the built-in coder does not know."""


def write_seeds(folder: Path, *items: dict[str, Any]) -> Path:
    """Make a folder of seeds."""
    folder.mkdir(exist_ok=True)
    (folder / "seeds.json").write_text(json.dumps(items))
    return folder


def item(revision: int = 1, **changes: Any) -> dict[str, Any]:
    """One seed, as it stands in a file."""
    strategy = {"title": "A title", "situation": {"families": ["softmax"]}, "kind": "tiling", "lesson": "Do it.", "source": "A book"}
    return {"name": "a-seed", "revision": revision, "strategy": strategy | changes}


@pytest.mark.parametrize("seed", SHIPPED, ids=lambda seed: seed.name)
def test_every_seed_is_whole(seed: Seed) -> None:
    """Each seed has words, a source, known parameters, says when not to do it, and is marked as seeded."""
    strategy = seed.strategy
    assert strategy.state is StrategyState.SEEDED
    assert strategy.trials == ()
    assert min(len(strategy.title), len(strategy.situation.summary), len(strategy.lesson), len(strategy.source)) > 5
    assert set(strategy.parameters) <= {p.name for p in GUIDE[strategy.kind].parameters} | FREE
    assert re.search(r"\b(not|only|never|illegal|pointless|no (gain|effect)|nothing to gain)\b", strategy.lesson.lower())
    words = len(f"{strategy.title} {strategy.situation.summary} {strategy.lesson}".split())
    assert words < 160, "the embedding model cuts longer texts"


def test_an_expected_gain_stands_in_the_lesson_or_its_figures() -> None:
    """No seed predicts a gain without figures in its lesson."""
    for seed in SHIPPED:
        if seed.strategy.expected_gain is not None:
            assert any(ch.isdigit() for ch in seed.strategy.lesson), seed.name


def test_the_seeds_cover_every_family_and_bottleneck() -> None:
    """There are at least 48, and no operator family or bottleneck is without advice."""
    situations = [seed.strategy.situation for seed in SHIPPED]
    assert len(SHIPPED) >= 48
    assert set(itertools.chain.from_iterable(s.families for s in situations)) >= set(OperatorFamily) - {OperatorFamily.OTHER}
    assert {s.bottleneck for s in situations} >= set(Bottleneck)
    assert len({seed.strategy.id for seed in SHIPPED}) == len(SHIPPED)


PRODUCTS = {OperatorFamily.MATMUL, OperatorFamily.CONVOLUTION, OperatorFamily.ATTENTION, OperatorFamily.RECURRENT}
"""Only these have a faster unit: the profiler finds `compute-unit` where there are products."""

FAMILIES = [family for family in OperatorFamily if family is not OperatorFamily.OTHER]
KNOWN = [(f, b) for f in FAMILIES for b in Bottleneck if f in PRODUCTS or b is not Bottleneck.COMPUTE_UNIT]


@pytest.mark.parametrize(("family", "bottleneck"), KNOWN, ids=str)
def test_every_family_has_advice_of_its_own_for_every_bottleneck(family: OperatorFamily, bottleneck: Bottleneck) -> None:
    """No operator that the built-in coder writes meets a bottleneck about which the seeds have nothing to say."""
    situations = [seed.strategy.situation for seed in SHIPPED if seed.strategy.situation.backend == "triton"]
    assert any(family in s.families and s.bottleneck in {bottleneck, None} for s in situations)


def test_cuda_has_advice_for_every_family_and_bottleneck() -> None:
    """Seeds for kernels in CUDA C++ cover each operator family and each bottleneck."""
    situations = [seed.strategy.situation for seed in SHIPPED if seed.strategy.situation.backend == "cuda"]
    assert set(itertools.chain.from_iterable(s.families for s in situations)) >= set(OperatorFamily) - {OperatorFamily.OTHER}
    assert {s.bottleneck for s in situations} >= set(Bottleneck)


def test_first_use_plants_the_seeds_and_later_ones_add_nothing(make_base: MakeBase) -> None:
    """A new store starts with the shipped seeds; opening it again adds none."""
    from knowledge.sharing.seeds import SEEDS  # the folder itself

    assert len(make_base(seeds=SEEDS).all()) == len(SHIPPED)
    assert make_base(seeds=SEEDS).seed() == 0


async def test_a_newer_revision_replaces_the_words_and_keeps_the_trials(
    make_base: MakeBase, make_outcome: MakeOutcome, tmp_path: Path
) -> None:
    """The new text takes over the evidence; the old one is retired, and its id still leads to the new one."""
    folder = write_seeds(tmp_path / "seeds", item())
    old = make_base(seeds=folder)
    (before,) = old.all()
    await old.learn(make_outcome(cited=(before.id,)))
    write_seeds(folder, item(revision=2, lesson="Do it better."))
    new = make_base(seeds=folder)
    retired, after = new.get(before.id), next(s for s in new.all() if s.lesson == "Do it better.")
    assert retired.state is StrategyState.RETIRED
    assert after.trials == retired.trials != ()
    assert after.id in await new.learn(make_outcome(run="run2", cited=(before.id,)))


def test_an_older_release_does_not_undo_a_newer_seed(make_base: MakeBase, tmp_path: Path) -> None:
    """Two installed releases that share a store do not fight."""
    new = make_base(seeds=write_seeds(tmp_path / "new", item(revision=2, lesson="Do it better.")))
    assert len(new.all()) == 1
    assert make_base(seeds=write_seeds(tmp_path / "old", item())).seed() == 0


def test_a_corrected_figure_is_taken_over(make_base: MakeBase, tmp_path: Path) -> None:
    """A change outside the words keeps the id and updates the entry."""
    folder = write_seeds(tmp_path / "seeds", item())
    (before,) = make_base(seeds=folder).all()
    write_seeds(folder, item(revision=2, expected_gain=1.3))
    (after,) = make_base(seeds=folder).all()
    assert (before.id, before.expected_gain, after.expected_gain) == (after.id, None, 1.3)


@pytest.mark.parametrize("text", ["[", '[{"name": "x"}]', '[{"name": "Bad Name", "strategy": {}}]', "{}[]", "[1]"])
def test_a_bad_seed_file_is_named(tmp_path: Path, text: str) -> None:
    """A broken file raises one error with its path."""
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(UserError, match=r"bad\.json"):
        read_seeds(tmp_path)


def test_two_seeds_of_one_name_are_refused(tmp_path: Path) -> None:
    """Names are what revisions hang on."""
    with pytest.raises(UserError, match="Two seeds are called a-seed"):
        read_seeds(write_seeds(tmp_path, item(), item(revision=2)))
