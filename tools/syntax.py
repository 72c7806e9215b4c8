"""Python source as trees, read by one thread at a time.

CPython 3.11 and 3.12 count the depth of such a reading for the whole interpreter: where the garbage collector lets another thread read
meanwhile, it ends in `SystemError: AST constructor recursion depth mismatch`.
"""

from __future__ import annotations

import ast
import threading

_ONE = threading.RLock()


def parsed(source: str) -> ast.Module:
    """Parse a file's source, as `ast.parse` does; raises SyntaxError or ValueError as it does."""
    with _ONE:
        return ast.parse(source)
