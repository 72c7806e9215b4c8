"""Optimise one operator: search for a faster kernel and prove it.

FILE holds a PyTorch reference: a KernelBench file (Model, get_inputs, get_init_inputs), or a plain function with
example_inputs(). With a GPU, times are measured; without one, kernels are checked in Triton's interpreter,
cross-compiled for the target, and times are estimated and shown as such. Exit status: 0 where the run came to an end,
2 for a wrong input, 3 where it could not be judged whether a kernel is right, 130 where Ctrl-C or SIGTERM stopped it:
`resume` goes on.

Examples:
  kernelwright optimize my_operator.py

  kernelwright optimize my_operator.py --target a100 --budget 32

  kernelwright optimize my_operator.py --minutes 10 --out my_kernel.py

  kernelwright optimize my_operator.py --model gpt-5 --usd 2

  kernelwright optimize my_operator.py --model qwen3-coder --base-url http://localhost:8000/v1

  kernelwright optimize my_operator.py --start my_kernel.py --model gpt-5

  kernelwright optimize my_operator.py --language cuda --model gpt-5
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.shared.options import (
    HALF_LIFE,
    SEARCHES,
    AgainstOption,
    BaseUrl,
    Cache,
    ChromaServer,
    CompileTimeout,
    Context,
    Counters,
    Devices,
    Evaluator,
    Fallback,
    Floor,
    HalfLife,
    Home,
    Json,
    KeyFile,
    Model,
    ModelSet,
    NonFinite,
    OtherBaselines,
    Parents,
    Policy,
    Role,
    RowTolerance,
    SearchSet,
    Seed,
    Share,
    Team,
    Tolerance,
    TraceTimeout,
    Tune,
    Verbose,
    Wait,
    Weights,
    home_folder,
    search_options,
)

if TYPE_CHECKING:
    from graphs.run.settings import RunSettings

SCRATCH = "scratch"


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The PyTorch reference.")],
    entry: Annotated[str | None, typer.Option(help="Function to optimise, where FILE has several.")] = None,
    target: Annotated[
        str, typer.Option(help="Device; see `kernelwright hardware`.", show_default="this machine's GPU, else h200, estimated")
    ] = "",
    policy: Policy = "default",
    baselines: OtherBaselines = "",
    tolerance: Tolerance = 0.0,
    row_tolerance: RowTolerance = 0.0,
    non_finite: NonFinite = False,
    budget: Annotated[
        int,
        typer.Option(
            "--budget", "--evaluations", min=0, help="Evaluations to spend on the search; confirming adds a few. 0 sets no limit."
        ),
    ] = 16,
    minutes: Annotated[
        float,
        typer.Option(
            min=0,
            help="Minutes the run may take: what is in flight then is cancelled; the last fifth is for confirming, or 25 s of few.",
        ),
    ] = 0,
    gpu_seconds: Annotated[float, typer.Option(min=0, help="GPU time to spend; 0 sets no limit.")] = 0,
    usd: Annotated[
        float, typer.Option(min=0, help="Money for model calls; one that could exceed it is not made. Needs a known price. 0: no limit.")
    ] = 0,
    tokens: Annotated[int, typer.Option(min=0, help="Tokens for model calls; a reply is cut to what they leave. 0 sets no limit.")] = 0,
    search: Annotated[str, typer.Option(help=f"Search method: {SEARCHES}.")] = "greedy",
    search_set: SearchSet = None,
    seed: Seed = 0,
    width: Annotated[int, typer.Option(min=1, help="Candidates that greedy search keeps as parents.")] = 2,
    batch: Annotated[int, typer.Option(min=1, help="Plans in flight in one round.")] = 2,
    floor: Floor = 1.01,
    against: AgainstOption = "better",
    weights: Weights = "fixed",
    fallback: Fallback = "error",
    tune: Tune = 8,
    parents: Parents = "auto",
    repairs: Annotated[int, typer.Option(min=0, help="Repairs of a failing draft before it is rolled back.")] = 3,
    timeout: Annotated[
        float,
        typer.Option(min=1, help="Seconds that the candidate's own build, check and timing may each take; without a GPU of its own time."),
    ] = 120.0,
    trace_timeout: TraceTimeout = 60.0,
    compile_timeout: CompileTimeout = 120.0,
    start: Annotated[
        str,
        typer.Option(metavar="FILE|scratch", help="A kernel of your own to start from, or `scratch`: none, not even the built-in coder's."),
    ] = "",
    language: Annotated[str, typer.Option(metavar="triton|cuda", help="What candidates are written in; cuda needs a model.")] = "triton",
    context: Context = None,
    model: Model = "",
    team: Team = "solo",
    base_url: BaseUrl = "",
    key_file: KeyFile = "",
    coder_tools: Annotated[
        int,
        typer.Option(
            "--coder-tools",
            min=0,
            metavar="CALLS",
            help="Calls of tools that the coder's model may make for one kernel before it hands that in: compile, check, time, profile, "
            "memory, idioms. 0: none.",
        ),
    ] = 0,
    prices: Annotated[str, typer.Option(help="Price table of your own, a JSON file as docs/models.md describes.")] = "",
    role: Role = None,
    model_set: ModelSet = None,
    cache: Cache = False,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Neither recall strategies nor learn any.")] = False,
    embedder: Annotated[
        str,
        typer.Option(help="Finds strategies by meaning: `default`, `hashing`, or a sentence-transformers name or path."),
    ] = "default",
    chroma_server: ChromaServer = "",
    share: Share = "",
    half_life: HalfLife = HALF_LIFE,
    evaluator: Evaluator = "local",
    devices: Devices = "all",
    counters: Counters = "auto",
    wait: Wait = True,
    out: Annotated[Path | None, typer.Option(help="Also write the kernel to this file.")] = None,
    home: Home = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Start a run and see it through."""
    from kernelwright.cli.shared.early import check_device, check_evaluator, check_out, check_policies, check_problem, check_search
    from kernelwright.cli.shared.knowledge_store import demand_readable

    check_problem(file, entry)
    check_device(target)
    check_search(search)
    check_evaluator(evaluator, devices)
    check_out(out)
    check_policies(f"{policy},{baselines}")
    from tools.references.processes import PROCESSES

    # torch is imported there while the rest is imported here
    PROCESSES.start()
    demand_readable(home, memory=not no_memory)
    if evaluator == "local":
        from tools.evaluation.several import begin_local

        begin_local(devices)
    from agents import ready_models, team_settings
    from agents.prompting.frame import read_frame
    from graphs.run.assembly import start_run
    from graphs.run.settings import RunSettings
    from graphs.run.starting import read_start
    from graphs.run.works import COMMAND, note_work, process_began
    from graphs.search.protocol import SearchSettings
    from kernelwright.cli.shared.knowledge_store import reached_server, reached_share, ready_embedder
    from kernelwright.cli.shared.live import see_through
    from kernelwright.cli.shared.waiting import waiting
    from kernelwright.screen.forecast import forecast_notes
    from knowledge.vectors.embedding import begin_import
    from tools.policies import named_policies, stated_policy
    from tools.records import Budget
    from tools.references.reading import read_problem

    frame = read_frame(language, start == SCRATCH, context or []).model_copy(update={"tools": coder_tools})
    shared, met = reached_share(share, chroma_server, memory=not no_memory)
    agents = team_settings(model, base_url, role or [], key_file, prices, model_set or [], team)
    settings = RunSettings(
        problem_file=str(file),
        start=read_start(Path(start)) if start not in ("", SCRATCH) else "",
        start_file=start if start != SCRATCH else "",
        target=target,
        policy=stated_policy(policy, tolerance, row_tolerance, non_finite=non_finite),
        baselines=named_policies(baselines),
        budget=Budget(evaluations=budget, tokens=tokens, money_usd=usd, wall_s=minutes * 60, gpu_s=gpu_seconds),
        search=search,
        search_settings=SearchSettings(width=width, batch=batch, seed=seed, options=search_options(search_set)),
        floor=floor,
        against=against,
        weights=weights,
        fallback=fallback,
        tune=tune,
        parents=parents,
        repairs=repairs,
        timeout_s=timeout,
        trace_timeout_s=trace_timeout,
        compile_timeout_s=compile_timeout,
        evaluator=evaluator,
        devices=devices,
        counters=counters,
        wait=wait,
        memory=not no_memory,
        embedder=ready_embedder(embedder, memory=not no_memory),
        chroma_server=reached_server(chroma_server, memory=not no_memory),
        share=shared,
        half_life=half_life,
        team=agents.model_copy(update={"cache": cache, "frame": frame}),
    )
    ready = ready_models(settings.team, settings.budget)
    settings = settings.model_copy(update={"team": ready.settings})
    notes = (*met, *ready.notes, *forecast_notes(settings.team, settings.budget, home_folder(home)), *_idle_limits(settings))
    if settings.memory:
        begin_import(settings.embedder)
    began = time.time()
    with waiting(f"reading {file.name}"):
        problem = read_problem(file, settings.policy, entry).problem
    ended = time.time()
    store = start_run(problem, settings, home_folder(home))
    store.set_meta(COMMAND, str(process_began()))
    note_work(store, "reading the file", began, ended)
    see_through(store, as_json=json, out=out, notes=notes, verbose=verbose)


def _idle_limits(settings: RunSettings) -> tuple[str, ...]:
    """Say of limits on model calls that nobody makes any."""
    if settings.team.models() or not (settings.budget.money_usd or settings.budget.tokens):
        return ()
    return ("--usd and --tokens limit the calls of a language model, and none is named: --model names one.",)
