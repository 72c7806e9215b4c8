"""The text of a reference as one function that makes it: it stands in a delivered file beside other code, whose names it leaves alone."""

from __future__ import annotations

import ast

from tools.records import Problem, ProblemForm
from tools.syntax import parsed

DROPPED = {"get_inputs", "get_init_inputs", "example_inputs", "SMALL_SIZES", "INPUT_VIEWS"}
"""What a file says of its inputs."""
CALLED = '''
class Reference(torch.nn.Module):
    """Calls the reference's function."""

    def forward(self, *inputs):
        """Call it."""
        return {entry}(*inputs)
'''


def embeddable(problem: Problem) -> str:
    """Say why a reference cannot stand in a delivered file; empty where it can."""
    if problem.form is ProblemForm.EXPORTED:
        return "it is an exported module, which has no text"
    try:
        compile(reference_text(problem), problem.name, "exec")
    except SyntaxError as error:
        return f"its file cannot stand in a function: {error.msg}"
    return ""


def reference_text(problem: Problem) -> str:
    """Write `reference()`, which returns the reference's class."""
    tree = parsed(problem.source)
    kept = [ast.unparse(node) for node in tree.body if not _is_dropped(node)]
    entry = problem.entry
    if problem.form is ProblemForm.FUNCTION:
        kept.append(CALLED.format(entry=entry).strip())
        entry = "Reference"
    lines = [line for part in kept for line in ("", *part.split("\n"))] + ["", f"return {entry}"]
    head = ["def reference():", '    """Make the class of the reference, as its file has it."""']
    return "\n".join([*head, *("    " + line if line else "" for line in lines)])


def _is_dropped(node: ast.stmt) -> bool:
    """Whether a statement is there for the file as a whole, or for its inputs."""
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return True
    if isinstance(node, ast.FunctionDef):
        return node.name in DROPPED
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id in DROPPED for target in node.targets)
    return isinstance(node, ast.Expr) or (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
