"""Makes the recorded run anew: `python -m tests.recorded.make`."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

from agents import TeamSettings
from tests.agents.models.playing import EVERY, model_settings, play
from tests.support.scenarios import block_code, block_plan, block_team
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer

HERE = Path(__file__).parent / "scripted"
TROUBLE = [
    Rule(role="coder", answer=block_code(64, "WRONG"), uses=1),
    Rule(role="planner", answer=block_plan(64, region="moon"), uses=1),
]
"""A first draft to be repaired, and a plan to be sent back."""


def main() -> None:
    """Record a run and write it down as text."""
    with tempfile.TemporaryDirectory() as scratch, ScriptedServer(Scenario(rules=[*TROUBLE, *block_team()])) as server:
        folder = Path(scratch) / "scripted"
        team = TeamSettings(model=model_settings(server), team="full", roles=EVERY)
        asyncio.run(play(folder, team)).store.close()
        shutil.rmtree(HERE, ignore_errors=True)
        HERE.mkdir()
        # not as files of their own: they would be linted and formatted, and a source is named by its text
        sources = {path.name: path.read_text() for path in sorted((folder / "candidates").iterdir())}
        (HERE / "candidates.json").write_text(json.dumps(sources, indent=1) + "\n")
        database = sqlite3.connect(folder / "run.db")
        database.execute("DELETE FROM spans")
        database.commit()
        (HERE / "run.sql").write_text("\n".join(database.iterdump()) + "\n")
        database.close()


if __name__ == "__main__":
    main()
