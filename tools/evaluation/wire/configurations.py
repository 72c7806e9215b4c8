"""Which configurations torch.compile chose by timing, from the process that ran it to whoever makes a file of its kernels."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tools.records import content_hash

Configurations = dict[str, dict[str, int]]
"""By a kernel's signature: block sizes by name, with `num_warps` and `num_stages`."""
_READER = TypeAdapter(Configurations)


def kernel_signature(source: str, name: str) -> str:
    """Sign the function `name` from its `def` on, whatever it is called; checks of indices do not count, which may be left out."""
    text = source[source.index(f"def {name}(") :].replace(name, "kernel")
    return content_hash("\n".join(line.rstrip() for line in text.strip().splitlines() if "tl.device_assert(" not in line))


def read_configurations(file: str) -> Configurations:
    """Read what was written down; nothing where there is no file, or no such file."""
    with suppress(OSError, ValidationError):
        return _READER.validate_json(Path(file).read_bytes())
    return {}


def write_configurations(file: str, found: Configurations) -> None:
    """Write them down."""
    Path(file).write_bytes(_READER.dump_json(found))
