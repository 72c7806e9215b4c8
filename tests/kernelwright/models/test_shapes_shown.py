"""What a person sees of a kernel at several shapes."""

from kernelwright.screen.trace_views import evaluation_rows
from tests.support.makers import passed, timing
from tools.records import ShapeResult


def test_each_shape_has_a_line_with_its_gain() -> None:
    """Beside the figure of all of them."""
    shapes = [
        ShapeResult(name=name, weight=1.0, evaluation=passed(timing=timing(us))) for name, us in (("prefill", 100.0), ("decode", 500.0))
    ]
    rows = dict(evaluation_rows(passed(timing=timing(300.0), shapes=tuple(shapes)).model_dump(mode="json")))
    assert rows["at prefill"].startswith("2.50x")
    assert rows["at decode"].startswith("0.50x")
    assert rows["against eager"].startswith("0.83x")
