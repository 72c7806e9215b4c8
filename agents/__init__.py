"""The agents: planner, coder, profiler and reviewer, each behind its protocol with an LLM variant and a built-in one.

One folder a role: `protocol.py` is the contract, `builtin.py` and `llm.py` are its variants, `prompts/` holds what the LLM variant
says. `models/` asks language models, `prompting.py` renders and cuts prompts as `frame.py` says, `team.py` is the registry of
variants. A new variant is a new class beside the others and one line in the registry. Agents propose and judge; they never decide
what is correct or how fast it is.
"""

from agents.team import VARIANTS, AgentTeam, TeamSettings, build_team, ready_models, team_settings

__all__ = ["VARIANTS", "AgentTeam", "TeamSettings", "build_team", "ready_models", "team_settings"]
