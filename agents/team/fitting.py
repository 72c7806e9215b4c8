"""Fits prompts and replies to what a model's server says it takes."""

from __future__ import annotations

from agents.models import ModelSettings
from agents.prompting.frame import CONTEXTS
from agents.team.settings import VARIANTS, TeamSettings

REPLY_SHARE = 3
"""A reply gets at most one part in this many of a model's context: the prompt has the reference, the parent's source and the profile."""
MARGIN = 256
"""Tokens for what a server adds around messages."""
ASKS_AS = {role: (role, "repairer") if role == "coder" else (role,) for role in VARIANTS}
"""Names under which a role asks: the repairer is the coder mending what failed."""


def fitted(settings: TeamSettings, contexts: dict[str, int]) -> tuple[TeamSettings, tuple[str, ...]]:
    """Shorten prompts and replies to `contexts`, tokens by the JSON of a model's settings; say what was shortened."""
    known = {name: size for name, size in contexts.items() if size}
    if not known:
        return settings, ()

    def fit(model: ModelSettings) -> ModelSettings:
        size = known.get(model.model_dump_json(), 0)
        return model.model_copy(update={"max_output_tokens": _reply(model, size)}) if size else model

    limits: dict[str, int] = {}
    for role, names in ASKS_AS.items():
        rooms = [
            size - _reply(model, size) - MARGIN for model in settings.models_of(role) if (size := known.get(model.model_dump_json(), 0))
        ]
        for name in names if rooms else ():
            allowed = settings.frame.context(name)
            if not allowed or min(rooms) < allowed:
                limits[name] = max(1, min(rooms))
    frame = settings.frame.model_copy(update={"contexts": {**settings.frame.contexts, **limits}})
    change = {
        "model": settings.model and fit(settings.model),
        "others": tuple(map(fit, settings.others)),
        "role_models": {role: fit(model) for role, model in settings.role_models.items()},
        "role_others": {role: tuple(map(fit, models)) for role, models in settings.role_others.items()},
        "frame": frame,
    }
    return settings.model_copy(update=change), _said(known, limits)


def _reply(model: ModelSettings, size: int) -> int:
    """Tokens of a reply; 0 leaves it to the server, which then needs room for one all the same."""
    room = size // REPLY_SHARE
    return min(model.max_output_tokens, room) if model.max_output_tokens else room


def _said(known: dict[str, int], limits: dict[str, int]) -> tuple[str, ...]:
    if not limits:
        return ()
    size = min(known.values())
    listed = ", ".join(f"{role} {limit:,} instead of {CONTEXTS[role]:,}" for role, limit in limits.items())
    return (f"The server says that its model takes {size:,} tokens: prompts are shortened ({listed}).",)
