"""`knowledge worth`: cold against warm on held-out problems, built on the bench."""

from __future__ import annotations

import sys
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.shared.knowledge_store import Server, print_json, reached_server, ready_embedder
from kernelwright.cli.shared.options import HALF_LIFE, CompileTimeout, Devices, Evaluator, HalfLife, Json, NamedPolicy, RunsOn, TraceTimeout

if TYPE_CHECKING:
    from kernelwright.bench.settings import BenchSettings, MemoryArm
    from kernelwright.worth.records import Interval, WorthReport
    from tools.problems.suite import SuiteItem

STOPPED = 3
"""Exit status where --stop-after ended the work; the same command goes on."""


def worth(
    suite: Annotated[Path, typer.Argument(metavar="SUITE", help="A KernelBench clone or level, or a folder of operator files.")],
    held_out: Annotated[str, typer.Option(help="Problems to measure on: numbers, ranges, names, remainders, as for `bench --problems`.")],
    learn_on: Annotated[str, typer.Option(help="Problems to learn on.", show_default="all that are not held out")] = "",
    knowledge: Annotated[
        str, typer.Option(help="Measure this knowledge base instead of learning one; it is copied, never written to.")
    ] = "",
    levels: Annotated[str, typer.Option(help="KernelBench levels, e.g. 1,2.", show_default="all")] = "",
    evaluations: Annotated[int, typer.Option(min=1, help="Evaluations a run.")] = 16,
    learning_evaluations: Annotated[int, typer.Option(min=0, help="Evaluations a learning run.", show_default="as --evaluations")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each problem and arm, with seeds 0, 1, …")] = 3,
    search: Annotated[str, typer.Option(help="Search method of all runs.")] = "greedy",
    target: Annotated[str, typer.Option(help="Device.", show_default="this machine's GPU, else h200, estimated")] = "",
    learning_target: Annotated[str, typer.Option(help="Learn for another device, e.g. a100, estimated.", show_default="as --target")] = "",
    policy: NamedPolicy = "default",
    evaluator: Evaluator = "local",
    devices: Devices = "all",
    runs_on: RunsOn = "here",
    agents: Annotated[str, typer.Option(help="As for `bench`, one team.")] = "builtin",
    model: Annotated[str, typer.Option(help="Language model of the agents that have one.")] = "",
    base_url: Annotated[str, typer.Option(help="An OpenAI-compatible server.")] = "",
    key_file: Annotated[str, typer.Option(help="File that holds the server's key.")] = "",
    embedder: Annotated[str, typer.Option(help="`default`, `hashing`, or a sentence-transformers name or path.")] = "default",
    server: Server = "",
    half_life: HalfLife = HALF_LIFE,
    trace_timeout: TraceTimeout = 60.0,
    compile_timeout: CompileTimeout = 120.0,
    jobs: Annotated[int, typer.Option(min=1, help="Runs in flight.")] = 2,
    stop_after: Annotated[float, typer.Option(min=0, help="Stop after so many seconds, to be gone on with; 0: see it through.")] = 0,
    despite_failures: Annotated[
        bool, typer.Option("--despite-failures", help="Go on where runs failed for no fault of a kernel; the report counts them.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of results, runs and report.", metavar="DIR")] = Path("knowledge-worth"),
    json: Json = False,
) -> None:
    """Say what memory is worth: learn on some problems, then do others without memory, with the seeds alone, and with what was learnt.

    Reports evaluations and GPU seconds to 90 % of the best known gain, the final gain, harm, and what each strategy did, with 95 %
    bootstrap intervals, apart for families that were learnt on and others. It goes on where it was stopped.

    Example: kernelwright knowledge worth data/operators --held-out 2%3 --seeds 3 --out worth
    """
    import time

    from graphs.run.assembly import resolve_target
    from graphs.run.evaluators import announced_target, checked
    from graphs.run.settings import RunSettings
    from graphs.search import open_search
    from graphs.search.protocol import SearchSettings
    from kernelwright.bench.memories import Memories
    from kernelwright.bench.settings import BenchSettings, read_team
    from kernelwright.cli.commands.bench import _numbers
    from tools.errors import UserError
    from tools.problems.suite import open_suite, select
    from tools.records import Budget, PrecisionPolicy

    found = open_suite(suite, _numbers(levels))
    held = select(found.items, held_out)
    names = {item.name for item in held}
    learning = () if knowledge else tuple(i for i in (select(found.items, learn_on) if learn_on else found.items) if i.name not in names)
    if not learning and not knowledge:
        raise UserError("Nothing is left to learn on: every problem is held out.", "Hold fewer out, or bring a memory with --knowledge.")
    # what the last of the three benches begins from must be there before the first
    Memories(knowledge)
    server, embedder = reached_server(server), ready_embedder(embedder)
    search_settings = SearchSettings(patience=0)
    open_search(search, search_settings)
    team = read_team(agents, model, base_url, key_file, "")
    announced = announced_target(RunSettings(evaluator=evaluator, devices=devices))
    begun = time.monotonic()

    def settings(place: str, problems: str, memories: tuple[MemoryArm, ...], start: str, many: int, budget: int) -> BenchSettings:
        run = RunSettings(
            target=resolve_target((learning_target if place == "learn" else "") or target or announced).name,
            evaluator=evaluator,
            devices=devices,
            policy=PrecisionPolicy(name=policy),
            budget=Budget(evaluations=budget),
            search_settings=search_settings,
            trace_timeout_s=trace_timeout,
            compile_timeout_s=compile_timeout,
            embedder=embedder,
            chroma_server=server,
            half_life=half_life,
        )
        return BenchSettings(
            suite=str(suite),
            kind=found.kind,
            levels=_numbers(levels),
            problems=problems,
            run=checked(run),
            searches=(search,),
            memories=memories,
            agents={agents: team},
            seeds=many,
            knowledge=start,
        )

    def work(place: str, given: BenchSettings, items: tuple[SuiteItem, ...], in_flight: int) -> None:
        left = max(1.0, stop_after - (time.monotonic() - begun)) if stop_after else 0.0
        # what is learnt is learnt in one place
        if not _run(given, items, out / place, in_flight, left, elsewhere=runs_on == "cluster" and place != "learn"):
            raise typer.Exit(STOPPED)
        if not despite_failures:
            _demand_all(out / place)

    start = knowledge
    if learning:
        # one run at a time: what one problem taught is there for the next
        work("learn", settings("learn", learn_on, ("learning",), "", 1, learning_evaluations or evaluations), learning, 1)
        start = str(_learnt(out, embedder, server, half_life))
    work("cold", settings("cold", held_out, ("off", "frozen"), "", seeds, evaluations), held, jobs)
    work("warm", settings("warm", held_out, ("frozen",), start, seeds, evaluations), held, jobs)
    report = write_report(out, evaluations)
    print_json(report.model_dump(mode="json")) if json else print(page(report))


def write_report(out: Path, budget: int) -> WorthReport:
    """Work out the report of a finished folder and write `worth.json` and `worth.md` beside its benches."""
    from kernelwright.bench.merging import gather
    from kernelwright.worth.report import report_worth

    learning = gather([out / "learn"]).rows if (out / "learn" / "settings.json").is_file() else ()
    cold, warm = gather([out / "cold"]).rows, gather([out / "warm"]).rows
    report = report_worth(cold, warm, learning, budget, out / "warm" / "home" / "runs")
    (out / "worth.json").write_text(report.model_dump_json(indent=1), encoding="utf-8")
    (out / "worth.md").write_text(page(report), encoding="utf-8")
    return report


def page(report: WorthReport) -> str:
    """The report as a page of Markdown."""
    learnt = _count(len(report.learnt_on), "problem") if report.learnt_on else "a memory that was brought along"
    lines = [f"# What memory was worth ({report.basis})", ""]
    lines += [
        f"Learnt on {learnt}; {_count(report.seeds, 'seed')}, {_count(report.budget, 'evaluation')} a run. 95 % bootstrap intervals.",
        "",
    ]
    for group in report.groups:
        lines += [f"## {group.title}: {_count(len(group.problems), 'problem')}", ""]
        lines += ["| arm | reached 90 % | evaluations to 90 % | GPU s to 90 % | final gain |", "|---|---|---|---|---|"]
        for arm in group.arms:
            if isnan(arm.evaluations_to_most):
                # nothing gains on these problems: no one can be sooner
                lines.append(f"| {arm.arm} | – | – | – | {arm.final:.2f}x{_band(arm.final_interval)} |")
                continue
            evaluations = f"{arm.evaluations_to_most:.1f}{_band(arm.evaluations_interval, 1)}"
            final = f"{arm.final:.2f}x{_band(arm.final_interval)}"
            lines.append(f"| {arm.arm} | {100 * arm.reached:.0f} % | {evaluations} | {arm.gpu_s_to_most:.1f} | {final} |")
        lines += [
            "",
            "| against no memory | evaluations to 90 % | GPU s to 90 % | final gain | pairs | harmed |",
            "|---|---|---|---|---|---|",
        ]
        for one in group.against:
            shown = ((one.evaluations, one.evaluations_interval), (one.gpu_s, one.gpu_s_interval), (one.final, one.final_interval))
            ratios = ("–" if isnan(value) else f"×{value:.2f}{_band(band)}" for value, band in shown)
            harmed = ", ".join(f"{name} ×{ratio:.2f}" for name, ratio in one.harmed) or "none"
            lines.append(f"| {one.arm} | {' | '.join(ratios)} | {one.pairs} | {harmed} |")
        lines.append("")
    lines += [
        "## Strategies",
        "",
        "| id | cited | passed | gain | gain of plans beside it | problems | strategy |",
        "|---|---|---|---|---|---|---|",
    ]
    for s in report.strategies:
        gains = (f"{gain:.2f}x" if gain else "–" for gain in (s.median_gain, s.uncited_gain))
        count = f"{s.cited} of {s.recalled} recalls"
        lines.append(f"| {s.id[:8]} | {count} | {s.passed} | {' | '.join(gains)} | {len(s.problems)} | {s.title.replace('|', '/')} |")
    return "\n".join([*lines, *(f"\nNote: {note}" for note in report.notes), ""])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _band(band: Interval, digits: int = 2) -> str:
    return f" ({band[0]:.{digits}f}–{band[1]:.{digits}f})" if band else ""


def _run(settings: BenchSettings, items: tuple[SuiteItem, ...], folder: Path, jobs: int, stop_after_s: float, *, elsewhere: bool) -> bool:
    """Run a bench; its own tables go to standard error, where progress is."""
    from contextlib import redirect_stdout

    from kernelwright.bench.watching import see_through
    from kernelwright.cli.commands.bench import command_line

    with redirect_stdout(sys.stderr):
        whole, _ = see_through(
            settings,
            items,
            folder,
            "",
            command_line(),
            resume=True,
            in_flight=jobs,
            stop_after_s=stop_after_s,
            as_json=False,
            elsewhere=elsewhere,
        )
    return whole


def _demand_all(folder: Path) -> None:
    """Stop where a run of a finished bench failed: what it was to teach, or to show, is not there."""
    from kernelwright.bench.merging import gather
    from kernelwright.bench.row import Status
    from tools.errors import MachineError

    rows = gather([folder]).rows
    failed = [row for row in rows if row.status is Status.FAILED]
    if failed:
        what = f"{len(failed)} of {len(rows)} runs in {folder} failed, the first ({failed[0].problem}) with: {failed[0].reason}"
        raise MachineError(what, "Mend that and repeat the command: it tries them again. Or add --despite-failures.")


def _learnt(out: Path, embedder: str, server: str, half_life: float) -> Path:
    """The memory that the learning runs left, gone over once more."""
    import asyncio

    from knowledge.store import KnowledgeBase
    from knowledge.vectors.embedding import open_embedder
    from tools.errors import MachineError

    kept = out / "learn" / "knowledge"
    folder = next(kept.iterdir(), None) if kept.is_dir() else None
    if folder is None:
        raise MachineError("No learning run came as far as to a memory.", f"Look into the results in {out / 'learn'} for the reasons.")
    base = KnowledgeBase(folder, open_embedder(embedder), server=server or None, half_life=half_life)
    if "warm" not in {path.name for path in out.iterdir()}:
        asyncio.run(base.update())
    base.close()
    return folder
