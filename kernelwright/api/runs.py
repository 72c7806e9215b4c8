"""The public Python API: what the command line does, as functions.

```python
import kernelwright

result = kernelwright.optimize("my_operator.py")
result = kernelwright.optimize(my_module, x, dynamic=0)
print(result.reason, result.speedup, result.kernel)
faster = result.module(like=my_module)

found = kernelwright.evaluate("my_operator.py", "any_kernel.py", bundle="evidence")
print(found.evaluation.verdict, kernelwright.verify("evidence").failed)
```

`evaluate` and `verify` are in `kernelwright.api.judging`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import ready_models
from graphs.optimize.confirm import KERNEL, UNCONFIRMED
from graphs.optimize.execute import Listener
from graphs.run.assembly import assemble, open_run, start_run
from graphs.run.settings import RunSettings
from kernelwright.api.finishing import finish
from kernelwright.api.loading import load_module
from kernelwright.viewers.watching import see_through
from tools.errors import UserError
from tools.problems import problem_from_module
from tools.problems.dynamic import Dynamic
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
    init: str = "[]"
    """Arguments of the kernel's constructor, those of the reference, as a Python literal."""

    @property
    def speedup(self) -> float | None:
        """How many times as fast as the better baseline, measured or estimated as `evaluation.tier` says; None without a kernel."""
        return self.evaluation.speedup if self.evaluation else None

    def module(self, like: nn.Module | None = None) -> nn.Module:
        """Load the kernel into this process as a module, with the weights, device and mode of the module `like`.

        UserError where the reference is kept.
        """
        if self.kernel is None:
            raise UserError(f"The run {self.run} delivered no kernel: {self.reason}", "Keep the module that you have.")
        return load_module(self.kernel, self.init, like)


def optimize(
    problem: str | Path | nn.Module | Callable[..., Any],
    example_inputs: Any = (),
    *,
    dynamic: Dynamic = None,
    settings: RunSettings | None = None,
    home: str | Path | None = None,
    listener: Listener = lambda event: None,
) -> Result:
    """Optimise a problem file, or a module or function with an example of a call; blocks until the run ends.

    `example_inputs` is a tensor, a tuple of arguments, or a mapping of keyword arguments; a tensor may be joined by numbers, strings,
    booleans and None, for which the kernel is specialised. `dynamic` says which sizes change from call to call: a dimension of all
    tensors that share its size (`0`), or dimensions by argument (`{"x": 0, "mask": (0, 1)}`). Without it those vary that can be checked.
    Raises UserError for wrong input and MachineError where this machine fails; the run can then be resumed.
    """
    settings = settings or RunSettings()
    settings = settings.model_copy(update={"team": ready_models(settings.team, settings.budget).settings})
    loaded = _load(problem, example_inputs, dynamic, settings)
    return _see_through(start_run(loaded, settings, Path(home) if home else default_home()), listener)


def resume(run: str, *, home: str | Path | None = None, listener: Listener = lambda event: None) -> Result:
    """Go on with a run that was cut short; a run that has ended is only read."""
    return _see_through(open_run(Path(home) if home else default_home(), run), listener)


def _load(problem: str | Path | nn.Module | Callable[..., Any], example_inputs: Any, dynamic: Dynamic, settings: RunSettings) -> Problem:
    given = not isinstance(example_inputs, tuple | list | dict) or bool(example_inputs)
    if isinstance(problem, str | Path):
        if given or dynamic is not None:
            raise UserError(f"{problem} makes its own inputs.", "Leave the example out; SMALL_SIZES in the file says which sizes vary.")
        return read_problem(Path(problem), settings.policy).problem
    if not callable(problem):
        raise UserError(f"A {type(problem).__name__} is no operator.", "Give a file, an nn.Module or a function.")
    if not given:
        raise UserError("A module or function comes without inputs.", "Give an example of a call: optimize(module, x).")
    return problem_from_module(problem, example_inputs, None, settings.policy, dynamic=dynamic)


def _see_through(store: RunStore, listener: Listener) -> Result:
    services = assemble(store)
    delivery = finish(see_through(services, listener))
    folder = store.folder / "result"
    return Result(
        run=services.run,
        folder=store.folder,
        candidate=delivery.candidate,
        reason=delivery.reason,
        kernel=None if delivery.candidate == ROOT else folder / KERNEL,
        unconfirmed=folder / UNCONFIRMED if delivery.unconfirmed else None,
        evaluation=store.get("evaluation", delivery.evaluation, Evaluation) if delivery.evaluation else None,
        init=services.problem.abi.init,
    )
