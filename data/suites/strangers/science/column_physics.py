"""One column of air after another.

Heights by hydrostatic sums from below, saturation, clouds by thresholds, rain that falls and evaporates.
"""

import torch

COLUMNS = 64800
LEVELS = 60
SMALL_SIZES = [{"COLUMNS": 5, "LEVELS": 6}, {"COLUMNS": 32, "LEVELS": 8}]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.g, self.rd, self.lv, self.cp = 9.80665, 287.05, 2.5e6, 1004.6

    def forward(self, t, q, p_half):
        dp = p_half[:, 1:] - p_half[:, :-1]
        p = 0.5 * (p_half[:, 1:] + p_half[:, :-1])
        tv = t * (1 + 0.608 * q)
        thickness = self.rd * tv / self.g * torch.log(p_half[:, 1:] / p_half[:, :-1])
        below = torch.flip(torch.cumsum(torch.flip(thickness, [1]), 1), [1])
        z = below - 0.5 * thickness
        water = 611.2 * torch.exp(17.67 * (t - 273.16) / (t - 29.65))
        ice = 611.2 * torch.exp(22.46 * (t - 273.16) / (t - 0.55))
        mix = ((t - 250.16) / 23.0).clamp(0.0, 1.0)
        es = torch.where(t > 273.16, water, torch.where(t < 250.16, ice, mix * water + (1 - mix) * ice))
        qs = 0.622 * es / (p - 0.378 * es).clamp(min=1.0)
        excess = torch.relu(q - qs)
        condensed = excess / (1 + self.lv**2 * qs / (self.cp * 461.5 * t * t))
        fall = torch.cumsum(condensed * dp / self.g, dim=1)
        dry = torch.relu(0.9 * qs - q)
        evaporated = torch.minimum(0.05 * dry, fall * self.g / dp * 0.5)
        q_new = q - condensed + evaporated
        t_new = t + self.lv / self.cp * (condensed - evaporated)
        rain = fall[:, -1] - (evaporated * dp / self.g).sum(1)
        return t_new, q_new, z, rain.clamp(min=0)


def get_inputs():
    p = torch.linspace(5000.0, 101325.0, LEVELS + 1).expand(COLUMNS, LEVELS + 1) * (1 + 0.01 * torch.rand(COLUMNS, 1))
    t = torch.linspace(215.0, 295.0, LEVELS).expand(COLUMNS, LEVELS) + torch.randn(COLUMNS, LEVELS)
    return [t, torch.rand(COLUMNS, LEVELS) * 0.01, p.contiguous()]


def get_init_inputs():
    return []
