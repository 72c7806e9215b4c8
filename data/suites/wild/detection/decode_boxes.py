"""Boxes from distributions of the distances to their sides, as centre and size in pixels, before the scores of all classes.

Occurs at the end of one-stage detectors (YOLO since version 8). Memory-bound: softmaxes of sixteen elements that do not lie side by side.
"""

import torch

BATCH = 16
PLACES = 8400
CLASSES = 80
SMALL_SIZES = [{"BATCH": 2, "PLACES": 37, "CLASSES": 5}, {"BATCH": 2, "PLACES": 64, "CLASSES": 8}]


def decode_boxes(sides, classes, centres, strides):
    share = torch.softmax(sides.view(sides.shape[0], 4, 16, -1).float(), dim=2)
    distance = (share * torch.arange(16, device=share.device)[None, None, :, None]).sum(2)
    before, behind = distance.chunk(2, dim=1)
    low, high = centres - before, centres + behind
    box = torch.cat(((low + high) / 2, high - low), dim=1) * strides
    return torch.cat((box, classes.float().sigmoid()), dim=1)


def example_inputs():
    sides, classes = torch.randn(BATCH, 64, PLACES).half(), torch.randn(BATCH, CLASSES, PLACES).half()
    return sides, classes, torch.rand(2, PLACES) * 80, torch.full((1, PLACES), 8.0)
