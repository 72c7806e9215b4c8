"""A crash in native code leaves a trace in the log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CRASH = """
import atexit, ctypes, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

def last_word():
    child = [sys.executable, "-c", "import faulthandler; print(faulthandler.is_enabled())"]
    print(subprocess.run(child, capture_output=True, text=True, check=True).stdout.strip(), flush=True)
    ctypes.string_at(0)

atexit.register(last_word)
sys.argv = ["kernelwright", "--version"]
from kernelwright.cli.app import main
main()
"""


def test_a_crash_says_where_it_was() -> None:
    """Standard error names the crash and its line; standard output is as ever, and a child process crashes as it would by itself."""
    done = subprocess.run([sys.executable, "-c", CRASH], check=False, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == -11
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert "in last_word" in done.stderr
    version, child = done.stdout.splitlines()
    assert version[0].isdigit()
    assert child == "False"


def test_no_standard_error() -> None:
    """Without a standard error that could take a trace the command works as ever."""
    start = "import sys; sys.stderr = None; sys.argv = ['kernelwright', '--version']; from kernelwright.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", start], check=False, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0
    assert done.stdout.strip()
