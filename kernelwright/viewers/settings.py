"""Which viewers the environment asks for, by the viewers' own variables; nothing is sent without them."""

from __future__ import annotations

import os

from kernelwright.viewers.protocol import Viewer
from tools.tracing import RunStore

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
SPOKEN = "http/protobuf"
TRACKING = "MLFLOW_TRACKING_URI"


def open_viewers(store: RunStore, *, anew: bool = False) -> tuple[list[Viewer], tuple[str, ...]]:
    """Open the viewers that are asked for; and say, a sentence each, which cannot be had and why.

    `anew` has all of the run sent, whatever was before.
    """
    found: list[Viewer] = []
    notes: list[str] = []
    if wants_spans():
        protocol = next(filter(None, map(os.environ.get, PROTOCOLS)), SPOKEN)
        try:
            from kernelwright.viewers.otlp import OtlpViewer

            if protocol == SPOKEN:
                found.append(OtlpViewer(store, since=0.0 if anew else None))
            else:
                notes.append(f"Spans are sent by {SPOKEN} only, and {protocol} is asked for: none are sent.")
        except ImportError as error:
            notes.append(f"No spans are sent: {error.name} is not installed (pip install 'kernelwright[otel]').")
    if os.environ.get(TRACKING):
        try:
            from kernelwright.viewers.mlflow_runs import MlflowViewer

            found.append(MlflowViewer(store))
        except ImportError as error:
            notes.append(f"Nothing goes to MLflow: {error.name} is not installed (pip install 'kernelwright[mlflow]').")
    return found, tuple(notes)


def wants_spans() -> bool:
    """Whether OpenTelemetry's variables name a collector and do not forbid it."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = os.environ.get("OTEL_TRACES_EXPORTER", "otlp").split(",")
    return "otlp" in map(str.strip, exporters) and any(map(os.environ.get, ENDPOINTS))
