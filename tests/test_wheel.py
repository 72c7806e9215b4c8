"""The wheel, installed away from the checkout, has everything a user needs and nothing in the top level but `kernelwright`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built without the network: this environment's setuptools serves.

    It is built outside of the checkout, whose `build` folder may hold files that are no longer there.
    """
    out = tmp_path_factory.mktemp("wheel")
    extra = out / "build.cfg"
    extra.write_text(f"[build]\nbuild_base = {out / 'build'}\n")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=240, env={**os.environ, "DIST_EXTRA_CONFIG": str(extra)})
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel, as pip would lay it."""
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def _run(site: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(site)!r}); " + arguments[0]
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments[1:]], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def test_only_one_top_level_package_is_installed(wheel: Path) -> None:
    """`agents`, `tools`, `graphs` and `knowledge` never land in site-packages, where others install those names."""
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"kernelwright"}


def test_every_source_and_data_file_is_in_the_wheel(wheel: Path) -> None:
    """No module, prompt, sample operator, device sheet or seed strategy is left behind."""
    inside = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("kernelwright", "graphs", "agents", "knowledge", "tools", "data"):
        below = "" if folder == "kernelwright" else "kernelwright/"
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        missing = [str(path) for path in files if below + path.relative_to(ROOT).as_posix() not in inside]
        assert not missing


def test_what_only_tests_and_benchmarks_use_is_not_in_the_wheel(wheel: Path) -> None:
    """The simulator of searches, recorded landscapes and sweeps, benchmarks, scripts and tests stay in the checkout."""
    inside = zipfile.ZipFile(wheel).namelist()
    assert [name for name in inside if re.search(r"benchmarks|scripts/|tests/|simulator|landscape|sweeps", name)] == []


def test_the_installed_package_imports_its_own_folders(site: Path, tmp_path: Path) -> None:
    """From anywhere, `import kernelwright` makes `tools` importable, from inside the wheel and not from the checkout."""
    done = _run(site, tmp_path, "import kernelwright, tools.records, graphs.search; print(tools.records.__file__)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().startswith(str(site))


def test_another_package_called_tools_stops_it_clearly(site: Path, tmp_path: Path) -> None:
    """Where another `tools` is already imported, the import error says which and what to do."""
    (tmp_path / "tools.py").write_text("")
    done = _run(site, tmp_path, f"sys.path.insert(0, {str(tmp_path)!r}); import tools, kernelwright")
    assert done.returncode == 1
    assert "kernelwright needs the name 'tools'" in done.stderr
    assert "process of its own" in done.stderr


def test_the_installed_command_line_finds_its_data(site: Path, tmp_path: Path) -> None:
    """`kernelwright hardware` of the installed wheel lists the device sheets it carries."""
    done = _run(site, tmp_path, "sys.argv = ['kernelwright', 'hardware', 'h200']; from kernelwright.cli.app import main; main()")
    assert done.returncode == 0, done.stderr
    assert "NVIDIA H200" in done.stdout
