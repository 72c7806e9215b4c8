"""The intermediate representations between stages: operator graph, schedule, kernel, launches. Imports nothing else of the generator."""
