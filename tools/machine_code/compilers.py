"""The compilers for CUDA C++ that this machine has."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def cuda_home() -> str:
    """The CUDA toolkit's folder: CUDA_HOME, that of the nvcc on PATH, or the usual place; empty where there is none."""
    named = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    found = shutil.which("nvcc")
    places = (named, str(Path(found).resolve().parent.parent) if found else None, "/usr/local/cuda")
    # an nvcc on PATH may be a script that starts another
    parts = (Path("bin", "nvcc"), Path("include", "cuda_runtime_api.h"))
    return next((place for place in places if place and all((Path(place) / part).is_file() for part in parts)), "")


def missing_tools() -> str:
    """Name what this machine lacks for building CUDA C++; empty where it has all."""
    wanted = {"nvcc, the CUDA compiler (set CUDA_HOME, or put it on PATH)": cuda_home(), "ninja": ninja(), "a C++ compiler": compiler()}
    return ", ".join(name for name, place in wanted.items() if not place)


def ninja() -> str:
    """The program that torch builds with; empty where there is none."""
    beside = Path(sys.executable).parent / "ninja"
    return shutil.which("ninja") or (str(beside) if beside.is_file() else "")


def compiler() -> str:
    """The C++ compiler; empty where there is none."""
    return shutil.which(os.environ.get("CXX") or "c++") or ""
