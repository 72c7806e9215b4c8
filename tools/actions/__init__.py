"""The vocabulary of actions in words. Change a meaning here only, together with the parameter in `tools/codegen/templates/*/knobs.py`."""

from tools.actions.guide import GUIDE, Meaning, ParameterMeaning, describe, headline, render_guide

__all__ = ["GUIDE", "Meaning", "ParameterMeaning", "describe", "headline", "render_guide"]
