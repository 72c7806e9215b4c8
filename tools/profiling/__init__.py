"""Where the time goes: what the compiler gave a kernel, what the hardware allows, what was measured, and the bottleneck they imply.

`resources` reads machine code, `occupancy`, `roofline` and `estimate` compute, `nvml` and `ncu` measure, `profile` puts
the figures together and `bottleneck` names what limits. Nothing here imports torch, agents or knowledge. Every constant
of the models stands in `rates` with its source: change it there, with a new `estimate.MODEL` version. Import from the
modules themselves; this file stays empty so that the evaluator and `profile` can import each other's parts.
"""
