"""Whole models from Python: what `kernelwright model` does, for a model that is there already.

```python
import kernelwright

found = kernelwright.accelerate(model.eval(), (tokens,), out="faster_decoder")
print(found.package, found.proof.holds)
```
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import ready_models
from graphs.run.settings import RunSettings
from kernelwright.models.here import work_here
from kernelwright.models.operators import Listener
from kernelwright.models.records import ModelSettings, Outcome
from tools.tracing.finding import default_home

if TYPE_CHECKING:
    import torch
    from torch import nn


def accelerate(
    model: nn.Module,
    inputs: Any,
    *,
    out: str | Path,
    settings: ModelSettings | None = None,
    autocast: torch.dtype | None = None,
    home: str | Path | None = None,
    listener: Listener = lambda event: None,
) -> Outcome:
    """Find what is hot in `model`, write operators for it, and put them in; blocks until that is done.

    `inputs` is one call (a tensor, a tuple of arguments, a dictionary of keywords), or an iterable of such, e.g. a data loader, of which
    the first four count. They run under `torch.autocast` to the dtype `autocast`; where none is named, as under the autocast that is on.
    The package is written to `out`; `remove(model)` of it takes the operators out again. The model runs in this
    process, and so do the kernels that were delivered. Raises UserError for wrong input.
    """
    settings = settings or ModelSettings(run=RunSettings())
    if autocast is not None:
        from tools.autocast.state import dtype_named

        settings = settings.model_copy(update={"autocast": dtype_named(autocast, "autocast")})
    run = settings.run.model_copy(update={"team": ready_models(settings.run.team, settings.run.budget).settings})
    place = Path(home) if home else default_home()
    return work_here(model, inputs, Path(out), settings.model_copy(update={"run": run}), place, listener)
