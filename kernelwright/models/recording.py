"""Keeps what is known of the work on a model in the home folder while it goes on, so that it can be looked at."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwright.models.operators import Listener
from kernelwright.models.records import OperatorOutcome, Outcome
from tools.errors import UserError

KIND = "models"


class Recording:
    """One file in `home`/models, written anew with each operator that is done."""

    def __init__(self, home: Path, begun: Outcome, listener: Listener) -> None:
        """Write down what is known before the first operator; events go on to `listener`."""
        title = re.sub(r"[^a-z0-9]+", "-", begun.capture.title.lower()).strip("-") or "model"
        self._path = home / KIND / f"{title}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}.json"
        self._outcome, self._listener = begun.model_copy(update={"under_way": True}), listener
        self._write()

    def __call__(self, event: dict[str, Any]) -> None:
        """Take an operator's outcome in, and pass the event on."""
        if event["event"] == "outcome":
            self._done((*self._outcome.operators, event["outcome"]))
        self._listener(event)

    def end(self, outcome: Outcome) -> None:
        """Write down what came of all."""
        self._outcome = outcome
        self._write()

    def _done(self, operators: Sequence[OperatorOutcome]) -> None:
        self._outcome = self._outcome.model_copy(update={"operators": tuple(operators)})
        self._write()

    def _write(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part = self._path.with_suffix(".part")
            part.write_text(self._outcome.model_dump_json())
            part.replace(self._path)
        except OSError as error:
            raise UserError(
                f"{self._path} cannot be written ({error.strerror}).", "Mend its permissions, or give another --home."
            ) from error
