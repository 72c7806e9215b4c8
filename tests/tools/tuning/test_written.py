"""Numbers that stand in a written source."""

from __future__ import annotations

import pytest

from tools.tuning.neighbours import MOST, neighbours, point_name, values_of
from tools.tuning.written import text_around, with_numbers, written_numbers

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"
KERNEL = """
@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr{default}):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n){body}, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
{launch}
        return y
"""


def source(launch: str, default: str = "", body: str = "", head: str = "") -> str:
    """A candidate with this launch."""
    return HEAD + head + KERNEL.format(default=default, body=body, launch="\n".join(f"        {line}" for line in launch.splitlines()))


LITERAL = source("scale[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)")
PLACES = {
    "a literal, with the grid that divides by it": (LITERAL, 256, 2),
    "a positional literal": (source("scale[(8,)](x, y, n, 256)"), 256, 1),
    "a name of the host function": (source("BLOCK = 256\nscale[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK=BLOCK)"), 256, 1),
    "one of several names": (source("BLOCK, other = 256, 3\nscale[(8,)](x, y, n, BLOCK=BLOCK)"), 256, 1),
    "a constant of the module": (source("scale[(8,)](x, y, n, BLOCK)", head="BLOCK = 256\n"), 256, 1),
    "a constexpr that a kernel reads": (source("scale[(8,)](x, y, n, 8)", body=" * BLOCK", head="BLOCK = tl.constexpr(256)\n"), 256, 1),
    "a default": (source("scale[(8,)](x, y, n)", default=" = 256"), 256, 1),
}


@pytest.mark.parametrize("case", PLACES, ids=str)
def test_a_number_is_found_and_changed_wherever_it_stands(case: str) -> None:
    """Each way to give a kernel its block is found, and written anew everywhere that it stands, and nowhere else."""
    text, value, places = PLACES[case]
    found = next(one for one in written_numbers(text) if one.name.rpartition(".")[2] == "BLOCK" and one.value == value)
    changed = with_numbers(text, [found], {found.name: 64})
    assert (len(found.places), changed.count("256"), changed.count("64")) == (places, 0, places)


def test_warps_and_stages_that_a_launch_leaves_out_are_added() -> None:
    """Triton's own warps count as a launch's number, stages only where the kernel has a loop; the own values leave the text as it is."""
    found = {one.name: one for one in written_numbers(LITERAL)}
    assert set(found) == {"scale.BLOCK", "scale.num_warps"}
    assert with_numbers(LITERAL, found.values(), {"scale.num_warps": 4}) == LITERAL
    assert "n, BLOCK=256, num_warps=8)" in with_numbers(LITERAL, found.values(), {"scale.num_warps": 8})
    looped = LITERAL.replace("    at = tl.program_id", "    for i in range(2):\n        pass\n    at = tl.program_id")
    text = with_numbers(looped, written_numbers(looped), {"scale.num_warps": 8, "scale.num_stages": 5})
    assert "num_warps=8" in text
    assert "num_stages=5" in text


LEFT = {
    "assigned twice": source("BLOCK = 256\nif n > 9:\n    BLOCK = 512\nscale[(8,)](x, y, n, BLOCK=BLOCK)"),
    "computed": source("scale[(8,)](x, y, n, BLOCK=triton.next_power_of_2(n))"),
    "no power of two": source("scale[(8,)](x, y, n, BLOCK=192)"),
    "autotuned": LITERAL.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit"),
    "packing": LITERAL.replace("def forward(self, x)", "def pack_weights(self, x)"),
    "no Python": "def (",
}


@pytest.mark.parametrize("case", LEFT, ids=str)
def test_what_is_no_free_number_is_left_alone(case: str) -> None:
    """Values that are computed, chosen by the host code, of another form, or of the packing step are nobody's to change."""
    assert [one for one in written_numbers(LEFT[case]) if one.name.endswith("BLOCK")] == []


def test_a_size_of_the_problem_is_a_number_only_by_a_tiles_name() -> None:
    """A literal that equals a dimension is left alone, unless its name says that it is a tile's."""
    text = source("scale[(8,)](x, y, n, 64)").replace("BLOCK", "DIMENSION")
    assert "scale.DIMENSION" in {one.name for one in written_numbers(text)}
    assert "scale.DIMENSION" not in {one.name for one in written_numbers(text, sizes={64})}
    assert "scale.BLOCK" in {one.name for one in written_numbers(LITERAL, sizes={256})}


def test_two_tiles_of_one_size_do_not_share_the_grids_number() -> None:
    """Where the grid divides by a literal that two parameters have, neither is changed: it cannot be told which is meant."""
    two = LITERAL.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, TILE: tl.constexpr").replace("BLOCK=256)", "BLOCK=256, TILE=256)")
    assert {one.name for one in written_numbers(two)} == {"scale.num_warps"}


def test_two_launches_of_one_size_keep_their_own_grids() -> None:
    """Where two kernels have blocks of one size, a change of the first one's leaves the second's grid as it is."""
    launches = "scale[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)\nshift[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)"
    text = source(launches).replace(
        "class ModelNew", KERNEL.partition("class")[0].format(default="", body="").replace("scale", "shift") + "class ModelNew"
    )
    [first] = [one for one in written_numbers(text) if one.name == "scale.BLOCK"]
    changed = with_numbers(text, [first], {first.name: 64})
    assert "scale[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64)" in changed
    assert "shift[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)" in changed


def test_named_integers_of_cuda_are_numbers() -> None:
    """Constants of CUDA C++ are found in the strings that hold it."""
    text = 'CUDA = r"""\n#define TILE 32\nconstexpr int THREADS = 256;\nconst float eps = 1;\n__global__ void k() {}\n"""\n'
    found = written_numbers(text)
    assert {one.name: one.value for one in found} == {"TILE": 32, "THREADS": 256}
    assert "THREADS = 512;" in with_numbers(text, found, {"THREADS": 512})


def test_a_change_of_numbers_leaves_the_structure() -> None:
    """Sources that differ in their numbers alone are signed alike, others are not."""
    other = LITERAL.replace("256", "512")
    assert text_around(LITERAL, written_numbers(LITERAL)) == text_around(other, written_numbers(other))
    other = LITERAL.replace("tl.load", "2 * tl.load")
    assert text_around(LITERAL, written_numbers(LITERAL)) != text_around(other, written_numbers(other))


def test_nearest_points_come_first() -> None:
    """The source as it is comes first, then one step of each number, no point twice, and no more than are looked at."""
    numbers = written_numbers(LITERAL)
    points = neighbours(numbers, 10.0)
    own = {one.name: one.value for one in numbers}
    assert points[0].name == point_name(own)
    changed = [sum(values_of(one.name)[name] != own[name] for name in own) for one in points[1:5]]
    assert changed == [1, 1, 1, 1]
    assert len({one.name for one in points}) == len(points) <= MOST
    assert points[1].predicted_us > points[0].predicted_us
