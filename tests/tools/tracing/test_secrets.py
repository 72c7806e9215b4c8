"""What is taken for a secret, and what is not."""

from __future__ import annotations

import pytest

from tools.tracing.secrets import HIDDEN, without_secrets

SECRETS = (
    "sk-proj-0123456789abcdefABCDEF",
    "ghp_0123456789abcdefghijklmnopqrstuvwx",
    "hf_abcdefghijklmnopqrstuvwx",
    "AKIAIOSFODNN7EXAMPLE",
    "lsv2_pt_0123456789abcdef0123456789abcdef_0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_keys_of_well_known_services_are_left_out(secret: str) -> None:
    """By their form, wherever they stand in a text."""
    assert without_secrets(f'the key is "{secret}".') == f'the key is "{HIDDEN}".'


def test_tokens_in_headers_and_passwords_in_addresses_are_left_out() -> None:
    """The address and the header stay."""
    assert without_secrets("Authorization: Bearer abcdef0123456789abcdef") == f"Authorization: Bearer {HIDDEN}"
    assert without_secrets("http://me:hunter2@host:8000/v1") == f"http://{HIDDEN}@host:8000/v1"


def test_values_of_variables_that_are_called_keys_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that happens to be such a value stays, and so does what other variables hold."""
    monkeypatch.setenv("COMPANY_PASSWORD", "correct-horse-42")
    monkeypatch.setenv("SORT_KEY", "estimated")
    monkeypatch.setenv("COMPANY_NAME", "horse-company-42")
    text = "estimated correct-horse-42 horse-company-42"
    assert without_secrets(text) == f"estimated {HIDDEN} horse-company-42"


@pytest.mark.parametrize(
    "text", ["c5757ec3052e1671", "softmax-20261121-120000-ab12", "http://host:8000/v1 and a@b", "task-oriented-programming-model-x"]
)
def test_ids_names_and_addresses_stay(text: str) -> None:
    """What a trace is joined by is no secret."""
    assert without_secrets(text) == text
