"""What tokens cost: tables with their source and date, which a user's own table overrides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from agents.models.messages import Usage
from tools.errors import UserError
from tools.records import Record

PRICE_FOLDER = Path(__file__).resolve().parents[2] / "data" / "prices"
"""Beside `agents` in a checkout and in the installed package alike."""


class Price(Record):
    """US dollars per million tokens of one model."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    """Reasoning tokens are billed as output."""
    cached_input: float | None = Field(default=None, ge=0)
    """None where cached input costs what other input does."""

    def cost(self, usage: Usage) -> float:
        """Price of one call in US dollars."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1e6


class PriceFile(Record):
    """One table as it lies in a file."""

    provider: str
    source: str
    """Where the figures were read."""
    as_of: str
    """Date of the source."""
    currency: str = Field(default="USD", pattern="^USD$")
    unit: str = Field(default="million tokens", pattern="^million tokens$")
    models: dict[str, Price]
    """By the server's name of the model."""


class PriceTable:
    """Prices by model name; a model that is in no table has none."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        """Take prices as they are."""
        self._prices = dict(prices)

    @classmethod
    def load(cls, override: Path | None = None) -> PriceTable:
        """Read the tables that ship with kernelwright, then the user's, whose entries go first."""
        prices: dict[str, Price] = {}
        for path in (*sorted(PRICE_FOLDER.glob("*.json")), *((override,) if override else ())):
            prices |= read_prices(path).models
        return cls(prices)

    def price(self, model: str) -> Price | None:
        """Price of `model`; None where it is unknown."""
        return self._prices.get(model)

    def cost(self, model: str, usage: Usage) -> float | None:
        """US dollars of one call; None where the price or the usage is unknown."""
        price = self.price(model)
        return price.cost(usage) if price is not None and usage.counted else None


def read_prices(path: Path) -> PriceFile:
    """Read one table; UserError says which field is wrong."""
    try:
        return PriceFile.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"The price table {path} cannot be read ({error.strerror}).", "Give the path of a JSON file.") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"The price table {path} is wrong: {field}: {first['msg']}.", "Write it like data/prices/openai.json.") from error
    except ValueError as error:
        raise UserError(f"The price table {path} is no JSON ({error}).", "Write it like data/prices/openai.json.") from error
