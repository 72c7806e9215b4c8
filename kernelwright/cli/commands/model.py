"""Make a whole model faster: find what is hot, write operators for it, put them in, and prove the model with them.

FILE has make(), which returns an nn.Module, and workloads(), which returns {name: (argument, …)}; FILE:factory makes it by
another function. An operator file with a class Model will do, too. A package is written to --out: `import OUT; OUT.apply(model)`,
and `OUT.remove(model)`. The same command goes on after a kill.
With a GPU the whole model is timed, against eager and torch.compile; without one kernels are interpreted and nothing is timed.
Exit status: 0 where the work came to an end, 1 where the model could not be proven right with operators, 2 for a wrong input.

Examples:
  kernelwright model data/models/decoder.py --out faster_decoder

  kernelwright model my_model.py:large --budget 16 --out faster
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from kernelwright.cli.shared.options import (
    BaseUrl,
    CompileTimeout,
    Devices,
    Evaluator,
    Home,
    Json,
    KeyFile,
    Model,
    ModelSet,
    Policy,
    Role,
    Seed,
    Tune,
    home_folder,
)

LARGEST = 80
"""Of `--largest`; the same as in tools/models/records.py, which is imported only when it is needed."""


def command(
    file: Annotated[str, typer.Argument(metavar="FILE[:FACTORY]", help="The model's file.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the package; must not exist, or be empty.")],
    budget: Annotated[
        int,
        typer.Option(
            "--budget",
            "--evaluations",
            min=0,
            help="Evaluations an operator, on average. With 0 kernels are the cost model's first choices, which the proof judges.",
        ),
    ] = 8,
    most: Annotated[int, typer.Option(min=1, help="Operators that are worked on.")] = 6,
    largest: Annotated[
        int, typer.Option(min=1, help="ATen operators of a module that is made into one operator; of larger ones the modules inside.")
    ] = LARGEST,
    minutes: Annotated[float, typer.Option(min=0.0, help="Wall time of all operators' runs together; 0: no limit.")] = 0.0,
    jobs: Annotated[
        int, typer.Option(min=0, help="Operators worked on at once.", show_default="one for every four cores, four at most")
    ] = 0,
    against: Annotated[
        Literal["better", "eager"],
        typer.Option(help="What an operator by itself must be faster than: the better of eager and torch.compile, or eager alone."),
    ] = "better",
    target: Annotated[
        str, typer.Option(help="Device; see `kernelwright hardware`.", show_default="this machine's GPU, else h200, estimated")
    ] = "",
    policy: Policy = "default",
    compiled: Annotated[bool, typer.Option("--compile/--no-compile", help="Look at the model under torch.compile, too.")] = True,
    max_autotune: Annotated[
        bool, typer.Option("--max-autotune", help="Time that mode of torch.compile, too: minutes of compiling.")
    ] = False,
    autocast: Annotated[
        Literal["", "bf16", "fp16"],
        typer.Option(
            metavar="bf16|fp16",
            help="Run the model under torch.autocast to this dtype.",
            show_default="AUTOCAST in FILE, else what the model does itself",
        ),
    ] = "",
    rounds: Annotated[int, typer.Option(min=3, help="Timed runs of the whole model for each way of running it.")] = 30,
    tune: Tune = 8,
    seed: Seed = 0,
    compile_timeout: CompileTimeout = 120.0,
    model: Model = "",
    base_url: BaseUrl = "",
    key_file: KeyFile = "",
    role: Role = None,
    model_set: ModelSet = None,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Neither recall strategies nor learn any.")] = False,
    evaluator: Evaluator = "local",
    devices: Devices = "all",
    home: Home = None,
    json: Json = False,
) -> None:
    """Work on a model and print what came of it."""
    from kernelwright.cli.shared.early import check_device, check_evaluator, check_policies
    from tools.models.form import check_form, check_package_place

    name, _, factory = file.partition(":")
    check_form(Path(name), factory)
    check_package_place(out)
    check_device(target)
    check_evaluator(evaluator, devices if evaluator == "local" else "interpreter")
    check_policies(policy)
    from tools.evaluation.several import begin_local
    from tools.references.processes import PROCESSES

    # torch is imported there while the rest is imported here
    PROCESSES.start()
    if evaluator == "local":
        begin_local(devices)
    from agents import ready_models, team_settings
    from graphs.run.evaluators import announced_target, checked
    from graphs.run.settings import RunSettings
    from graphs.search.protocol import SearchSettings
    from kernelwright.cli.shared.knowledge_store import ready_embedder
    from kernelwright.models.live import ModelProgress, print_outcome
    from kernelwright.models.records import ModelSettings
    from kernelwright.models.working import work_on_file
    from tools.garbage import look_as_usual
    from tools.policies import stated_policy

    # the whole model runs in this process
    look_as_usual()

    team = team_settings(model, base_url, role or [], key_file, "", model_set or [])
    run = RunSettings(
        target=target,
        policy=stated_policy(policy, 0.0, 0.0, non_finite=False),
        search_settings=SearchSettings(seed=seed, batch=2),
        against=against,
        tune=tune,
        compile_timeout_s=compile_timeout,
        evaluator=evaluator,
        devices=devices,
        memory=not no_memory,
        embedder=ready_embedder("default", memory=not no_memory),
        team=team,
    )
    run = checked(run.model_copy(update={"target": target or announced_target(run)}))
    run = run.model_copy(update={"team": ready_models(team, run.budget).settings})
    settings = ModelSettings(
        run=run,
        budget=budget,
        most=most,
        largest=largest,
        minutes=minutes,
        jobs=jobs,
        compiled=compiled,
        max_autotune=max_autotune,
        rounds=rounds,
        autocast=autocast,
    )
    outcome = work_on_file(Path(name), factory, out, settings, home_folder(home), ModelProgress(quiet=json))
    if json:
        print(outcome.model_dump_json(indent=1))
    else:
        print_outcome(outcome, out)
    if outcome.package and not outcome.proof.holds:
        raise typer.Exit(1)
