"""Finding the source in whatever a model replies."""

from __future__ import annotations

import pytest

from agents.coder.source import read_source

WHOLE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


@pytest.mark.parametrize(
    "reply",
    [
        f"```python\n{WHOLE}```",
        f"Here is the change.\n\n```python\n{WHOLE}```\nI hope it helps.",
        f"First the kernel:\n```python\ndef kernel():\n    pass\n```\nand the whole file:\n```py\n{WHOLE}```",
        f"```\n{WHOLE}```",
        f"~~~python\n{WHOLE}~~~",
        f"````python\n{WHOLE}````",
        f"<think>```python\nclass ModelNew: pass\n``` no</think>\n```python\n{WHOLE}```",
        f"```cpp\nint main() {{}}\n```\n```python\n{WHOLE}```",
        f"```python\n{WHOLE}```\nTo run it:\n```python\nModelNew()\n```",
        WHOLE,
    ],
)
def test_finds_the_whole_file(reply: str) -> None:
    """Prose around it, fragments before it, other languages and thinking do not hide the file."""
    assert read_source(reply) == (WHOLE, "")


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        ("", "empty"),
        ("I am sorry, I cannot.", "no fenced block"),
        ("```cpp\nint main() {}\n```", "holds cpp and no Python"),
        (f"```python\n{WHOLE}", "cut off"),
        ("```python\nclass ModelNew(:\n    pass\n```", "no valid Python: invalid syntax in line 1"),
        ("```python\nclass Model:\n    pass\n```", "no class ModelNew"),
        ("<think>still thinking", "empty"),
    ],
)
def test_says_what_is_wrong(reply: str, complaint: str) -> None:
    """An answer without a usable file is described in words a model can act on."""
    source, said = read_source(reply)
    assert source == ""
    assert complaint in said
