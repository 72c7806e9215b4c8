"""What the library's einsum copies, and which kernel stands in its place."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.schedule.einsum_copies import copied
from tools.cost.library_copies import einsum_copies_us
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

SHEET = load_sheet("h100")
INPUTS = "torch.randn(16, 32, 128).half(), torch.randn(16, 2048, 32, 128).half()"
LENGTHS = f"{INPUTS}, torch.randint(1, 2049, (16,))"
DECODE = """torch.einsum('bhl,blhd->bhd', torch.softmax(torch.einsum('bhd,blhd->bhl', x, y).float().masked_fill(
    torch.arange(y.shape[1], device=y.device) >= z[:, None, None], -torch.inf), -1).half(), y)"""


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("bhd,blhd->bhl", "torch.randn(2, 3, 8), torch.randn(2, 5, 3, 8)", ["y"]),
        ("bhd,bhld->bhl", "torch.randn(2, 3, 8), torch.randn(2, 3, 5, 8)", []),
        ("bkgd,bkld->bkgl", "torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8)", []),
        ("lbd,ldh->lbh", "torch.randn(5, 2, 8), torch.randn(5, 8, 7)", []),
        ("ldb,dhb->lhb", "torch.randn(5, 8, 2), torch.randn(8, 7, 2)", ["x", "y"]),
    ],
)
def test_an_operand_is_copied_whose_letters_are_no_neighbours(equation: str, shapes: str, expected: list[str]) -> None:
    """Batch, own and summed letters each have to make one dimension, and one of the last two has to lie side by side."""
    _, graph = traced_text(function(f"torch.einsum('{equation}', x, y)", shapes, "x, y"))
    (node,) = (node for node in graph.nodes if node.op == "einsum")
    assert [ref.name for ref, _ in copied(graph, node)] == expected


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ("'bikc,bjkc->bijc', *x.chunk(2, dim=-1)", 2),
        ("'bik,bjk->bij', *x[0].chunk(2, dim=-1)", 0),
        ("'bki,bkj->bij', *x[0].transpose(1, 2).chunk(2, dim=1)", 0),
        ("'ikc,jkc->ij', *x[0].chunk(2, dim=-1)", 2),
    ],
)
def test_parts_of_a_tensor_are_copied_as_the_whole_would_be(operands: str, expected: int) -> None:
    """What lies side by side there does so in a part; two letters of which the second is a part are no single dimension."""
    _, graph = traced_text(function(f"torch.einsum({operands})", "torch.randn(2, 4, 6, 80)", "x"))
    (node,) = (node for node in graph.nodes if node.op == "einsum")
    assert len(list(copied(graph, node))) == expected


@pytest.mark.parametrize(
    ("equation", "expected"),
    [("zaryw,rybs->zabsw", 1), ("zaryw,ryw->za", 1), ("zaryw,arb->zywb", 0), ("zaryw,zyb->zarwb", 1), ("zaryw,zyb->zwarb", 0)],
)
def test_a_result_of_einsum_is_copied_as_it_lies(equation: str, expected: int) -> None:
    """It is a matrix of the one tensor's own letters by the other's, whatever order its equation names."""
    sizes = {"r": 7, "y": 20, "w": 5, "a": 6, "z": 2, "b": 4, "s": 9}
    shape = ", ".join(str(sizes[letter]) for letter in equation.partition("->")[0].partition(",")[2])
    inputs = f"torch.randn(2, 8, 20, 5), torch.randn(8, 6, 7), torch.randn({shape})"
    _, graph = traced_text(function(f"torch.einsum('{equation}', torch.einsum('zxyw,xar->zaryw', x, y), z)", inputs, "x, y, z"))
    last = [node for node in graph.nodes if node.op == "einsum"][-1]
    assert len([ref for ref, _ in copied(graph, last) if ref.name != "z"]) == expected


def test_operands_are_put_in_order_faster_than_pytorch_copies_them() -> None:
    """Its copy of 268 MB of keys with their heads between positions and elements took 700 µs (an H100)."""
    _, graph = traced_text(function("torch.einsum('bhd,blhd->bhl', x, y)", INPUTS, "x, y"))
    assert 0 < einsum_copies_us(graph, [node.name for node in graph.nodes], SHEET) < 350


def test_one_kernel_decodes_where_sequences_end_at_their_lengths() -> None:
    """Neither keys nor values are copied, and those behind a sequence's end are not looked at."""
    _, graph = traced_text(function(DECODE, LENGTHS, "x, y, z"))
    assert [region.template for region in modelled_choices(graph, SHEET, DEFAULT_POLICY)[0].schedule.regions] == ["attention"]


def test_a_product_whose_batch_lies_side_by_side_is_the_librarys() -> None:
    """A tile of it finds every element in a sector of its own: copying the operands first is faster."""
    operands = "torch.randn(384, 384, 128), torch.randn(384, 384, 128)"
    _, graph = traced_text(function("torch.einsum('ikc,jkc->ijc', x, y).sin()", operands, "x, y"))
    first = modelled_choices(graph, SHEET, DEFAULT_POLICY)[0].schedule
    assert next(region for region in first.regions if "einsum" in region.nodes).template != "matmul"


def test_an_einsum_of_complex_numbers_has_choices() -> None:
    """A layer of a Fourier neural operator: what surrounds the transform and its product is generated, these stay the library's."""
    spectrum = "torch.einsum('bim,iom->bom', torch.fft.rfft(x)[..., :5], torch.view_as_complex(w))"
    _, graph = traced_text(function(f"torch.fft.irfft({spectrum}, n=16) * 2", "torch.randn(3, 4, 16), torch.randn(4, 6, 5, 2)", "x, w"))
    assert modelled_choices(graph, SHEET, DEFAULT_POLICY)
