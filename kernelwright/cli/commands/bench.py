"""Optimise every problem of a suite and report what came of it, or report again on what was measured before.

SUITE is a KernelBench clone (or one of its levels), or any folder of operator files. Each problem is a run of its own that `kernelwright
trace` can show. Results are kept in the folder of --out, one line a run, as each ends; the same command goes on where it was
stopped. Several searches, memories or agents, as comma lists, are compared on the same problems at equal budgets.
`kernelwright bench report DIR…` puts shards together.

Exit status 0: done; 1: every run failed; 2: a wrong input; 3: stopped by --stop-after.

Examples:
  kernelwright bench data/operators --evaluations 8

  kernelwright bench ~/KernelBench --levels 1,2 --problems 1%3 --out results/h200

  kernelwright bench ~/KernelBench --levels 1 --shard 2/8 --stop-after 1500 --out results/h200

  kernelwright bench ~/KernelBench --levels 1 --problems 1-40 --search greedy,bandit --memory off,learning --seeds 3

  kernelwright bench report results/shard1 results/shard2 --out results/h200
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kernelwright.cli.shared.options import (
    HALF_LIFE,
    AgainstOption,
    ChromaServer,
    CompileTimeout,
    Counters,
    Devices,
    Evaluator,
    HalfLife,
    Json,
    ModelSet,
    NamedPolicy,
    OtherBaselines,
    RunsOn,
    TraceTimeout,
    Tune,
    Weights,
    home_folder,
)

FAILED = 1
"""Exit status where not one run of the shard came to anything: no file could be read, or the machine failed every time."""
STOPPED = 3
"""Exit status where --stop-after ended the bench before its last problem."""


class _SuiteFirst(TyperGroup):
    """`bench SUITE` is `bench run SUITE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command's name first where no command is named."""
        if args and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


WORDS = "Optimise every problem of a suite, compare arms, and report.\n\n`kernelwright bench SUITE` is `kernelwright bench run SUITE`."
app = typer.Typer(help=WORDS, cls=_SuiteFirst, no_args_is_help=True)


@app.command(help=__doc__)
def run(
    suite: Annotated[Path, typer.Argument(metavar="SUITE", help="A KernelBench clone or level, or a folder of operator files.")],
    levels: Annotated[str, typer.Option(help="KernelBench levels, e.g. 1,2.", show_default="all")] = "",
    problems: Annotated[
        str, typer.Option(help="Numbers, ranges, names and remainders: 1-20,42,*norm*,1%3; remainders sift the rest.", show_default="all")
    ] = "",
    shard: Annotated[str, typer.Option(help="Do only this part, e.g. 2/8: every eighth problem from the second on.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder of results, runs and report.", show_default="./bench-SUITE", metavar="DIR")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Go on with what the folder holds, or refuse to.")] = True,
    jobs: Annotated[int, typer.Option(min=1, help="Runs in flight: builds of one overlap timing of another.")] = 2,
    stop_after: Annotated[float, typer.Option(min=0, help="Stop after this many seconds, to be gone on with. 0: see it through.")] = 0,
    target: Annotated[
        str, typer.Option(help="Device; see `kernelwright hardware`.", show_default="this machine's GPU, else h200, estimated")
    ] = "",
    policy: NamedPolicy = "default",
    baselines: OtherBaselines = "",
    evaluator: Evaluator = "local",
    devices: Devices = "all",
    runs_on: RunsOn = "here",
    evaluations: Annotated[int, typer.Option("--evaluations", "--budget", min=0, help="Evaluations a run; 0 sets no limit.")] = 16,
    seconds: Annotated[float, typer.Option(min=0, help="Wall seconds a run, waiting for the device included; 0 sets no limit.")] = 0,
    gpu_seconds: Annotated[float, typer.Option(min=0, help="GPU seconds a run; 0 sets no limit.")] = 0,
    usd: Annotated[float, typer.Option(min=0, help="Money for model calls a run; needs a known price. 0 sets no limit.")] = 0,
    tokens: Annotated[int, typer.Option(min=0, help="Tokens a run; 0 sets no limit.")] = 0,
    search: Annotated[str, typer.Option(help="Search methods to compare, a comma list; `optimize --help` names them.")] = "greedy",
    memory: Annotated[str, typer.Option(help="Memories to compare, a comma list: off, frozen (recalls, never learns), learning.")] = "off",
    agents: Annotated[
        str,
        typer.Option(help="Agents to compare, a comma list: builtin, solo, pair, full, solo:MODEL, or roles: planner=llm+coder=builtin."),
    ] = "builtin",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each problem and arm, with seeds 0, 1, …")] = 1,
    width: Annotated[int, typer.Option(min=1, help="Candidates that greedy search keeps as parents.")] = 2,
    batch: Annotated[int, typer.Option(min=1, help="Plans in flight in one round of a run.")] = 2,
    patience: Annotated[int, typer.Option(min=0, help="Rounds without progress before a search ends; 0: spend the whole budget.")] = 4,
    against: AgainstOption = "better",
    weights: Weights = "fixed",
    tune: Tune = 8,
    counters: Counters = "never",
    repairs: Annotated[int, typer.Option(min=0, help="Repairs of a failing draft before it is rolled back.")] = 3,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds a candidate's own build, check and timing may each take; without a GPU of its own time.")
    ] = 120.0,
    trace_timeout: TraceTimeout = 60.0,
    compile_timeout: CompileTimeout = 120.0,
    model: Annotated[str, typer.Option(help="Language model of the agents that have one.")] = "",
    base_url: Annotated[str, typer.Option(help="An OpenAI-compatible server.")] = "",
    key_file: Annotated[str, typer.Option(help="File that holds the server's key.")] = "",
    prices: Annotated[str, typer.Option(help="Price table of your own.")] = "",
    model_set: ModelSet = None,
    knowledge: Annotated[
        str, typer.Option(help="Knowledge base whose copy each remembering arm starts from.", show_default="the curated seeds alone")
    ] = "",
    embedder: Annotated[
        str,
        typer.Option(help="Finds strategies by meaning: `default`, `hashing`, or a sentence-transformers name or path."),
    ] = "default",
    chroma_server: ChromaServer = "",
    half_life: HalfLife = HALF_LIFE,
    max_autotune: Annotated[
        bool, typer.Option("--max-autotune", help="Also time torch.compile's max-autotune: minutes of compiling a problem.")
    ] = False,
    home: Annotated[
        Path | None,
        typer.Option(
            envvar="KERNELWRIGHT_HOME", help="Home whose pages show the bench (`kernelwright ui`).", show_default="~/.kernelwright"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a shard of a bench and report on it."""
    from kernelwright.cli.shared.early import check_device, check_evaluator, check_policies
    from tools.problems.suite import open_suite

    found = open_suite(suite, _numbers(levels))
    check_device(target)
    check_policies(baselines)
    check_evaluator(evaluator, devices)
    from tools.evaluation.several import begin_local
    from tools.references.processes import PROCESSES

    # torch is imported there while the rest is imported here
    PROCESSES.start()
    if evaluator == "local":
        begin_local(devices)
    from agents import TeamSettings, ready_models
    from graphs.run.assembly import resolve_target
    from graphs.run.evaluators import announced_target, checked
    from graphs.run.settings import RunSettings
    from graphs.search import METHODS, open_search
    from graphs.search.protocol import SearchSettings
    from kernelwright.bench.settings import MEMORY_ARMS, BenchSettings, MemoryArm, arm_words, read_team
    from kernelwright.bench.watching import see_through
    from kernelwright.cli.shared.knowledge_store import reached_server, ready_embedder
    from tools.policies import named_policies
    from tools.problems.suite import select
    from tools.problems.suite import shard as part_of
    from tools.records import Budget, PrecisionPolicy
    from tools.tracing.places import note_place

    items = part_of(select(found.items, problems), shard)
    teams: dict[str, TeamSettings] = {}
    for word in dict.fromkeys(part.strip() for part in agents.split(",") if part.strip()):
        teams[word] = read_team(word, model, base_url, key_file, prices, model_set or [])
        teams[word] = ready_models(teams[word], Budget(money_usd=usd)).settings
    searches = arm_words(search, tuple(METHODS), "--search")
    search_settings = SearchSettings(width=width, batch=batch, patience=patience)
    for name in searches:
        open_search(name, search_settings)
    memories: tuple[MemoryArm, ...] = tuple(one for one in MEMORY_ARMS if one in arm_words(memory, MEMORY_ARMS, "--memory"))
    settings = BenchSettings(
        suite=str(suite),
        kind=found.kind,
        levels=_numbers(levels),
        problems=problems,
        run=checked(
            RunSettings(
                target=resolve_target(target or announced_target(RunSettings(evaluator=evaluator, devices=devices))).name,
                evaluator=evaluator,
                devices=devices,
                policy=PrecisionPolicy(name=policy),
                baselines=named_policies(baselines),
                budget=Budget(evaluations=evaluations, tokens=tokens, money_usd=usd, wall_s=seconds, gpu_s=gpu_seconds),
                search_settings=search_settings,
                against=against,
                weights=weights,
                tune=tune,
                counters=counters,
                repairs=repairs,
                timeout_s=timeout,
                trace_timeout_s=trace_timeout,
                compile_timeout_s=compile_timeout,
                embedder=ready_embedder(embedder, memory=memories != ("off",)),
                chroma_server=reached_server(chroma_server, memory=memories != ("off",)),
                half_life=half_life,
            )
        ),
        searches=searches,
        memories=memories,
        agents=teams,
        seeds=seeds,
        knowledge=knowledge,
        max_autotune=max_autotune,
    )
    folder = out or Path(f"bench-{found.folder.name}")
    note_place(home_folder(home), "benches", folder)
    whole, failed = see_through(
        settings,
        items,
        folder,
        shard,
        command_line(),
        resume=resume,
        in_flight=jobs,
        stop_after_s=stop_after,
        as_json=json,
        elsewhere=runs_on == "cluster",
    )
    if failed:
        print(f"kernelwright: {failed}", file=sys.stderr)
        raise typer.Exit(FAILED)
    if not whole:
        raise typer.Exit(STOPPED)


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Folders of --out; their rows are put together.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write report.md and report.html to.", show_default="the first DIR", metavar="DIR")
    ] = None,
    mixed: Annotated[bool, typer.Option("--mixed", help="Put rows of other settings, hardware or versions together all the same.")] = False,
    json: Json = False,
) -> None:
    """Put the results of one or more folders together and report on them.

    Example: kernelwright bench report results/shard1 results/shard2 --out results/h200
    """
    from kernelwright.bench.merging import gather
    from kernelwright.bench.pages import write_report
    from kernelwright.bench.watching import print_summary

    gathered = gather(folders, mixed=mixed)
    print_summary(write_report(gathered, out or folders[0]), as_json=json)


def _numbers(word: str) -> tuple[int, ...]:
    from tools.errors import UserError

    parts = [part.strip() for part in word.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise UserError(f"{word!r} does not name levels.", "Write them like 1,2.")
    return tuple(sorted({int(part) for part in parts}))


def command_line() -> str:
    """The command as it was typed, for the report's header."""
    from shlex import join

    words: list[Any] = ["kernelwright", *sys.argv[1:]]
    return join(map(str, words))
