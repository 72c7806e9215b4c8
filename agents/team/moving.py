"""A run that goes on with its models' server elsewhere, or with more patience: what changes no question, so that nothing is asked twice."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from agents.models import ModelSettings
from agents.models.words import Overrides, read_overrides
from agents.team.settings import TeamSettings
from tools.errors import UserError

FREE = ("base_url", "key_file", "timeout_s", "retries", "backoff_s", "concurrency", "requests_per_minute", "check", "api_version")
"""Settings that are in no question's key."""


def moved(team: TeamSettings, base_url: str = "", words: Sequence[str] = ()) -> TeamSettings:
    """Give those models the server `base_url` that had the run's own one, and settings by `NAME=VALUE` or `MODEL.NAME=VALUE`.

    Raises UserError for a setting that would change questions that were asked already, and for a model that the run does not have.
    """
    overrides = read_overrides(words)
    every = team.models()
    known = {"", *(one.name for one in every)}
    for owner, fields in overrides.items():
        if owner not in known:
            raise UserError(f"This run has no model {owner!r}.", f"It has: {', '.join(sorted(known - {''})) or 'none'}.")
        if fixed := [name for name in fields if name not in FREE]:
            raise UserError(f"A run keeps its {fixed[0]}: what was asked would be asked again.", f"What can be changed: {', '.join(FREE)}.")
    if (base_url or words) and not every:
        raise UserError("This run asks no model.", "Leave --base-url and --model-set out.")
    before = (team.model or every[0]).base_url if every else None

    def change(model: ModelSettings) -> ModelSettings:
        return _changed(model, base_url if model.base_url == before else "", overrides)

    update = {
        "model": team.model and change(team.model),
        "others": tuple(map(change, team.others)),
        "role_models": {role: change(one) for role, one in team.role_models.items()},
        "role_others": {role: tuple(map(change, some)) for role, some in team.role_others.items()},
    }
    return team.model_copy(update=update)


def _changed(model: ModelSettings, base_url: str, overrides: Overrides) -> ModelSettings:
    fields = {**({"base_url": base_url} if base_url else {}), **overrides.get("", {}), **overrides.get(model.name, {})}
    try:
        return ModelSettings.model_validate({**model.model_dump(), **fields})
    except ValidationError as error:
        first = error.errors()[0]
        what = f"The setting {first['loc'][0]} of the model {model.name!r} is wrong: {first['msg']}."
        raise UserError(what, "See docs/models.md.") from error
