"""Copies the problems of a suite that have a batch norm, with their modules in eval mode: what batch norm folds into is judged there.

Usage: python -m benchmarks.kernelbench.eval_suite KernelBench OUT

KernelBench's modules are in training mode, in which a batch norm has the statistics of the batch. The copies' constructors end with
`self.eval()`; nothing else is changed, and running statistics are those of a fresh module (the evaluator shakes them where it judges).
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path

from tools.errors import UserError
from tools.problems.suite import open_suite

NORMS = "BatchNorm"


def main() -> None:
    """Write the copies and say how many there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    try:
        items = open_suite(given.suite).items
    except UserError as error:
        parser.error(str(error))
    count = 0
    for item in items:
        text = item.file.read_text()
        if NORMS in text:
            file = given.out / "KernelBench" / f"{item.name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(in_eval_mode(text))
            count += 1
    print(f"{count} problems with batch norm in {given.out}")


def in_eval_mode(source: str) -> str:
    """Let the constructor of `Model` end in eval mode; raises UserError where there is none."""
    tree = ast.parse(source)
    methods = [method for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model" for method in node.body]
    made = next((method for method in methods if isinstance(method, ast.FunctionDef) and method.name == "__init__"), None)
    if made is None:
        raise UserError("There is no constructor of a Model in it.", "Name a suite of KernelBench's form.")
    lines = source.split("\n")
    lines.insert(made.end_lineno or made.lineno, " " * made.body[-1].col_offset + "self.eval()")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
