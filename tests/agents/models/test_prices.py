"""Price tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.models import Price, PriceTable, Usage
from agents.models.prices import PRICE_FOLDER, read_prices
from tools.errors import UserError


def test_shipped_tables_are_sourced() -> None:
    """Every table that ships says where its figures come from and when, and bills output at least like input."""
    tables = [read_prices(path) for path in PRICE_FOLDER.glob("*.json")]
    assert tables
    for table in tables:
        assert "https://" in table.source
        assert table.as_of[:4].isdigit()
        assert all(price.output >= price.input > (price.cached_input or 0) for price in table.models.values())


def test_own_table_goes_first(tmp_path: Path) -> None:
    """A user's table overrides the price of a model, and leaves the others."""
    own = {"provider": "me", "source": "my contract", "as_of": "2026-11-20", "models": {"gpt-5": {"input": 1, "output": 2}}}
    (tmp_path / "own.json").write_text(json.dumps(own))
    table = PriceTable.load(tmp_path / "own.json")
    assert table.price("gpt-5") == Price(input=1, output=2)
    assert table.price("gpt-4.1") == PriceTable.load().price("gpt-4.1") != None  # noqa: E711 - a chained comparison
    assert table.cost("no-such-model", Usage(input_tokens=1)) is None


@pytest.mark.parametrize(
    ("text", "what"), [("{", "is no JSON"), ('{"models": {}}', "provider"), ('{"models": {"m": {"input": -1}}}', "is wrong")]
)
def test_wrong_table_names_the_field(tmp_path: Path, text: str, what: str) -> None:
    """A table that cannot be used is refused with its path and field."""
    (tmp_path / "own.json").write_text(text)
    with pytest.raises(UserError, match=what):
        PriceTable.load(tmp_path / "own.json")
