"""Turns the points of each rigid body by the body's quaternion, brought to length one, and moves them.

Occurs in structure modules of protein models, in tracking and in robotics. Memory-bound: three numbers a point, four a body.
"""

import torch

BODIES = 262144
POINTS = 8
SMALL_SIZES = [{"BODIES": 37, "POINTS": 3}, {"BODIES": 64, "POINTS": 8}]


def rotate_by_quaternion(quaternions, points, translation):
    unit = torch.nn.functional.normalize(quaternions, dim=-1)
    real, axis = unit[..., :1], unit[..., 1:]
    axis = axis[:, None, :].expand_as(points)
    across = 2 * torch.cross(axis, points, dim=-1)
    return points + real[:, None] * across + torch.cross(axis, across, dim=-1) + translation[:, None]


def example_inputs():
    return torch.randn(BODIES, 4), torch.randn(BODIES, POINTS, 3), torch.randn(BODIES, 3)
