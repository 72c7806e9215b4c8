"""Weights laid out once: the same answers, for the layers that can take it."""

import copy

import torch

from knowledge.vectors.packing import AGREES, pack


def layers() -> torch.nn.Sequential:
    """Two layers, one without a bias."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(24, 48), torch.nn.GELU(), torch.nn.Linear(48, 8, bias=False)).eval()


def test_packed_layers_answer_alike() -> None:
    """Whatever the number of texts and words, what comes out differs by rounding only."""
    plain = layers()
    packed = copy.deepcopy(plain)
    assert pack(packed) in (0, 2)
    for shape in ((1, 1, 24), (1, 27, 24), (64, 5, 24), (3, 24)):
        given = torch.randn(shape)
        with torch.inference_mode():
            torch.testing.assert_close(packed(given), plain(given), rtol=AGREES, atol=1e-6)


def test_layers_of_other_precision_stay_as_they_are() -> None:
    """A layer in double precision is not packed, and answers exactly as before."""
    plain = layers().double()
    packed = copy.deepcopy(plain)
    given = torch.randn(2, 24, dtype=torch.float64)
    assert pack(packed) == 0
    assert torch.equal(packed(given), plain(given))
