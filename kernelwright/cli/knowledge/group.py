"""Look at, share and tend the memory of past strategies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.knowledge import tending
from kernelwright.cli.knowledge.worth import worth
from kernelwright.cli.shared.knowledge_store import Embedder, Server, open_base, print_json, print_notes
from kernelwright.cli.shared.options import HALF_LIFE, HalfLife, Home, Json, Share
from kernelwright.cli.shared.waiting import waiting

if TYPE_CHECKING:
    from knowledge.learning.calibration import Stretch
    from knowledge.records import Strategy
    from knowledge.store import KnowledgeBase

_EXAMPLES = ("stats", 'search "softmax over a very long row"', "export memory.jsonl")
_LINES = "\n".join(f"  kernelwright knowledge {words}" for words in _EXAMPLES)
app = typer.Typer(help=f"{__doc__}\n\n\b\nExamples:\n{_LINES}", no_args_is_help=True)
BACKENDS = ("triton", "cuda")
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of a strategy, or the start of it.")]


def _facts(strategy: Strategy) -> dict[str, object]:
    """A strategy with what follows from its trials."""
    derived = {"observed_gain": strategy.observed_gain, "changes": strategy.changes.model_dump(mode="json")}
    scope = {"scope": strategy.scope.model_dump(mode="json"), "provenance": strategy.provenance}
    return {"id": strategy.id, **strategy.model_dump(mode="json", exclude={"held_as"}), **derived, **scope}


def _print(strategies: list[Strategy], as_json: bool) -> None:
    if as_json:
        print_json([_facts(s) for s in strategies])
        return
    if not strategies:
        print("no strategies")
    for s in strategies:
        print(f"{s.id[:8]}  {s.title}\n          {_in_words(s)}")


def _in_words(s: Strategy) -> str:
    """Say what kind of step it is, where it applies, and on what it rests; a gain in brackets is the source's word."""
    gain = f", {s.changes.median:.2f}x" if s.changes.median else f", ({s.expected_gain:.2f}x)" if s.expected_gain else ""
    families = ", ".join(s.situation.families) or "any family"
    tries = f"{len(s.trials)} {'try' if len(s.trials) == 1 else 'tries'}"
    return f"{s.kind}; {families}, {s.situation.bottleneck or 'any bottleneck'}; {s.state}, {tries}{gain}"


@app.command("list")
def list_(
    home: Home = None,
    state: Annotated[str, typer.Option(help="Only strategies in this state: seeded, observed, confirmed, contradicted, retired.")] = "",
    family: Annotated[str, typer.Option(help="Only strategies for this operator family.")] = "",
    backend: Annotated[str, typer.Option(help="Only strategies for this backend: triton, cuda.")] = "",
    json: Json = False,
) -> None:
    """List the strategies. A gain in brackets is what the source predicts; others are medians of trials.

    Example: kernelwright knowledge list --state observed
    """
    from knowledge.records import StrategyState
    from tools.errors import UserError
    from tools.records import OperatorFamily

    if state and state not in set(StrategyState):
        raise UserError(f"There is no state {state!r}.", f"Choose one of: {', '.join(StrategyState)}.")
    if family and family not in set(OperatorFamily):
        raise UserError(f"There is no family {family!r}.", f"Choose one of: {', '.join(OperatorFamily)}.")
    if backend and backend not in BACKENDS:
        raise UserError(f"There is no backend {backend!r}.", f"Choose one of: {', '.join(BACKENDS)}.")
    found = [s for s in open_base(home).all() if not state or s.state == state]
    found = [s for s in found if not family or family in s.situation.families]
    _print([s for s in found if not backend or s.situation.backend == backend], json)


@app.command()
def show(name: Id, half_life: HalfLife = HALF_LIFE, home: Home = None, json: Json = False) -> None:
    """Show one strategy whole: what each trial weighs today and why, what it was worth to the plans that saw it, its history.

    Example: kernelwright knowledge show 3f2a
    """
    from kernelwright.cli.knowledge.showing import strategy_lines

    base = open_base(home, half_life=half_life)
    strategy, weights, worth_, history = base.get(name), base.weights(name), base.worth(name), base.history(name)
    if json:
        told = {"weights": [one.model_dump(mode="json") for one in weights], "worth": worth_.model_dump(mode="json"), "history": history}
        print_json({**_facts(strategy), **told})
        return
    for line in strategy_lines(strategy, weights, worth_, history):
        print(line)


@app.command()
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Plain words.")],
    limit: Annotated[int, typer.Option(min=1, help="Strategies to show.")] = 8,
    embedder: Embedder = "default",
    server: Server = "",
    share: Share = "",
    home: Home = None,
    json: Json = False,
) -> None:
    """Find the strategies nearest in meaning. Gains are told as by `list`.

    Example: kernelwright knowledge search "softmax over a very long row"
    """
    base = open_base(home, embedder, server, share=share)
    _print(base.search(text, limit), json)
    print_notes(base)


@app.command()
def stats(
    home: Home = None,
    plot: Annotated[Path | None, typer.Option(help="Write predicted against measured gains as an SVG.", metavar="FILE")] = None,
    trend: Annotated[
        Path | None, typer.Option(help="Write how far predictions were off as runs went by as an SVG.", metavar="FILE")
    ] = None,
    stretch: Annotated[int, typer.Option(min=1, help="Runs that make one point of the trend.")] = 20,
    json: Json = False,
) -> None:
    """Count strategies by state and family, and say how well predictions agree with what came of them.

    Example: kernelwright knowledge stats --plot calibration.svg --trend trend.svg
    """
    from knowledge.learning.calibration import by_runs

    base = open_base(home)
    found = base.stats()
    stretches = by_runs(base.experiences(), stretch)
    if plot is not None:
        _write(plot, _calibration(base))
    if trend is not None:
        _write(trend, _trend(stretches))
    if json:
        print_json({**found, "trend": [{**one.model_dump(mode="json"), "error": one.error} for one in stretches]})
        return
    from kernelwright.worth.calibration_plot import in_words, trend_in_words

    states = ", ".join(f"{count} {state}" for state, count in dict(found["by_state"]).items() if count)  # type: ignore[call-overload]
    print(f"{found['folder']}: {found['entries']} strategies ({states}), {found['trials']} trials, embedder {found['embedder']}")
    print("families: " + ", ".join(f"{name} {count}" for name, count in dict(found["by_family"]).items()))  # type: ignore[call-overload]
    print(f"runs: {found['runs']}, passes over the outcomes: {found['updates']}")
    print(f"disk: log {int(str(found['log_bytes'])) / 1e6:.1f} MB, index {int(str(found['index_bytes'])) / 1e6:.1f} MB")
    print(in_words(base.calibration()))
    if said := trend_in_words(stretches):
        print(said)


def _calibration(base: KnowledgeBase) -> str:
    from kernelwright.worth.calibration_plot import draw

    return draw(base.experiences(), base.calibration())


def _trend(stretches: tuple[Stretch, ...]) -> str:
    from kernelwright.worth.calibration_plot import draw_trend

    return draw_trend(stretches)


def _write(file: Path, text: str) -> None:
    from tools.errors import UserError

    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}).", "Name another file.") from error


@app.command()
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON-lines file to write.")], home: Home = None, json: Json = False
) -> None:
    """Write every strategy with its evidence as a line of JSON, to share and review.

    Example: kernelwright knowledge export memory.jsonl
    """
    count = open_base(home).export(file)
    print_json({"file": str(file), "strategies": count}) if json else print(f"{count} strategies written to {file}")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON-lines file of `export`.")], home: Home = None, json: Json = False
) -> None:
    """Read strategies from a file; what is already known is never overwritten.

    Example: kernelwright knowledge import memory.jsonl
    """
    done = open_base(home).import_(file)
    if json:
        print_json(done.model_dump(mode="json"))
        return
    print(f"{done.added} strategies added, {done.known} known already, {done.credited} credited with new trials")
    for conflict in done.conflicts:
        print(f"  left as it was: {conflict}")


@app.command()
def rebuild(embedder: Embedder = "default", server: Server = "", share: Share = "", home: Home = None, json: Json = False) -> None:
    """Make the vector index anew from the log, which is the source of truth.

    Example: kernelwright knowledge rebuild
    """
    with waiting("making the index anew"):
        count = open_base(home, embedder, server, share=share).rebuild()
    print_json({"indexed": count}) if json else print(f"{count} strategies indexed")


for one in (
    tending.learn,
    tending.diff,
    tending.revert,
    tending.merge,
    tending.prune,
    tending.retire,
    tending.doctor,
    tending.salvage,
    worth,
):
    app.command()(one)
