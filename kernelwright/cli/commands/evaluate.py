"""Judge a kernel file from any source: whether it is right, and how fast.

KERNEL defines a ModelNew that takes what the reference in PROBLEM takes. It runs in the sandbox alone. Exit status: 0 for
PASS, 1 for any other verdict, 2 for a wrong input, 3 where it could not be judged.

Examples:
  kernelwright evaluate my_operator.py my_kernel.py

  kernelwright evaluate my_operator.py my_kernel.py --bundle evidence

  kernelwright evaluate my_operator.py my_kernel.py --target a100 --json
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kernelwright.cli.shared.options import (
    UNJUDGED,
    CompileTimeout,
    Devices,
    Json,
    NonFinite,
    OtherBaselines,
    Policy,
    RowTolerance,
    Tolerance,
)

if TYPE_CHECKING:
    from kernelwright.api.judging import Judgement


def command(
    problem: Annotated[Path, typer.Argument(metavar="PROBLEM", help="The PyTorch reference.")],
    kernel: Annotated[Path, typer.Argument(metavar="KERNEL", help="Python file that defines ModelNew.")],
    entry: Annotated[str | None, typer.Option(help="Function to judge against, where PROBLEM has several.")] = None,
    target: Annotated[
        str, typer.Option(help="Device; see `kernelwright hardware`.", show_default="this machine's GPU, else h200, estimated")
    ] = "",
    policy: Policy = "default",
    baselines: OtherBaselines = "",
    tolerance: Tolerance = 0.0,
    row_tolerance: RowTolerance = 0.0,
    non_finite: NonFinite = False,
    stage: Annotated[Literal["search", "confirm"], typer.Option(help="confirm: more calls and more repetitions.")] = "confirm",
    timeout: Annotated[
        float,
        typer.Option(min=1, help="Seconds that the kernel's own build, check and timing may each take; without a GPU of its own time."),
    ] = 120.0,
    compile_timeout: CompileTimeout = 120.0,
    bundle: Annotated[Path | None, typer.Option(help="Write an evidence bundle to this folder, which must not exist yet.")] = None,
    devices: Devices = "all",
    json: Json = False,
) -> None:
    """Evaluate and print."""
    from kernelwright.cli.shared.early import check_bundle, check_device, check_evaluator, check_kernel, check_policies, check_problem

    check_problem(problem, entry)
    check_kernel(kernel)
    check_device(target)
    check_bundle(bundle)
    check_policies(f"{policy},{baselines}")
    check_evaluator("local", devices)
    from tools.evaluation.several import begin_local
    from tools.references.processes import PROCESSES

    # torch is imported there while the rest is imported here
    PROCESSES.start()
    begin_local(devices)
    from kernelwright.api.judging import evaluate
    from kernelwright.cli.shared.waiting import waiting
    from tools.policies import named_policies, stated_policy

    with waiting(f"judging {kernel.name}"):
        found = evaluate(
            problem,
            kernel,
            target=target,
            policy=stated_policy(policy, tolerance, row_tolerance, non_finite=non_finite),
            baselines=named_policies(baselines),
            entry=entry,
            stage=stage,
            timeout_s=timeout,
            compile_s=compile_timeout,
            bundle=bundle,
            devices=devices,
        )
    if json:
        from json import dumps

        print(dumps(facts(found), indent=1))
    else:
        _print(found, kernel.read_text(errors="replace"))
    raise typer.Exit({"PASS": 0, "INFRASTRUCTURE": UNJUDGED}.get(found.evaluation.verdict, 1))


def facts(found: Judgement) -> dict[str, Any]:
    """What `--json` prints: the evaluation without seeds and raw times, which the bundle has, and what it is about."""
    fields = found.evaluation.model_dump(mode="json", exclude={"seeds": True, "timing": {"raw"}})
    return {
        "problem": found.problem.name,
        "policy": found.problem.policy.model_dump(mode="json"),
        "flags": str(found.problem.policy.precision),
        "other_baselines": {name: one.model_dump(mode="json") for name, one in found.other_baselines.items()},
        "target": found.target.name,
        **fields,
        "errors": fields["correctness"]["outputs"] if fields["correctness"] else [],
        "class": found.evaluation.provenance,
        "tier": found.evaluation.tier,
        "time_us": found.evaluation.time_us,
        "speedup": found.evaluation.speedup,
        "problem_notes": list(found.notes),
        "bundle": str(found.bundle) if found.bundle else None,
        "digest": found.digest or None,
    }


def _print(found: Judgement, source: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.text import Text

    from kernelwright.screen.hanging import print_hanging
    from kernelwright.screen.trace_views import evaluation_table, policy_lines
    from tools.reports.evaluation import telling_lines

    console = Console(highlight=False)
    console.rule(escape(f"{found.problem.name} on {found.target.title}, policy {found.problem.policy}"))
    for note in found.notes:
        print_hanging(console, Text("note:    "), Text(note))
    console.print(evaluation_table(found.evaluation.model_dump(mode="json")))
    for line in (*telling_lines(found.evaluation, source), *policy_lines(facts(found))):
        print_hanging(console, Text(), Text(line))
    if found.bundle:
        console.print(f"bundle:  {escape(str(found.bundle))}, digest {found.digest}", soft_wrap=True)
        console.print(f"check:   kernelwright verify {escape(str(found.bundle))}", soft_wrap=True)
