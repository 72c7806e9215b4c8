"""The inside of what was padded is what was padded: it is read as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import assert_right_at_unseen_sizes, generated, traced_text
from tests.tools.codegen.samples import function
from tools.codegen import emit

PADDED = "torch.nn.functional.pad(x.unsqueeze(1), (1, 1, 0, 0), mode='{}').squeeze(1)"
ROWS = "torch.randn(3, ROWS, COLS), torch.randn(COLS)"
WAYS = {
    **{
        mode: function(f"x * {PADDED.format(mode)}[..., 1:-1] + y", ROWS, "x, y")
        for mode in ("replicate", "reflect", "circular", "constant")
    },
    "outer": function(f"x.unsqueeze(3) * {PADDED.format('replicate')}[..., 1:-1].unsqueeze(2)", "torch.randn(3, ROWS, 20)", "x"),
    "neighbour": function(f"x * {PADDED.format('replicate')}[..., :-2]", "torch.randn(3, ROWS, COLS)", "x"),
    "other_way": function(f"x.mT + {PADDED.format('replicate')}[..., 1:-1]", "torch.randn(3, ROWS, ROWS)", "x"),
}


@pytest.mark.parametrize("mode", ["replicate", "constant"])
def test_the_inside_of_what_was_padded_is_read_with_what_was_padded(mode: str) -> None:
    """A step over a grid pads it for its neighbours and takes the middle again: that is no third tensor to read."""
    problem, graph = traced_text(WAYS[mode])
    source = emit(problem, graph, generated(graph, {})).source
    assert source.count("tl.load(x_ptr") == 1


def test_insides_give_the_references_results(tmp_path: Path) -> None:
    """At sizes that no trace saw, also where the inside meets what was padded along another dimension."""
    assert_right_at_unseen_sizes(tmp_path, WAYS)
