"""The commands that change what memory says: each change has a reason, and can be looked at and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.shared.knowledge_store import LOG, Embedder, Server, base_folder, open_base, print_json, print_notes
from kernelwright.cli.shared.options import HALF_LIFE, HalfLife, Home, Json, Share
from kernelwright.cli.shared.waiting import waiting

if TYPE_CHECKING:
    from agents.lessons.llm import ModelLessonWriter
    from knowledge.lessons.changes import Change
    from knowledge.lessons.curate import Curated

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Reason = Annotated[str, typer.Option(help="Why, in a few words; it is logged.")]


def learn(
    everything: Annotated[bool, typer.Option("--all", help="Go over every outcome, not only those since the last time.")] = False,
    model: Annotated[str, typer.Option(help="Language model that words the lessons.", show_default="none: statistics")] = "",
    base_url: Annotated[str, typer.Option(help="An OpenAI-compatible server.")] = "",
    key_file: Annotated[str, typer.Option(help="File that holds the server's key.")] = "",
    embedder: Embedder = "default",
    server: Server = "",
    share: Share = "",
    half_life: HalfLife = HALF_LIFE,
    home: Home = None,
    json: Json = False,
) -> None:
    """Rewrite lessons and predicted gains by what came of them, and merge near-duplicates.

    Runs do this by themselves, every five. Look at what changed with `diff`, take it back with `revert`.

    Example: kernelwright knowledge learn --all
    """
    import asyncio

    writer = _writer(model, base_url, key_file)
    base = open_base(home, embedder, server, half_life, share)
    done = asyncio.run(base.update(writer, everything=everything))
    print_notes(base)
    if json:
        print_json(done.model_dump(mode="json"))
        return
    print(f"{done.outcomes} outcomes, {done.considered} strategies tried often enough, by {done.by}")
    print(f"{len(done.rewritten)} rewritten, {len(done.merged)} merged; see `kernelwright knowledge diff`")
    for note in done.notes:
        print(f"note: {note}")


def diff(
    name: Annotated[str, typer.Argument(metavar="[ID]", help="A strategy, or the start of its id; none: all.")] = "",
    since: Annotated[int, typer.Option(min=0, help="Only changes after this one.")] = 0,
    home: Home = None,
    json: Json = False,
) -> None:
    """Show how strategies changed since they were written: rewrites, merges, retirements, with reasons.

    Example: kernelwright knowledge diff 3f2a
    """
    found = open_base(home).changes(since, name)
    if json:
        print_json([change.model_dump(mode="json") for change in found])
        return
    for change in found:
        _print_change(change)
    if not found:
        print("nothing was changed")


def revert(
    change: Annotated[int, typer.Argument(metavar="CHANGE", help="Number of a change, as `diff` shows it.")],
    reason: Reason,
    home: Home = None,
    json: Json = False,
) -> None:
    """Take back one change; the log keeps both.

    Example: kernelwright knowledge revert 412 --reason "the driver was broken that week"
    """
    done = open_base(home).revert(change, reason)
    print_json(done.model_dump(mode="json")) if json else _print_change(done)


def merge(
    dry_run: DryRun = False,
    alike: Annotated[float, typer.Option(min=0.5, max=1.0, help="Similarity from which two entries may be the same.")] = 0.95,
    embedder: Embedder = "default",
    server: Server = "",
    share: Share = "",
    home: Home = None,
    json: Json = False,
) -> None:
    """Merge learnt strategies that say the same: equal action and typed fields, like words, agreeing records.

    Example: kernelwright knowledge merge --dry-run
    """
    base = open_base(home, embedder, server, share=share)
    _print_curated(base.merge(dry_run=dry_run, alike=alike), "merged", dry_run, json)
    print_notes(base)


def prune(dry_run: DryRun = False, half_life: HalfLife = HALF_LIFE, home: Home = None, json: Json = False) -> None:
    """Retire what has lost its weight by age: faded warnings, and learnt strategies whose trials are all old.

    Example: kernelwright knowledge prune --dry-run
    """
    _print_curated(open_base(home, half_life=half_life).prune(dry_run=dry_run), "retired", dry_run, json)


def retire(
    name: Annotated[str, typer.Argument(metavar="ID", help="Id of a strategy, or the start of it.")],
    reason: Reason,
    home: Home = None,
    json: Json = False,
) -> None:
    """Recall a strategy no more; it stays in the log, and `revert` brings it back.

    Example: kernelwright knowledge retire 3f2a --reason "superseded by TMA loads"
    """
    done = open_base(home).retire(name, reason)
    print_json({"id": done.id, "state": done.state, "reason": reason}) if json else print(f"{done.id} retired: {done.title}")


def doctor(embedder: Embedder = "default", server: Server = "", share: Share = "", home: Home = None, json: Json = False) -> None:
    """Check log, events, index and room; a disagreeing index is made anew. Exit status 1 where something stays wrong.

    Example: kernelwright knowledge doctor
    """
    with waiting("looking through the memory"):
        findings = open_base(home, embedder, server, share=share).diagnose()
    if json:
        print_json([one.model_dump(mode="json") for one in findings])
    else:
        for one in findings:
            print(f"{one.state:<7} {one.name:<7} {one.said}{f'. {one.mend}' if one.mend else ''}")
    if any(one.state == "wrong" for one in findings):
        raise typer.Exit(1)


def salvage(home: Home = None, json: Json = False) -> None:
    """Save what can still be read of a damaged log, into a new one in its place; the damaged one is kept beside it.

    Example: kernelwright knowledge salvage
    """
    from knowledge.log.salvage import salvage

    saved = salvage(base_folder(home) / LOG)
    if json:
        print_json(saved.model_dump(mode="json"))
    else:
        print(f"{saved.events} events saved; the damaged log is kept as {saved.kept}")
        print("Check it with: kernelwright knowledge doctor")


def _writer(model: str, base_url: str, key_file: str) -> ModelLessonWriter | None:
    from tools.errors import UserError

    if not model:
        if base_url or key_file:
            raise UserError("A server is named, but no model.", "Add --model NAME.")
        return None
    from agents import ready_models, team_settings
    from agents.lessons.llm import ModelLessonWriter
    from agents.models import ChatModel, ModelSettings
    from tools.records import Budget

    # a wrong key or name is said before anything is gone over, and also where there is nothing to word
    ready_models(team_settings(model, base_url, key_file=key_file), Budget())
    return ModelLessonWriter(ChatModel(ModelSettings(name=model, base_url=base_url or None, key_file=key_file or None)))


def _print_change(change: Change) -> None:
    by = f" by {change.by}" if change.by else ""
    print(f"change {change.change}  {change.at[:19]}  {change.kind}{by}{' (reverted)' if change.reverted else ''}")
    print(f"  {change.strategy[:8]} {change.title}")
    print(f"  because: {change.reason}")
    for line in change.diff:
        print(f"  {line}")


def _print_curated(found: tuple[Curated, ...], verb: str, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": dry_run, verb: [one.model_dump(mode="json") for one in found]})
        return
    print(f"{len(found)} {f'would be {verb}' if dry_run else verb}")
    for one in found:
        into = f" → {one.into[:8]}" if one.into else ""
        print(f"  {one.id[:8]}{into}  {one.title}: {one.reason}")
