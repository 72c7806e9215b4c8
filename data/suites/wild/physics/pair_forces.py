"""Energies and forces of particles in a periodic box by a potential of pairs that is cut off.

Occurs in molecular dynamics with all pairs, as small systems are simulated many at once. Compute-bound: no pair is in memory.
"""

import torch

SYSTEMS = 8
PARTICLES = 1024
SMALL_SIZES = [{"SYSTEMS": 2, "PARTICLES": 11}, {"SYSTEMS": 2, "PARTICLES": 16}]


def pair_forces(positions, box):
    between = positions[:, :, None, :] - positions[:, None, :, :]
    between = between - box * torch.round(between / box)
    square = (between * between).sum(-1) + torch.eye(positions.shape[1], device=positions.device) * 1e6
    sixth = (0.25 / square.clamp(min=0.2)) ** 3
    near = square < 6.25
    energy = torch.where(near, 4 * (sixth * sixth - sixth), 0.0)
    force = torch.where(near, 24 * (2 * sixth * sixth - sixth) / square.clamp(min=0.2), 0.0)
    return 0.5 * energy.sum((1, 2)), (force[..., None] * between).sum(2)


def example_inputs():
    return torch.rand(SYSTEMS, PARTICLES, 3) * 10, torch.full((3,), 10.0)
