"""The agents: planner, coder, profiler and reviewer, each behind its protocol with an LLM variant and a built-in one.

One folder a role: `protocol.py` is the contract, `builtin.py` and `llm.py` are its variants, `prompts/` holds what the LLM variant
says. Below them: `models/` asks language models, `prompting/` renders and cuts prompts, `sources/` reads candidates, `records/` is what
planner and coder share. Above them: `team/` has the registry of variants. A new variant is a new class beside the others and one line
in the registry. Agents propose and judge; they never decide what is correct or how fast it is.
"""

from agents.team.ready import ready_models
from agents.team.settings import TEAMS, VARIANTS, TeamSettings
from agents.team.team import AgentTeam, build_team
from agents.team.words import team_settings

__all__ = ["TEAMS", "VARIANTS", "AgentTeam", "TeamSettings", "build_team", "ready_models", "team_settings"]
