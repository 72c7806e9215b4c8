"""Static rules: tripwires that read a candidate's syntax tree, each with its reason; never the only defence, and nothing is imported.

`reject` is for what no kernel needs; `note` for what has honest uses and is only said. A source that cannot be parsed has no
findings: the build says what is wrong with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal, NamedTuple

from tools.syntax import parsed

Severity = Literal["reject", "note"]


class Rule(NamedTuple):
    """Why something is looked for."""

    severity: Severity
    reason: str


class Finding(NamedTuple):
    """One place where a rule applies."""

    rule: str
    line: int
    severity: Severity
    reason: str

    def __str__(self) -> str:
        """Read as `Line 12, rule frames: …`."""
        return f"Line {self.line}, rule {self.rule}: {self.reason}"


RULES: dict[str, Rule] = {
    "system-files": Rule("reject", "it names files of the system that show other processes or outlive this one; a kernel reads none."),
    "native-memory": Rule("reject", "it reaches raw memory of the process, where a judge's data could be looked for."),
    "frames": Rule("reject", "it walks the caller's frames or all live objects, where a reference could be looked for."),
    "patching": Rule("reject", "it replaces a part of torch, triton, Python or a clock, which others rely on."),
    "modules": Rule("reject", "it reaches into the table of loaded modules, where a judge's module could be looked for."),
    "processes": Rule("reject", "it starts, ends or signals processes; a kernel needs none."),
    "network": Rule("reject", "it opens connections; a kernel needs none."),
    "early-exit": Rule("reject", "it ends the process that is to run it."),
    "hidden-code": Rule("reject", "it runs code that is not in the source as it stands."),
    "lazy-tensor": Rule("reject", "it makes tensors that compute when they are looked at, after the clock has stopped."),
    "native-tampering": Rule("reject", "its native code looks for symbols, changes page protections or runs when it is loaded."),
    "native-types": Rule("note", "it works with C's types and addresses."),
    "computed-import": Rule("note", "it imports a module whose name is computed."),
    "threads": Rule("note", "work in a thread may go on after the call has returned."),
    "side-stream": Rule("note", "work on another stream must be waited for before the call returns."),
    "graphs": Rule("note", "a replayed graph must read the current inputs."),
    "address-key": Rule("note", "something is chosen by an address or identity, which says nothing of the contents."),
    "global-flag": Rule("note", "it changes a setting of the whole process."),
    "environment": Rule("note", "it reads or changes environment variables."),
    "files": Rule("note", "it reads or writes files."),
    "clock": Rule("note", "it looks at a clock."),
    "fallback": Rule("note", "an exception while it works is answered with other code: what ran may not be the kernel that is shown."),
    "short-products": Rule("note", "a product is told to use a shorter format than its operands have."),
    "native-build": Rule("note", "it compiles native code when it is imported or called."),
    "collection": Rule("note", "it controls Python's garbage collector."),
}
"""By id; a test holds that each fires on something, and that honest kernels meet no `reject`."""

_CALLED = {
    "inspect.stack": "frames", "inspect.currentframe": "frames", "inspect.getouterframes": "frames", "inspect.trace": "frames",
    "sys._getframe": "frames", "sys._current_frames": "frames", "sys.settrace": "frames", "sys.setprofile": "frames",
    "gc.get_objects": "frames", "gc.get_referrers": "frames", "gc.get_referents": "frames", "gc": "collection",
    "os.system": "processes", "os.popen": "processes", "os.fork": "processes", "os.forkpty": "processes", "os.kill": "processes",
    "os.killpg": "processes", "os.execv": "processes", "os.execve": "processes", "os.spawnl": "processes", "os.posix_spawn": "processes",
    "os._exit": "early-exit", "os.abort": "early-exit", "sys.exit": "early-exit", "exit": "early-exit", "quit": "early-exit",
    "exec": "hidden-code", "eval": "hidden-code", "compile": "hidden-code", "__import__": "hidden-code", "marshal.loads": "hidden-code",
    "pickle.loads": "hidden-code", "os.environ": "environment", "os.getenv": "environment", "os.putenv": "environment",
    "sys.modules": "modules", "open": "files", "torch.save": "files", "torch.load": "files", "pathlib.Path": "files",
    "torch.Tensor._make_subclass": "lazy-tensor", "torch.Tensor._make_wrapper_subclass": "lazy-tensor",
    "torch.cuda.Stream": "side-stream", "torch.cuda.stream": "side-stream", "torch.cuda.set_stream": "side-stream",
    "torch.cuda.ExternalStream": "side-stream", "torch.cuda.CUDAGraph": "graphs", "torch.cuda.graph": "graphs",
    "torch.cuda.make_graphed_callables": "graphs", "torch.set_float32_matmul_precision": "global-flag",
    "torch.set_default_dtype": "global-flag", "torch.use_deterministic_algorithms": "global-flag", "torch.cuda.Event": "clock",
    "ctypes.CDLL": "native-memory", "ctypes.PyDLL": "native-memory", "ctypes.cdll": "native-memory", "ctypes.pydll": "native-memory",
    "ctypes.pythonapi": "native-memory", "ctypes.memmove": "native-memory", "ctypes.memset": "native-memory",
    "ctypes.string_at": "native-memory", "time": "clock", "torch.utils.cpp_extension": "native-build",
}  # fmt: skip
"""Dotted names, as imports resolve them; a name covers what is below it."""

_IMPORTED = {
    "ctypes": "native-types", "mmap": "native-memory", "cffi": "native-memory", "_ctypes": "native-memory",
    "subprocess": "processes", "multiprocessing": "processes", "signal": "processes", "pty": "processes",
    "socket": "network", "urllib": "network", "http": "network", "requests": "network", "ssl": "network", "asyncio.streams": "network",
    "marshal": "hidden-code", "atexit": "early-exit", "faulthandler": "native-memory",
    "threading": "threads", "_thread": "threads", "concurrent.futures": "threads",
    "shutil": "files", "tempfile": "files", "shelve": "files",
}  # fmt: skip

_ATTRIBUTES = {
    "f_back": "frames", "f_locals": "frames", "f_globals": "frames", "tb_frame": "frames", "gi_frame": "frames", "cr_frame": "frames",
    "__subclasses__": "frames", "__builtins__": "patching", "from_address": "native-memory",
    "data_ptr": "address-key", "_version": "address-key",
}  # fmt: skip

_PATHS = ("/proc/", "/dev/shm", "/dev/mem", "/sys/fs", "/sys/kernel", "/var/tmp", "/run/")  # noqa: S108 - looked for, not used
_NATIVE = ("mprotect", "ptrace", "process_vm_", "dlsym", "dlopen", "__attribute__((constructor", "LD_PRELOAD")
_OWNERS = ("torch", "triton", "time", "builtins", "sys", "os", "gc", "inspect", "numpy", "math", "statistics", "random")
_SETTINGS = ("torch.backends", "torch._inductor.config", "torch._dynamo.config", "triton.knobs", "os.environ")
_OWN_FILE = ("inspect.getfile", "inspect.getsourcefile", "inspect.getabsfile")
"""Of its own frame these give the source's path, an old idiom for `__file__`, and no frame to walk on from."""
_HOOKS = ("__torch_function__", "__torch_dispatch__")
_SHORT = ("tf32", "bf16", "fp16")


def inspect_source(source: str) -> tuple[Finding, ...]:
    """List what the rules find, in order of lines, each rule once a line."""
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    reader = _Reader()
    reader.visit(tree)
    found = {(line, rule) for rule, line in reader.found}
    return tuple(Finding(rule, line, RULES[rule].severity, RULES[rule].reason) for line, rule in sorted(found))


def rejected(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Those that no kernel needs."""
    return tuple(finding for finding in findings if finding.severity == "reject")


class _Reader(ast.NodeVisitor):
    """Walks a tree, resolving names through imports and plain assignments."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int]] = []
        self._names: dict[str, str] = {}
        self._owners: set[str] = set()
        """Modules that were imported and that others rely on."""

    def _note(self, rule: str, node: ast.AST) -> None:
        self.found.append((rule, getattr(node, "lineno", 1)))

    def _path(self, node: ast.AST) -> str:
        """Resolve a name or an attribute to a dotted path; empty where it is neither."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self._path(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        if isinstance(node, ast.Call) and self._path(node.func) == "getattr" and len(node.args) >= 2:
            owner, name = self._path(node.args[0]), node.args[1]
            literal = name.value if isinstance(name, ast.Constant) else None
            return f"{owner}.{literal}" if owner and isinstance(literal, str) else ""
        return ""

    def visit_Import(self, node: ast.Import) -> None:
        """Take down what names stand for."""
        for alias in node.names:
            self._names[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
            self._module(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Take down what names stand for."""
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            self._names[alias.asname or alias.name] = path
            self._module(path, node)
            self._used(path, node)

    def _module(self, path: str, node: ast.AST) -> None:
        self._owners |= {path.split(".", maxsplit=1)[0]} & set(_OWNERS)
        for prefix in _prefixes(path):
            if prefix in _IMPORTED:
                self._note(_IMPORTED[prefix], node)

    def _used(self, path: str, node: ast.AST) -> None:
        for prefix in _prefixes(path):
            if prefix in _CALLED:
                self._note(_CALLED[prefix], node)
                return

    def visit_Name(self, node: ast.Name) -> None:
        """Look at what a name stands for."""
        if isinstance(node.ctx, ast.Load) and (node.id in self._names or node.id in ("exec", "eval", "compile", "__import__", "open")):
            self._used(self._path(node), node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Look at what is read, and what is replaced."""
        path = self._path(node)
        if isinstance(node.ctx, ast.Load):
            self._used(path, node)
        else:
            self._replaced(path, node)
        if node.attr in _ATTRIBUTES:
            self._note(_ATTRIBUTES[node.attr], node)
        # the names on the way are parts of this path
        if not path:
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Look at items of tables that are replaced."""
        if not isinstance(node.ctx, ast.Load) and self._path(node.value).endswith("__dict__"):
            self._note("patching", node)
        self.generic_visit(node)

    def _replaced(self, path: str, node: ast.AST) -> None:
        if path.startswith(_SETTINGS):
            self._note("global-flag", node)
        elif path.split(".", maxsplit=1)[0] in self._owners or path.endswith(".__code__"):
            self._note("patching", node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Follow `alias = torch.cuda`."""
        self.generic_visit(node)
        path = self._path(node.value) if isinstance(node.value, ast.Name | ast.Attribute | ast.Call) else ""
        for target in node.targets:
            if isinstance(target, ast.Name):
                if path.split(".", maxsplit=1)[0] in {*_OWNERS, *_IMPORTED}:
                    self._names[target.id] = path
                else:
                    self._names.pop(target.id, None)

    def visit_Call(self, node: ast.Call) -> None:
        """Look at what is called, and with what."""
        path = self._path(node.func)
        if path in ("setattr", "delattr", "object.__setattr__") and node.args:
            self._replaced(self._path(node.args[0]) + ".?", node)
        elif path in ("exit", "quit"):
            self._note("early-exit", node)
        elif path in ("id",):
            self._note("address-key", node)
        elif path == "getattr" and (resolved := self._path(node)):
            self._used(resolved, node)
        elif path == "importlib.import_module" and not (node.args and isinstance(node.args[0], ast.Constant)):
            self._note("computed-import", node)
        elif path == "importlib.import_module":
            self._module(str(node.args[0].value), node)  # type: ignore[attr-defined]
        for keyword in node.keywords:
            self._keyword(keyword, path)
        if not (path in _OWN_FILE and [ast.unparse(argument) for argument in node.args] == ["inspect.currentframe()"]):
            self.generic_visit(node)

    def _keyword(self, keyword: ast.keyword, path: str) -> None:
        value = keyword.value
        if not path.endswith("dot") or not isinstance(value, ast.Constant):
            return
        if (keyword.arg == "allow_tf32" and value.value is True) or (keyword.arg == "input_precision" and value.value in _SHORT):
            self._note("short-products", value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look at hooks, and leave docstrings out."""
        if node.name in _HOOKS:
            self._note("lazy-tensor", node)
        self._body(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at what it derives from."""
        if any(self._path(base) in ("torch.Tensor", "torch.nn.Parameter") for base in node.bases):
            self._note("lazy-tensor", node)
        self._body(node)

    def visit_Module(self, node: ast.Module) -> None:
        """Read everything but the docstring."""
        self._body(node)

    def _body(self, node: ast.Module | ast.ClassDef | ast.FunctionDef) -> None:
        documented = ast.get_docstring(node) is not None
        for name, value in ast.iter_fields(node):
            for child in value[1:] if documented and name == "body" else value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child)

    def visit_Try(self, node: ast.Try) -> None:
        """Look for code that stands in for what failed."""
        if any(not _only_raises(handler) for handler in node.handlers):
            self._note("fallback", node)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Look at paths and at native code in strings."""
        if not isinstance(node.value, str):
            return
        if any(word in node.value for word in _NATIVE):
            self._note("native-tampering", node)
        elif any(path in node.value for path in _PATHS) or node.value.startswith("/tmp/"):  # noqa: S108 - looked for, not used
            self._note("system-files", node)


def _only_raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(statement, ast.Raise) for statement in handler.body) or _is_import_error(handler)


def _is_import_error(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.type, ast.Name) and handler.type.id in ("ImportError", "ModuleNotFoundError")


def _prefixes(path: str) -> Iterator[str]:
    """Give a dotted path and what is above it, the longest first."""
    while path:
        yield path
        path = path.rpartition(".")[0]
