"""Name the options of references in the order in which they come in this process, whose sets have an order of their own.

Reads a JSON list of jobs, each with a `source`; writes for each its options' ids and the hash that this process has of a word.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Name every job's options."""
    from tests.tools.codegen.harness import problem_of, trace_problem
    from tools.codegen import initial_schedule, options
    from tools.hardware import load_sheet

    results = []
    for job in json.loads(Path(sys.argv[1]).read_text()):
        graph = trace_problem(problem_of(job["source"]))
        found = options(graph, initial_schedule(graph), load_sheet("h200"))
        results.append({"options": [action.id for action in found], "hash": hash("a word")})
    Path(sys.argv[2]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
