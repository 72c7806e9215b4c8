"""What a model's file imports of its own folder travels with it."""

from __future__ import annotations

from pathlib import Path

from tools.models.neighbours import neighbours


def test_files_that_are_imported_come_along_and_no_others(tmp_path: Path) -> None:
    """Modules, what these import in turn, and whole packages; not libraries, not what merely lies there, not the file itself."""
    texts = {
        "model.py": "import torch\nfrom sizes import WIDTH\nimport parts.norm\n",
        "sizes.py": "def f():\n    import deep, model\n",
        "deep.py": "this is no Python",
        "parts/__init__.py": "",
        "parts/norm.py": "from . import other",
        "other.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert set(neighbours(tmp_path / "model.py")) == {"sizes.py", "deep.py", "parts/__init__.py", "parts/norm.py"}
