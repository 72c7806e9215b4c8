"""The vocabulary of actions in words. Change a meaning here only, together with the parameter in `tools.codegen.schedule.knobs`."""

from tools.actions.guide import GUIDE, Meaning, ParameterMeaning, describe, headline, render_guide

__all__ = ["GUIDE", "Meaning", "ParameterMeaning", "describe", "headline", "render_guide"]
