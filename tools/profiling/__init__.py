"""Where the time goes: what was measured of a kernel, and the bottleneck that all figures together imply.

`nvml` and `ncu` measure, `profile` puts their figures beside those of `tools.machine_code` and `tools.cost`, and `bottleneck` names
what limits. Nothing here imports torch, the evaluator, agents or knowledge. Import from the modules themselves.
"""
