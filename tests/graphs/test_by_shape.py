"""What a delivery says of a kernel that serves several shapes."""

from graphs.optimize.confirm import praise
from tests.support.makers import passed, timing
from tools.records import ShapeResult


def test_a_delivery_says_how_fast_each_shape_is_the_worst_first() -> None:
    """Its own figure is that of all shapes together, by their weights."""
    shapes = [
        ShapeResult(name=name, weight=1.0, evaluation=passed(timing=timing(us))) for name, us in (("prefill", 100.0), ("decode", 300.0))
    ]
    said = praise(passed(timing=timing(125.0), shapes=tuple(shapes)), "better")
    assert "2.00x" in said
    assert "By shape: decode 0.83x, prefill 2.50x." in said
