"""Which model, where, and how to ask it; and where its key comes from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, SecretStr

from tools.errors import UserError
from tools.records import Record
from tools.tracing.secrets import remember_secret

HOSTED_URL = "https://api.openai.com/v1"
KEY_VARIABLES = ("KERNELWRIGHT_API_KEY", "OPENAI_API_KEY")
URL_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
AZURE_KEY_VARIABLES = ("KERNELWRIGHT_API_KEY", "AZURE_OPENAI_API_KEY")
AZURE_URL_VARIABLES = ("AZURE_OPENAI_ENDPOINT",)
AZURE_VERSION_VARIABLE = "OPENAI_API_VERSION"

Api: TypeAlias = Literal["auto", "chat", "responses", "azure"]


class ModelSettings(Record):
    """One model on one OpenAI-compatible server. Holds no key, so it can be written down with a run."""

    name: str
    """As the server calls it; on Azure the deployment."""
    base_url: str | None = None
    """E.g. `http://localhost:8000/v1`; None takes OPENAI_BASE_URL, or else the hosted service. On Azure the resource's endpoint."""
    api: Api = "auto"
    """Chat Completions, Responses, or Azure's Chat Completions by deployment; `auto` turns to Responses where the server asks for it."""
    api_version: str = ""
    """Of Azure; empty takes OPENAI_API_VERSION."""
    key_file: str | None = None
    """File that holds the key; None looks at KERNELWRIGHT_API_KEY, then OPENAI_API_KEY (on Azure: AZURE_OPENAI_API_KEY)."""
    check: bool = True
    """Whether the server is asked for its models when a run starts, and one that it does not list is refused."""
    temperature: float | None = Field(default=None, ge=0)
    """None leaves it to the server."""
    role_temperatures: dict[str, float] = Field(default_factory=dict)
    """By role (`planner`, `coder`, `repairer`, `profiler`, `reviewer`), instead of `temperature`."""
    seed: int | None = None
    """Sent where the server takes one."""
    max_output_tokens: int = Field(default=16384, ge=0)
    """Of one reply, thinking included; 0 leaves it to the server, and a budget of tokens or money then gives it a limit."""
    timeout_s: float = Field(default=300.0, gt=0)
    """For one reply; a local model may need much more. A question is not tried again after one and a half times that; where asking in vain
    took three times that, the server is not asked again in this session."""
    retries: int = Field(default=4, ge=0)
    """After rate limits, server errors, lost connections and time-outs."""
    backoff_s: float = Field(default=1.0, gt=0)
    """Wait before the first retry, doubled each time, at most a minute; the server's Retry-After goes first."""
    concurrency: int = Field(default=4, ge=1)
    """Requests in flight at once."""
    requests_per_minute: float = Field(default=0.0, ge=0)
    """Requests are spread so that no more are begun; 0 sets no limit."""

    @property
    def endpoint(self) -> str:
        """Base URL in force."""
        variables = AZURE_URL_VARIABLES if self.api == "azure" else URL_VARIABLES
        found = self.base_url or next((os.environ[v] for v in variables if os.environ.get(v)), "")
        if not found and self.api == "azure":
            raise UserError(
                "Azure is named, but no endpoint.",
                "Give --base-url https://RESOURCE.openai.azure.com, or set AZURE_OPENAI_ENDPOINT.",
            )
        return found or HOSTED_URL

    @property
    def is_hosted(self) -> bool:
        """Whether it is the service that serves OpenAI's own models."""
        return self.endpoint.rstrip("/") == HOSTED_URL

    @property
    def azure_version(self) -> str:
        """API version that Azure is asked with."""
        found = self.api_version or os.environ.get(AZURE_VERSION_VARIABLE, "")
        if not found:
            raise UserError(
                f"Azure needs an API version, and {AZURE_VERSION_VARIABLE} is not set.", "Give --model-set api_version=2024-10-21."
            )
        return found

    def temperature_of(self, role: str) -> float | None:
        """Temperature for `role`; None leaves it to the server."""
        return self.role_temperatures.get(role, self.temperature)


@dataclass(frozen=True)
class Key:
    """A key and the name of the place it came from."""

    secret: SecretStr
    source: str
    """`environment variable OPENAI_API_KEY`, `file …`, or `no key`."""


def find_key(settings: ModelSettings) -> Key:
    """Read the key; a server of the user's own may need none, the hosted one raises UserError without."""
    if password := urlsplit(settings.endpoint).password:
        remember_secret(password)
    if settings.key_file:
        return _used(_read(Path(settings.key_file).expanduser()), f"file {settings.key_file}")
    variables = AZURE_KEY_VARIABLES if settings.api == "azure" else KEY_VARIABLES
    for variable in variables:
        if value := os.environ.get(variable, "").strip():
            return _used(value, f"environment variable {variable}")
    if settings.is_hosted or settings.api == "azure":
        raise UserError(
            f"The model {settings.name!r} is on {settings.endpoint}, which needs a key, and {' and '.join(variables)} are not set.",
            f"Set {variables[-1]}, or name a server that needs no key with --base-url.",
        )
    return Key(SecretStr("none"), "no key")


def _used(secret: str, source: str) -> Key:
    """A key that this process uses, and writes down nowhere: a server may say it in an error."""
    remember_secret(secret)
    return Key(SecretStr(secret), source)


def _read(path: Path) -> str:
    mend = "Give the path of a text file that holds the key alone."
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The key file {path} cannot be read ({error}).", mend) from error
    if not text or any(c.isspace() for c in text):
        raise UserError(f"The key file {path} does not hold one key.", mend)
    return text
