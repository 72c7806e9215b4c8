"""Shows a run as a run of MLflow: its settings, the gain of every evaluation, and at its end the kernel and the report."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# MLflow counts its uses for its makers unless it is told not to; nothing is sent that was not asked for
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from graphs.optimize.confirm import KERNEL
from graphs.run.records import Delivery
from graphs.run.settings import settings_of
from kernelwright.screen.report.report import write_report
from kernelwright.viewers.protocol import SHOWN
from tools.errors import MachineError
from tools.records import Evaluation, Problem, Record
from tools.tracing import RunStore
from tools.tracing.secrets import without_secrets

EXPERIMENT = "kernelwright"
"""Where MLFLOW_EXPERIMENT_NAME names none."""
LONGEST = 500
"""Characters of a parameter."""
AT_ONCE = 100
"""Parameters that MLflow takes in one request."""


class Shown(Record):
    """What MLflow has of a run."""

    server: str
    """Its tracking URI."""
    id: str
    evaluations: int = 0
    """How many it was told."""
    ended: bool = False


class MlflowViewer:
    """One run of MLflow."""

    name = "MLflow"
    things = "evaluations"

    def __init__(self, store: RunStore) -> None:
        """Connect to nothing yet."""
        self._store = store
        self._server = os.environ["MLFLOW_TRACKING_URI"]

    def look(self, *, stopped: bool = False) -> int:
        """Tell MLflow the evaluations that it does not know, and the run's end."""
        try:
            return self._told()
        except (MlflowException, OSError) as error:
            why = without_secrets(str(error)).splitlines()[0].rstrip(".")
            raise MachineError(f"MLflow was not told: {why}.", "Check MLFLOW_TRACKING_URI.") from error

    def _told(self) -> int:
        client = MlflowClient(self._server)
        shown = self._known() or self._begun(client)
        found = list(self._store.all("evaluation", Evaluation).items())
        best = max((one.speedup or 0.0 for _, one in found[: shown.evaluations]), default=0.0)
        metrics: list[Metric] = []
        for step, (key, one) in enumerate(found[shown.evaluations :], shown.evaluations + 1):
            best = max(best, one.speedup or 0.0)
            metrics += _metrics(one, best, step, int(self._store.written("evaluation", key) * 1000))
        for start in range(0, len(metrics), 10 * AT_ONCE):
            client.log_batch(shown.id, metrics=metrics[start : start + 10 * AT_ONCE])
        new = len(found) - shown.evaluations
        delivery = next(iter(self._store.all("delivery", Delivery).values()), None)
        if delivery is not None and not shown.ended:
            self._finish(client, shown.id, delivery)
        self._keep(shown.model_copy(update={"evaluations": len(found), "ended": delivery is not None}))
        return new

    def _known(self) -> Shown | None:
        text = self._store.meta(SHOWN)
        found = Shown.model_validate_json(text) if text else None
        return found if found and found.server == self._server else None

    def _keep(self, shown: Shown) -> None:
        self._store.set_meta(SHOWN, shown.model_dump_json())

    def _begun(self, client: MlflowClient) -> Shown:
        """Begin a run there, with what was set."""
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        known = client.get_experiment_by_name(name)
        experiment = os.environ.get("MLFLOW_EXPERIMENT_ID") or (known.experiment_id if known else client.create_experiment(name))
        run = self._store.meta("run")
        started = int(float(self._store.meta("created") or 0.0) * 1000)
        shown = Shown(server=self._server, id=client.create_run(experiment, start_time=started or None, run_name=run).info.run_id)
        self._keep(shown)
        problem = next(iter(self._store.all("problem", Problem).values()))
        settings = settings_of(self._store).model_dump(mode="json")
        told = dict(_flat(settings | {"problem": problem.name}))
        params = [Param(key, without_secrets(value)) for key, value in told.items() if 0 < len(value) <= LONGEST]
        for start in range(0, len(params), AT_ONCE):
            client.log_batch(shown.id, params=params[start : start + AT_ONCE])
        client.log_batch(shown.id, tags=[RunTag("kernelwright.run", run), RunTag("kernelwright.problem", problem.name)])
        return shown

    def _finish(self, client: MlflowClient, run: str, delivery: Delivery) -> None:
        kernel = self._store.folder / "result" / KERNEL
        if kernel.is_file():
            client.log_artifact(run, str(kernel))
        with tempfile.TemporaryDirectory() as scratch:
            report = Path(scratch) / "report.html"
            write_report(self._store, report)
            client.log_artifact(run, str(report))
        client.set_tag(run, "kernelwright.reason", without_secrets(delivery.reason))
        client.set_terminated(run)


def _metrics(evaluation: Evaluation, best: float, step: int, moment: int) -> Iterator[Metric]:
    """Figures of one evaluation, at its number in the run; none where it has no figure, but the best so far."""
    for name, value in (("speedup", evaluation.speedup), ("time_us", evaluation.time_us), ("best_speedup", best or None)):
        if value is not None:
            yield Metric(name, value, moment, step)


def _flat(settings: dict[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """Settings by dotted name."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value if isinstance(value, str) else json.dumps(value)
