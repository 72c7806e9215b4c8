"""The command line's words for a team: models, their server, and which variant plays a role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from agents.models import ModelSettings
from agents.models.words import ROLES, Overrides, read_models, read_overrides
from agents.team.settings import TEAMS, VARIANTS, Team, TeamSettings, check_team
from tools.errors import UserError


def team_settings(
    model: str = "",
    base_url: str = "",
    roles: Sequence[str] = (),
    key_file: str = "",
    prices: str = "",
    model_set: Sequence[str] = (),
    team: str = "solo",
) -> TeamSettings:
    """Read the command line's words: models, their server, and `ROLE=VARIANT` or `ROLE=VARIANT:MODEL` for single roles.

    MODEL is `NAME` or `NAME@URL`; several, joined by commas, are an ensemble. `model_set` has `FIELD=VALUE` of ModelSettings, for all or
    for one role or model.
    """
    if (base_url or key_file) and not model and not any(":" in word for word in roles):
        raise UserError("A server is named, but no model.", "Add --model NAME; most servers list theirs at BASE_URL/models.")
    if team not in TEAMS:
        raise UserError(f"There is no team called {team!r}.", f"Choose one of: {', '.join(TEAMS)}.")
    overrides = read_overrides(model_set)
    variants: dict[str, str] = {}
    models: dict[str, tuple[ModelSettings, ...]] = {}
    for word in roles:
        role, equals, rest = (part.strip() for part in word.partition("="))
        variant, _, own = rest.partition(":")
        if not equals or not variant:
            raise UserError(f"{word!r} does not name a role and its variant.", "Write it like coder=builtin or planner=llm:MODEL.")
        variants[role] = variant
        if own:
            models[role] = read_models(own, base_url, key_file, overrides, role)
    for role in VARIANTS:
        if role not in models and set(overrides.get(role, {})) - {"temperature"} and model:
            models[role] = read_models(model, base_url, key_file, overrides, role)
    every = read_models(model, base_url, key_file, overrides)
    _check_owners(overrides, [*every, *(one for some in models.values() for one in some)])
    made = TeamSettings(
        model=every[0] if every else None,
        team=cast("Team", team),
        others=every[1:],
        roles=variants,
        role_models={role: some[0] for role, some in models.items()},
        role_others={role: some[1:] for role, some in models.items() if some[1:]},
        prices=prices,
    )
    check_team(made)
    return made


def _check_owners(overrides: Overrides, models: Sequence[ModelSettings]) -> None:
    known = {"", *ROLES, *(one.name for one in models)}
    for owner in overrides:
        if owner not in known:
            raise UserError(f"A setting is for {owner!r}, which is neither a role nor a model of this run.", f"Roles: {', '.join(ROLES)}.")
