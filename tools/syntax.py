"""Python source as trees, read by one thread at a time.

CPython 3.11 and 3.12 count the depth of such a reading for the whole interpreter: where the garbage collector lets another thread read
meanwhile, it ends in `SystemError: AST constructor recursion depth mismatch`. Libraries read, too, so what ended so is read again.
"""

from __future__ import annotations

import ast
import threading
import time

_ONE = threading.RLock()
_TRIES = 20


def parsed(source: str) -> ast.Module:
    """Parse a file's source, as `ast.parse` does; raises SyntaxError or ValueError as it does."""
    with _ONE:
        for tries in range(1, _TRIES):
            try:
                return ast.parse(source)
            except SystemError:
                time.sleep(tries / 1000)
        return ast.parse(source)
