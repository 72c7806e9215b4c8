"""Lennard-Jones energy and forces from padded neighbour lists in a periodic box, with a smooth switch at the cutoff."""

import torch

ATOMS = 65536
NEIGHBOURS = 64
SMALL_SIZES = [{"ATOMS": 19, "NEIGHBOURS": 6}, {"ATOMS": 64, "NEIGHBOURS": 16}]


class Model(torch.nn.Module):
    def __init__(self, box, cutoff, on):
        super().__init__()
        self.box, self.cutoff, self.on = box, cutoff, on

    def forward(self, position, neighbour, epsilon, sigma):
        valid = neighbour >= 0
        j = neighbour.clamp(min=0)
        delta = position[:, None, :] - position[j]
        delta = delta - self.box * torch.round(delta / self.box)
        r2 = (delta * delta).sum(-1).clamp(min=0.64)
        r = r2.sqrt()
        eps = torch.sqrt(epsilon[:, None] * epsilon[j])
        sig = 0.5 * (sigma[:, None] + sigma[j])
        s6 = (sig * sig / r2) ** 3
        energy = 4 * eps * (s6 * s6 - s6)
        dedr = -24 * eps * (2 * s6 * s6 - s6) / r
        x = ((r - self.on) / (self.cutoff - self.on)).clamp(0, 1)
        switch = 1 - 6 * x**5 + 15 * x**4 - 10 * x**3
        dswitch = (-30 * x**4 + 60 * x**3 - 30 * x**2) / (self.cutoff - self.on)
        inside = valid & (r < self.cutoff)
        force = -(dedr * switch + energy * dswitch) / r
        force = torch.where(inside, force, 0.0)
        pair = torch.where(inside, energy * switch, torch.zeros_like(energy))
        return 0.5 * pair.sum(), (force.unsqueeze(-1) * delta).sum(1)


def get_inputs():
    neighbour = torch.randint(-1, ATOMS, (ATOMS, NEIGHBOURS))
    return [torch.rand(ATOMS, 3) * 4.0, neighbour, torch.rand(ATOMS) + 0.5, torch.rand(ATOMS) * 0.2 + 0.8]


def get_init_inputs():
    return [4.0, 1.8, 1.4]
