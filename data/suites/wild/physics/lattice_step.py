"""One step of a fluid on a lattice of nine velocities: streams to the neighbours, relaxes towards equilibrium, bounces off what is solid.

Occurs in lattice Boltzmann solvers written with tensors. Memory-bound: nine numbers a cell are read and written once.
"""

import torch

SIZE = 1024
SMALL_SIZES = [{"SIZE": 9}, {"SIZE": 16}]
ACROSS = (0, 1, 0, -1, 0, 1, -1, -1, 1)
ALONG = (0, 0, 1, 0, -1, 1, 1, -1, -1)
WEIGHTS = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)
BACK = (0, 3, 4, 1, 2, 7, 8, 5, 6)


def lattice_step(flow, solid):
    flow = torch.stack([torch.roll(flow[i], (ACROSS[i], ALONG[i]), (0, 1)) for i in range(9)])
    density = flow.sum(0)
    across = sum(ACROSS[i] * flow[i] for i in range(9)) / density
    along = sum(ALONG[i] * flow[i] for i in range(9)) / density
    energy = 1.5 * (across * across + along * along)
    after = []
    for i in range(9):
        speed = 3 * (ACROSS[i] * across + ALONG[i] * along)
        equal = density * WEIGHTS[i] * (1 + speed + 0.5 * speed * speed - energy)
        after.append(torch.where(solid, flow[BACK[i]], flow[i] - 0.6 * (flow[i] - equal)))
    return torch.stack(after)


def example_inputs():
    return torch.rand(9, SIZE, SIZE) + 0.1, torch.rand(SIZE, SIZE) < 0.1
