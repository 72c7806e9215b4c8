"""Equations of einsum are spelled out as `torch.einsum` reads them."""

from __future__ import annotations

import pytest
import torch

from tools.codegen.ir.equation import spelled_out

READ: dict[str, tuple[tuple[int, ...], ...]] = {
    "...ij,...jk->...ik": ((2, 3, 4, 5), (3, 5, 6)),
    "i...,...j->...ij": ((2, 3, 4), (4, 5)),
    "...ij,...jk->ik": ((3, 2, 4), (3, 4, 5)),
    "...ba,...cb": ((3, 2, 4), (3, 5, 2)),
    "ba,cb": ((2, 4), (5, 2)),
    "bij,bjA": ((3, 2, 4), (3, 4, 5)),
    " B i j , B j K -> B i K ": ((3, 2, 4), (3, 4, 5)),
    "ij,ij": ((2, 3), (2, 3)),
    "...ii->...i": ((2, 3, 3),),
    "ij->...ji": ((2, 3),),
    "b...c,cd->b...d": ((2, 3, 4, 5), (5, 6)),
}


@pytest.mark.parametrize("equation", READ)
def test_an_equation_spelled_out_says_the_same(equation: str) -> None:
    """Letters for `...`, an arrow where there was none: the library computes the same from either, and the words fit the ranks."""
    tensors = [torch.randn(shape) for shape in READ[equation]]
    found = spelled_out(equation, [x.dim() for x in tensors])
    assert found is not None
    words, out = found
    assert [len(word) for word in words] == [x.dim() for x in tensors]
    assert torch.allclose(torch.einsum(f"{','.join(words)}->{out}", *tensors), torch.einsum(equation, *tensors))


@pytest.mark.parametrize(("equation", "ranks"), [("ij,jk->ik", (2, 3)), ("ij,jk->ik", (2,)), ("ij->il", (2,)), ("ij->ii", (2,))])
def test_what_the_library_refuses_is_not_spelled_out(equation: str, ranks: tuple[int, ...]) -> None:
    """Other ranks than letters, letters of the result that no tensor has, and one that it has twice."""
    assert spelled_out(equation, ranks) is None
