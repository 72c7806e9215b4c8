"""The public Python API: what the command line does, as functions.

```python
import kernelwright

result = kernelwright.optimize("my_operator.py")
result = kernelwright.optimize(my_module, (example_input,))
print(result.reason, result.kernel)

found = kernelwright.evaluate("my_operator.py", "any_kernel.py", bundle="evidence")
print(found.evaluation.verdict, kernelwright.verify("evidence").failed)
```

`evaluate` and `verify` are in `kernelwright.api.judging`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import ready_models
from graphs.optimize.confirm import KERNEL, UNCONFIRMED
from graphs.optimize.execute import Listener, execute
from graphs.run.assembly import assemble, open_run, start_run
from graphs.run.settings import RunSettings
from tools.errors import UserError
from tools.problems import problem_from_module
from tools.records import ROOT, Evaluation, Problem, Record
from tools.references.reading import read_problem
from tools.tracing import RunStore
from tools.tracing.finding import default_home

if TYPE_CHECKING:
    from torch import nn


class Result(Record):
    """What a run ended with."""

    run: str
    """Name, for `resume` and `kernelwright trace`."""
    folder: Path
    candidate: str
    """Id of the candidate delivered, or `root`: keep the reference."""
    reason: str
    """Why, in one sentence."""
    kernel: Path | None
    """The kernel file; None where the reference is kept."""
    unconfirmed: Path | None
    """The best kernel that passed the search, where its confirmation could not be judged; not to be used before `evaluate` says PASS."""
    evaluation: Evaluation | None
    """The confirming evaluation; None where the reference is kept."""


def optimize(
    problem: str | Path | nn.Module,
    example_inputs: tuple[Any, ...] = (),
    *,
    settings: RunSettings | None = None,
    home: str | Path | None = None,
    listener: Listener = lambda event: None,
) -> Result:
    """Optimise a problem file, or an nn.Module with example inputs; blocks until the run ends.

    Raises UserError for wrong input and MachineError where this machine fails; the run can then be resumed.
    """
    settings = settings or RunSettings()
    settings = settings.model_copy(update={"team": ready_models(settings.team, settings.budget).settings})
    loaded = _load(problem, example_inputs, settings)
    return _see_through(start_run(loaded, settings, Path(home) if home else default_home()), listener)


def resume(run: str, *, home: str | Path | None = None, listener: Listener = lambda event: None) -> Result:
    """Go on with a run that was cut short; a run that has ended is only read."""
    return _see_through(open_run(Path(home) if home else default_home(), run), listener)


def _load(problem: str | Path | nn.Module, example_inputs: tuple[Any, ...], settings: RunSettings) -> Problem:
    if isinstance(problem, str | Path):
        return read_problem(Path(problem), settings.policy).problem
    if not example_inputs:
        raise UserError("An nn.Module comes without inputs.", "Give example_inputs=(tensor, …), as its forward takes them.")
    return problem_from_module(problem, example_inputs, None, settings.policy)


def _see_through(store: RunStore, listener: Listener) -> Result:
    services = assemble(store)
    delivery = asyncio.run(execute(services, listener))
    folder = store.folder / "result"
    return Result(
        run=services.run,
        folder=store.folder,
        candidate=delivery.candidate,
        reason=delivery.reason,
        kernel=None if delivery.candidate == ROOT else folder / KERNEL,
        unconfirmed=folder / UNCONFIRMED if delivery.unconfirmed else None,
        evaluation=store.get("evaluation", delivery.evaluation, Evaluation) if delivery.evaluation else None,
    )
