"""What was exported once is read as often as one likes."""

from __future__ import annotations

from tests.tools.codegen.harness import problem_of
from tests.tools.codegen.samples import function
from tools.codegen.trace.exports import Exports
from tools.codegen.trace.written_out import WrittenOut
from tools.codegen.without_rules import KNOWN


def test_an_export_is_read_again_as_a_fresh_one_would_be() -> None:
    """Other operators can be written out of an export that was read before."""
    problem = problem_of(function("torch.linalg.cross(x[:, :3], x[:, 3:6]) * x[:, :1].sinc()"))
    written_out = WrittenOut(frozenset({"aten.linalg_cross.default"}), KNOWN)
    exports = Exports(problem)
    whole, pieces, again = exports.read(problem), exports.read(problem, written_out), exports.read(problem)
    assert whole == again != pieces
    assert pieces == Exports(problem).read(problem, written_out)
