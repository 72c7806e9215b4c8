"""Colour of each splat in the direction it is seen from: spherical harmonics of the second degree, shifted and clamped.

Occurs in Gaussian splatting. Memory-bound: twenty-seven coefficients a splat, short formulas.
"""

import torch

SPLATS = 524288
SMALL_SIZES = [{"SPLATS": 37}, {"SPLATS": 64}]


def harmonic_colour(coefficients, positions, camera):
    seen = positions - camera
    seen = seen / seen.norm(dim=-1, keepdim=True)
    x, y, z = seen[:, 0:1], seen[:, 1:2], seen[:, 2:3]
    c = coefficients.float()
    colour = 0.28209479 * c[:, 0]
    colour = colour - 0.48860251 * y * c[:, 1] + 0.48860251 * z * c[:, 2] - 0.48860251 * x * c[:, 3]
    colour = colour + 1.09254843 * x * y * c[:, 4] - 1.09254843 * y * z * c[:, 5]
    colour = colour + 0.31539157 * (2 * z * z - x * x - y * y) * c[:, 6]
    colour = colour - 1.09254843 * x * z * c[:, 7] + 0.54627421 * (x * x - y * y) * c[:, 8]
    return torch.clamp(colour + 0.5, min=0)


def example_inputs():
    return torch.randn(SPLATS, 9, 3, dtype=torch.float16), torch.randn(SPLATS, 3), torch.full((3,), 5.0)
