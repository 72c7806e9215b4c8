"""Numbers are told apart from sizes by how they vary between traces."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tools.codegen.ir.atoms import Atoms, ShapeMismatchError
from tools.codegen.ir.builder import Builder
from tools.codegen.ir.sizes import Attribute, Fact, Length, Varying, express, express_by, is_told, with_constants

FACTS = [Fact("x.shape[0]", (4096, 5, 8)), Fact("x.shape[1]", (1024, 257, 64))]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((8, 8, 8), "8"),
        ((1024, 257, 64), "x.shape[1]"),
        ((2048, 514, 128), "x.shape[1] * 2"),
        ((1023, 256, 63), "x.shape[1] - 1"),
        ((4096 * 1024, 5 * 257, 8 * 64), "x.shape[0] * x.shape[1]"),
        ((4096 * 1024 + 1, 5 * 257 + 1, 8 * 64 + 1), "x.shape[0] * x.shape[1] + 1"),
        ((1 / 1024, 1 / 257, 1 / 64), "1.0 / x.shape[1]"),
        ((1024**-0.5, 257**-0.5, 64**-0.5), "x.shape[1] ** -0.5"),
        ((math.log(1024), math.log(257), math.log(64)), "math.log(x.shape[1])"),
        ((math.log(4 * 1024), math.log(4 * 257), math.log(4 * 64)), "math.log((x.shape[1] * 4))"),
        ((4096 + 1024, 5 + 257, 8 + 64), "x.shape[0] + x.shape[1]"),
        ((0.25 * 4096, 0.25 * 5, 0.25 * 8), "0.25 * x.shape[0]"),
        ((2 * 4096 / 3, 2 * 5 / 3, 2 * 8 / 3), "2 * x.shape[0] / 3"),
        ((2 * 4096 / 3 + 0.5, 2 * 5 / 3 + 0.5, 2 * 8 / 3 + 0.5), "2 * x.shape[0] / 3 + 0.5"),
        ((20 / 4095, 20 / 4, 20 / 7), "1.0 / (0.05 * x.shape[0] + -0.05)"),
        ((1 / 4096 - 1, 1 / 5 - 1, 1 / 8 - 1), "1.0 / x.shape[0] + -1.0"),
        ((7, 5, 7), "min(x.shape[0], 7)"),
        ((340, 85, 20), "(x.shape[1] - 2) // 3"),
        ((680, 170, 40), "(x.shape[1] - 2) // 3 * 2"),
        ((17, 19, 23), None),
        ((0.3, 0.7, 0.9), None),
    ],
)
def test_a_number_is_written_as_the_sizes_it_follows(values: tuple[int, ...], text: str | None) -> None:
    """A number that varies is written in terms of sizes that vary alike, or not at all."""
    assert express(values, FACTS) == text


def test_what_the_constructor_kept_comes_before_what_fits_by_chance() -> None:
    """Heads of 7, 2 and 1 are no function of the width, though one fits; a width of each follows from both."""
    width = Fact("w.shape[0]", (700, 120, 20))
    heads = Attribute("self.heads", (7, 2, 1))
    assert express((7, 2, 1), [width]) == "w.shape[0] // 113 + 1"
    assert express_by((7, 2, 1), [width], [heads]) == "self.heads"
    assert express_by((100, 60, 20), [width], [heads]) == "w.shape[0] // self.heads"
    assert express_by((350, 60, 10), [width], [heads]) == "w.shape[0] // 2"


def test_a_number_that_was_kept_comes_before_what_two_sizes_make() -> None:
    """Points of 4, 2 and 4 are a width by a height by chance; the constructor kept them, and a size that is the same tells them."""
    sizes = [Fact("w.shape[0]", (256, 12, 32)), Fact("x.shape[0]", (64, 6, 8))]
    points = Attribute("self.points", (4, 2, 4))
    assert express_by((4, 2, 4), sizes, []) == "w.shape[0] // x.shape[0]"
    assert express_by((4, 2, 4), sizes, [points]) == "self.points"
    assert express_by((4, 2, 4), [*sizes, Fact("y.shape[0]", (4, 2, 4))], [points]) == "y.shape[0]"


@pytest.mark.parametrize("values", [(4, 2, 2), (2, 2, 4), (4, 4, 2)])
def test_two_numbers_show_no_part_of_a_size_with_something_added(values: tuple[int, ...]) -> None:
    """Windows of 4, 2 and 2 are `x.shape[0] // 122 + 2` by chance: such a part and a sum of its own fit any two numbers."""
    assert express(values, [Fact("x.shape[0]", (256, 32, 12))]) is None


def test_a_part_that_hides_what_a_size_depends_on_is_none() -> None:
    """Heads of 16, 3 and 4 are a weight's `// 86 + 3` by chance: three of them are so with 30 rows and with 80."""
    rows = Fact("w.shape[0]", (1152, 30, 96, 80, 96))
    assert express((16, 3, 4, 3, 4), [rows]) is None
    assert express((5, 2, 3, 2, 3), [Fact("w.shape[0]", (64, 16, 32, 16, 32))]) == "w.shape[0] // 16 + 1"


def test_a_size_without_a_name_tells_a_number_too() -> None:
    """Where it is only asked whether a number can be told, its text is empty."""
    assert express_by((1024, 257, 64), [Fact("", (1024, 257, 64))], ()) == ""


SHARED = [Fact("x.shape[0]", (8, 3, 2, 1)), Fact("x.shape[1]", (2000, 257, 64, 11))]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (lambda n: n // 10, "x.shape[1] // 10"),
        (lambda n: n - n // 10, "x.shape[1] - (x.shape[1] // 10)"),
        (lambda n: -(-n // 10), "-(-x.shape[1] // 10)"),
        (lambda n: int(n * 0.85), "int(x.shape[1] * 0.85)"),
        (lambda n: math.ceil(n * 0.85), "x.shape[1] - (int(x.shape[1] * 0.15))"),
        (lambda n: n - int(n * 0.85), "x.shape[1] - (int(x.shape[1] * 0.85))"),
    ],
)
def test_a_share_of_a_size_is_written_as_one(count: Callable[[int], int], text: str) -> None:
    """What a reference counts by a share of a size, rounded either way, or by what that leaves, is worked out at any size."""
    assert express(tuple(map(count, SHARED[1].values)), SHARED) == text
    assert eval(text.replace("x.shape[1]", "1000")) == count(1000)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((255 * 16000, 255 * 771, 255 * 128, 255 * 11), "x.shape[0] * x.shape[1] * 255"),
        ((4000, 192, 32, 2), None),
        ((2007, 259, 65, 11), "x.shape[0] + x.shape[1] - 1"),
        ((8 * 2007, 3 * 259, 2 * 65, 11), "x.shape[0] * (x.shape[0] + x.shape[1] - 1)"),
        (
            (((16000 * 127) ** -0.5), (771 * 127) ** -0.5, (128 * 127) ** -0.5, (11 * 127) ** -0.5),
            "(x.shape[0] * x.shape[1] * 127) ** -0.5",
        ),
    ],
)
def test_a_multiple_of_a_product_of_sizes_is_told(values: tuple[int, ...], text: str | None) -> None:
    """A product of sizes times a number is written as that; one that is off at a single size is not."""
    assert express(values, SHARED) == text


CUBED = [Fact("x.shape[1]", (96, 6, 12)), Fact("w.shape[0]", (256, 9, 16)), Fact("y.shape[1]", (50, 65, 10))]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((96.0**6, 6.0**6, 12.0**6), "(x.shape[1] ** 6)"),
        ((1 / 96**4, 1 / 6**4, 1 / 12**4), "1.0 / (x.shape[1] ** 4)"),
        ((3 * 96**5, 3 * 6**5, 3 * 12**5), "x.shape[1] ** 5 * 3"),
        ((96**2 * 256**2, 6**2 * 9**2, 12**2 * 16**2), "x.shape[1] ** 2 * w.shape[0] ** 2"),
        ((96.0**10, 6.0**10, 12.0**10), "float(x.shape[1] ** 10)"),
        ((96**6, 6**6, 12**5), None),
        ((96**0.25, 6**0.25, 12**0.25), "x.shape[1] ** 0.25"),
        ((96**-1.5, 6**-1.5, 12**-1.5), "x.shape[1] ** -1.5"),
        ((16, 3, 4), "math.isqrt(w.shape[0])"),
        ((7, 8, 3), "math.isqrt(y.shape[1] - 1)"),
    ],
)
def test_a_power_of_a_size_or_its_root_is_told(values: tuple[float, ...], text: str | None) -> None:
    """Elements of a cube squared, the fourth root of a width and the side of a square grid of places follow from sizes."""
    assert express(values, CUBED) == text
    if text is not None:
        for place, value in enumerate(values):
            seen = {letter: type("", (), {"shape": (fact.values[place],) * 2}) for letter, fact in zip("xwy", CUBED, strict=True)}
            assert eval(text, {"math": math, **seen}) == pytest.approx(value, rel=1e-12)


def test_two_numbers_show_no_power_and_no_root() -> None:
    """Sixteen and one are the fourth power of two and one by chance."""
    assert express((16, 1, 1), [Fact("x.shape[0]", (2, 1, 1))]) is None
    assert express((3, 2, 2), [Fact("x.shape[0]", (9, 4, 4))]) is None


def test_a_constant_that_no_size_gives_is_as_written_elsewhere() -> None:
    """A constant of the file is that of a variant at the variant's own sizes alone: not where only the rows are its."""
    assert with_constants(FACTS, [(48, 3, 48)])[2:] == [Fact("{(5, 257): 3}.get((x.shape[0], x.shape[1]), 48)", (48, 3, 48))]
    alike = [Fact("x.shape[0]", (9, 5, 5)), Fact("x.shape[1]", (7, 7, 8))]
    assert with_constants(alike, [(4, 3, 2)])[2].text == "{(5, 7): 3, (5, 8): 2}.get((x.shape[0], x.shape[1]), 4)"
    assert with_constants(alike[:1], [(1, 2, 3)]) == alike[:1]


def test_a_constant_is_told_by_few_of_many_sizes() -> None:
    """Those that tell it are among them, and a length that is traced at other sizes than it has is told by these alone."""
    many = [Fact(f"x.shape[{place}]", (64 + place, 8 + place, 8 + place + place // 6)) for place in range(7)]
    text = with_constants(many, [(48, 3, 4)])[7].text
    assert text.count("x.shape[") == 4
    assert "x.shape[6]" in text
    assert with_constants(FACTS, [Length((2, 1, 2), (48, 3, 48))])[2].text == "{5: 3}.get(x.shape[0], 48)"


def test_what_is_counted_in_pieces_of_a_constant_follows_the_size() -> None:
    """A quotient by a constant is found before a formula that the traces' sizes fit by chance."""
    facts = with_constants([Fact("x.shape[0]", (2048, 8, 16))], [(64, 4, 8)])
    assert express((32, 2, 2), facts) == "x.shape[0] // {8: 4, 16: 8}.get(x.shape[0], 64)"


def test_reshape_splits_a_dimension_shared_by_two_tensors() -> None:
    """Splitting a dimension of one tensor splits it in every tensor that shares it."""
    atoms = Atoms(2)
    left, right = atoms.dims([(12, 20), (8, 4)]), atoms.dims([(12, 20), (8, 4)])
    atoms.broadcast(left, right)
    split = atoms.regroup(left, [(3, 5), (4, 4), (8, 4)])
    assert atoms.resolve(right) == (split[0] + split[1], split[2])


def test_reshape_without_common_split_is_refused() -> None:
    """A reshape that cuts across dimensions cannot be seen through."""
    atoms = Atoms(1)
    with pytest.raises(ShapeMismatchError):
        atoms.regroup(atoms.dims([(6,), (4,)]), [(4,), (6,)])


def test_broadcast_takes_the_other_side_where_one_is_missing() -> None:
    """A dimension of size one takes on the other operand's atom."""
    atoms = Atoms(1)
    left, right = atoms.dims([(5,), (1,)]), atoms.dims([(1,), (7,)])
    assert atoms.broadcast(left, right) == (left[0], right[1])


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((9, 6, 2), "x.shape[1] // 8 + 1"),
        ((130, 82, 18), "x.shape[1] * 2 + 2"),
        ((9, 6, 3), None),
        ((2, 5, 9), None),
    ],
)
def test_a_part_of_a_size_may_have_something_added(values: tuple[int, ...], text: str | None) -> None:
    """A scan over chunks works on one state more than there are chunks."""
    assert express(values, [Fact("x.shape[1]", (64, 40, 8))]) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0, 27), "-x.shape[0] % 32"),
        ((262144, 64), "-(-x.shape[0] // 32) * 32"),
        ((8192, 2), "-(-x.shape[0] // 32)"),
        ((0, 26), None),
    ],
)
def test_what_fills_a_size_up_is_told(values: tuple[int, ...], text: str | None) -> None:
    """A size that is filled up to words or blocks follows it, and so does what is added, and how many blocks there are."""
    assert express(values, [Fact("x.shape[0]", (262144, 37))]) == text


def test_windows_that_are_laid_out_again_have_the_length_of_what_they_came_from() -> None:
    """So many windows, some steps apart, reach one window beyond where the last begins."""
    facts = [Fact("count", (500, 7, 5)), Fact("width", (1024, 16, 12)), Fact("step", (256, 4, 5))]
    assert express((128768, 40, 32), facts) == "(count - 1) * step + width"
    assert express((128768, 40, 33), facts) is None


def test_a_whole_number_is_no_float_of_the_same_size() -> None:
    """A side that positions are scaled by, a float, and that rows are counted by, a whole number, are two arguments of a kernel."""
    builder = Builder(2)
    for number in ((64.0, 8.0), (64, 8), (64.0, 8.0)):
        builder.const(Varying(number))
    assert builder.arguments == [Varying((64.0, 8.0)), Varying((64, 8))]
    assert [type(argument.values[0]) for argument in builder.arguments] == [float, int]


def test_what_two_sizes_leave_of_a_third_is_told_by_many_traces() -> None:
    """Values are as wide as a joined tensor less the keys, the queries less what is turned; three traces do not show that."""
    queries, turned, joined = (192, 24, 48, 24, 40), (64, 8, 16, 8, 8), (256, 48, 64, 32, 96)
    facts = [Fact("q.shape[1]", queries), Fact("k.shape[1]", turned), Fact("kv.shape[1]", joined)]
    values = tuple(whole - (query - part) for whole, query, part in zip(joined, queries, turned, strict=True))
    assert express(values, facts) == "k.shape[1] + kv.shape[1] - q.shape[1]"
    assert express(values[:3], [Fact(fact.text, fact.values[:3]) for fact in facts]) is None


@pytest.mark.parametrize(("sign", "parts"), [(1, 2), (-1, 2), (1, 4)])
def test_a_size_with_a_part_of_a_window_beside_it_is_told(sign: int, parts: int) -> None:
    """Where what is padded by half a window ends is told by many traces alone."""
    wave, window = Fact("x.shape[1]", (65536, 96, 256, 256, 96)), Fact("w.shape[0]", (512, 16, 32, 16, 32))
    values = tuple(size + sign * (width // parts) for size, width in zip(wave.values, window.values, strict=True))
    assert express(values, [wave, window]) == f"x.shape[1] {'+' if sign > 0 else '-'} w.shape[0] // {parts}"
    assert express(values[:3], [Fact(fact.text, fact.values[:3]) for fact in (wave, window)]) is None


def test_the_positions_of_a_window_in_a_size_are_told() -> None:
    """There are as many as the size less the window and one."""
    wave, window = Fact("x.shape[1]", (4096, 48, 128, 128, 32)), Fact("w.shape[0]", (64, 16, 32, 16, 16))
    assert express((4033, 33, 97, 113, 17), [wave, window]) == "x.shape[1] - w.shape[0] + 1"


def test_the_lesser_of_two_sizes_is_told_where_it_is_each_of_them() -> None:
    """As many are kept as the constructor says, or as there are."""
    kept, there = Fact("self.keep", (100, 3, 8, 3, 8)), Fact("x.shape[0]", (512, 6, 16, 6, 6))
    assert is_told((100, 3, 8, 3, 6), [kept, there])
    assert express((100, 3, 8, 3, 6), [kept, there]) == "min(self.keep, x.shape[0])"
    assert not is_told((100, 3, 8, 3, 5), [kept, there])


def test_the_windows_of_a_wave_are_told() -> None:
    """There is one more than whole steps are in it."""
    wave, step = Fact("x.shape[1]", (480000, 96, 256, 256, 96)), Fact("self.hop", (160, 6, 16, 16, 16))
    assert express((3001, 17, 17, 17, 7), [wave, step]) == "x.shape[1] // self.hop + 1"
