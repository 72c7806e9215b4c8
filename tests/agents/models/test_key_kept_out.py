"""A key that a run uses is in none of its records, whatever a server, a model or an error says of it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from agents.models.calls import CallRecord, Trouble
from agents.models.messages import Message
from agents.models.settings import ModelSettings, find_key
from tools.tracing import RunStore

PLANTED = "planted-key-of-mine"


def test_a_password_in_an_address_is_in_no_call(tmp_path: Path) -> None:
    """A call keeps the address it was sent to, without."""
    settings = ModelSettings(name="m", base_url="http://me:planted-password@localhost/v1")
    find_key(settings)
    store = RunStore.create(tmp_path / "run", {"run": "run"})
    call = CallRecord(role="coder", purpose="p", model="m", messages=(), text="", server=settings.endpoint)
    store.put_call("a", call.model_dump_json())
    assert store.calls()[0]["server"] == "http://me:[secret]@localhost/v1"


@pytest.mark.parametrize("from_file", [False, True])
def test_a_key_in_use_is_written_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_file: bool) -> None:
    """Calls, troubles and errors of nodes lose it; the bytes of the run's files do not have it."""
    (tmp_path / "key").write_text(PLANTED)
    monkeypatch.setenv("KERNELWRIGHT_API_KEY", "" if from_file else PLANTED)
    key = find_key(ModelSettings(name="m", base_url="http://localhost/v1", key_file=str(tmp_path / "key") if from_file else None))
    assert key.secret.get_secret_value() == PLANTED
    store = RunStore.create(tmp_path / "run", {"run": "run"})
    said = f"Incorrect API key provided: {PLANTED}"
    trouble = Trouble(role="coder", purpose="p", model="m", turns=1, kind="unavailable", what=said, mend="Put another there.")
    store.put("trouble", "a", trouble)
    call = CallRecord(role="coder", purpose="p", model="m", messages=(Message(role="user", content=said),), text=said)
    store.put_call("b", call.model_dump_json())
    with suppress(RuntimeError), store.span("write", "", "{}") as output:
        output.append(f'"{said}"')
        raise RuntimeError(said)
    assert store.calls()[0]["text"] == "Incorrect API key provided: [secret]"
    store.close()
    assert PLANTED not in "".join(file.read_bytes().decode(errors="replace") for file in (tmp_path / "run").iterdir() if file.is_file())
