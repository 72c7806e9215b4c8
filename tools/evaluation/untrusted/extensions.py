"""Native extensions of a candidate: the builder compiles them, the runners load what it built.

A candidate calls `torch.utils.cpp_extension.load_inline` as anywhere else; in its own sandboxed processes that name is this
module's. What is built lies among what the compiler cached, under a key of everything it was built from, and travels with it.
Nothing here is a wall: walls are the sandbox's. The list of flags keeps builds alike, so that what is timed is what was asked for.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.evaluation.wire import kernel_cache
from tools.machine_code.compilers import cuda_home, ninja
from tools.records import HardwareSheet, content_hash

FOLDER = "extensions"
"""Below the compiler's cache: `extensions/<key>/<name>.so`."""
FLAGS = re.compile(
    r"-O[0-3]|-std=c\+\+(17|20)|-g|-lineinfo|-w|-W(all|extra|no-[a-z-]+)|-fopenmp|-ffast-math|-fno-math-errno|-funroll-loops"
    r"|--?use_fast_math|--?expt-relaxed-constexpr|--?expt-extended-lambda|--?extended-lambda|--?default-stream[= ]legacy"
    r"|--?(ftz|fmad|prec-div|prec-sqrt)=(true|false)|--?maxrregcount[= ]\d+|--?restrict|--?extra-device-vectorization"
    r"|-Xptxas(=|,| )?(-O[0-3]|-v|-dlcm=c[agsv]|-warn-spills|--?allow-expensive-optimizations=(true|false))?"
    r"|-dlcm=c[agsv]|-v|-warn-spills|-[DU]\w+(=[\w.+-]*)?|-diag-suppress[= ]\d+|--?threads[= ]?\d"
)
"""Flags that a candidate may give to the compilers. The architecture is the target's, so none of them names one."""
LIBRARIES = re.compile(r"-l(cudart|cuda|cublas|cublasLt|cudnn|curand|cusparse|cusolver|m)")
"""Libraries that a candidate may link: they are on the machine, and their calls are legal."""
_JOBS = 4
"""Compilers of one build at the same time: C++ and CUDA sources are two."""

loaded: dict[str, ModuleType] = {}
"""This process's extensions by key."""


class UnsupportedBuildError(Exception):
    """The candidate asks for a build that is not on offer."""


def arch_list(sheet: HardwareSheet) -> str:
    """The target as torch's builder names it; from Hopper on with the instructions that only this architecture has."""
    digits = sheet.arch.removeprefix("sm_").rstrip("a")
    number = f"{digits[:-1]}.{digits[-1]}"
    return f"{number}a" if int(digits) >= 90 else number


def install(sheet: HardwareSheet | None, wrap: Callable[[ModuleType], Any] = lambda module: module) -> None:
    """Take torch's builder over for the rest of this process; `wrap` makes of a built module what the candidate gets.

    Without a sheet the architecture is that of the device at hand.
    """
    from torch.utils import cpp_extension

    folder = (kernel_cache.cache_folder() or Path.cwd()) / FOLDER
    if sheet is not None and sheet.backend == "cuda":
        os.environ["TORCH_CUDA_ARCH_LIST"] = arch_list(sheet)
    os.environ["MAX_JOBS"] = str(_JOBS)
    os.environ["PATH"] = os.pathsep.join(filter(None, [os.environ.get("PATH", ""), str(Path(ninja()).parent) if ninja() else ""]))
    module: Any = cpp_extension
    if module.load_inline.__module__ == __name__:
        # another size of the same candidate in this process
        return
    original = module.load_inline
    if home := cuda_home():
        module.CUDA_HOME = home

    def load_inline(name: str, cpp_sources: Any, cuda_sources: Any = None, functions: Any = None, **given: Any) -> Any:
        build = _checked(name, cpp_sources, cuda_sources, functions, given)
        key = content_hash(os.environ.get("TORCH_CUDA_ARCH_LIST", ""), repr(sorted(build.items())))
        if key not in loaded:
            loaded[key] = _known(folder / key) or _built(original, build, folder / key)
        return wrap(loaded[key])

    def refuse(*_: Any, **__: Any) -> Any:
        raise UnsupportedBuildError("A candidate is one file: build with torch.utils.cpp_extension.load_inline, from strings.")

    module.load_inline = load_inline
    module.load = refuse


def binaries() -> Iterator[tuple[str, bytes]]:
    """Name and machine code of each kernel in this process's extensions; nothing where it cannot be read."""
    from tools.machine_code.resources import tool_path
    from tools.machine_code.sass import parse_usage

    tool = str(tool_path("cuobjdump"))
    for module in loaded.values():
        library = Path(str(module.__file__))
        subprocess.run([tool, "-xelf", "all", library.name], cwd=library.parent, capture_output=True, timeout=60, check=False)
        for cubin in sorted(library.parent.glob("*.cubin")):
            said = subprocess.run([tool, "-res-usage", str(cubin)], capture_output=True, text=True, timeout=60, check=False)
            code = cubin.read_bytes()
            cubin.unlink()
            yield from ((name, code) for name in parse_usage(said.stdout))


def _checked(name: Any, cpp_sources: Any, cuda_sources: Any, functions: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The build as it will be made; raises UnsupportedBuildError for what is not on offer."""
    if not str(name).isidentifier():
        raise UnsupportedBuildError(f"The extension's name {name!r} is no identifier.")
    build: dict[str, Any] = {"name": str(name), "cpp_sources": _texts(cpp_sources), "cuda_sources": _texts(cuda_sources)}
    build["functions"] = functions if isinstance(functions, dict) or functions is None else _texts(functions)
    for field, allowed in (("extra_cflags", FLAGS), ("extra_cuda_cflags", FLAGS), ("extra_ldflags", LIBRARIES)):
        flags = [str(flag).strip() for flag in given.pop(field, None) or ()]
        strange = [flag for flag in flags if not allowed.fullmatch(flag)]
        if strange:
            raise UnsupportedBuildError(f"{field} may not hold {', '.join(strange)}.")
        build[field] = flags
    build["no_implicit_headers"] = bool(given.pop("no_implicit_headers", False))
    # what changes nothing of what is built
    for harmless in ("verbose", "with_cuda", "keep_intermediates", "use_pch", "build_directory", "is_python_module"):
        given.pop(harmless, None)
    if strange := [field for field, value in given.items() if value]:
        raise UnsupportedBuildError(f"load_inline is not offered with {', '.join(strange)}.")
    return build


def _built(original: Callable[..., ModuleType], build: dict[str, Any], place: Path) -> ModuleType:
    """Compile outside of the cache and keep the library alone in it."""
    work = Path.cwd() / f"build-{place.name}"
    work.mkdir(parents=True)
    # torch's builder puts its own headers into the lists it is given
    given = {field: list(value) if isinstance(value, list) else value for field, value in build.items()}
    given = {field: value for field, value in given.items() if value or field in ("name", "cpp_sources")}
    try:
        module = original(**given, build_directory=str(work), use_pch=False)
        place.mkdir(parents=True, exist_ok=True)
        kept = place / Path(str(module.__file__)).name
        shutil.copyfile(str(module.__file__), kept)
        module.__file__ = str(kept)
    except RuntimeError as error:
        raise RuntimeError(telling_build(str(error))) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return module


def telling_build(log: str, limit: int = 1800) -> str:
    """The compilers' and the linker's complaints out of ninja's log, without the commands; its end where there are none."""
    lines = [re.sub(r"[^\s:(]*/((?:cuda\.cu|main\.cpp)\b)", r"\1", line.rstrip()) for line in log.splitlines()]
    wrong = re.compile(
        r"\berror\b|undefined reference|ptxas (fatal|error)|No such file|cannot find -l|: fatal|nvcc fatal|Killed", re.IGNORECASE
    )
    kept: list[str] = []
    for index, line in enumerate(lines):
        is_command = line.startswith(("[", "FAILED:")) or " -c " in line or "ninja" in line
        if wrong.search(line) and not is_command:
            # the source line and the marker under it
            kept += [line, *(following for following in lines[index + 1 : index + 3] if following.startswith((" ", "\t")))]
    return "The extension does not build:\n" + "\n".join(dict.fromkeys(kept or lines[-12:]))[:limit]


def _known(place: Path) -> ModuleType | None:
    """Load what was built before; None where there is nothing."""
    library = next(iter(sorted(place.glob("*.so"))), None)
    if library is None:
        return None
    spec = importlib.util.spec_from_file_location(library.stem, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _texts(given: Any) -> list[str]:
    if given is None:
        return []
    return [given] if isinstance(given, str) else [str(one) for one in given]
