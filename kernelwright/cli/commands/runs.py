"""List the runs: name, state, target, evaluations, the speed-up so far and its tier.

Example: kernelwright runs --json
"""

from __future__ import annotations

from kernelwright.cli.shared.options import Home, Json, home_folder


def command(home: Home = None, json: Json = False) -> None:
    """Print a table of runs, newest first."""
    from kernelwright.screen.facts import run_facts
    from tools.tracing import RunStore

    folder = home_folder(home) / "runs"
    found = sorted(folder.glob("*/run.db"), key=lambda path: path.stat().st_mtime, reverse=True)
    facts = [run_facts(RunStore(path.parent)) for path in found]
    if json:
        from json import dumps

        print(dumps(facts, indent=1))
        return
    from rich.console import Console
    from rich.table import Column, Table

    if not facts:
        print(f"No runs in {folder}. Start one with: kernelwright optimize FILE")
        return
    names = ("state", "target", "evals", "speed-up", "tier")
    # a narrow terminal folds the long names of runs, and never crops a figure or its tier
    run = Column("run", overflow="fold")
    table = Table(run, *(Column(name, no_wrap=True) for name in names), box=None, pad_edge=False)
    for fact in facts:
        speedup = f"{fact['speedup']:.2f}x" if fact["speedup"] else "–"
        table.add_row(fact["run"], fact["state"], fact["target"], str(fact["evaluations"]), speedup, fact["tier"] or "–")
    Console().print(table)
