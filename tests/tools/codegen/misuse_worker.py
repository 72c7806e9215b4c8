"""Use guarded kernels as they were not made for under Triton's interpreter, and list what each use ended in.

Runs as a process of its own, as `benchmarks.guards.corpus` does. Reads a JSON list of jobs: a `problem` as text, a `source`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Use every job's kernel."""
    from benchmarks.guards.corpus import rows_of
    from tests.tools.codegen.quick_interpreter import install
    from tools.records import Problem

    install()
    results = []
    for job in json.loads(Path(sys.argv[1]).read_text()):
        rows = rows_of(Problem.model_validate_json(job["problem"]), source=job["source"])
        results.append({"ends": {row.use: row.ended for row in rows}})
    Path(sys.argv[2]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
