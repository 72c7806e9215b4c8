"""What other programs show of a run: OpenTelemetry spans and MLflow runs, sent only where their own variables ask for it."""
