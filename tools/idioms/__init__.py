"""Idioms: small kernels that were judged, each for a situation, shown to whoever writes another; they lie in `data/idioms/`.

`idiom.py` reads one, `choice.py` says which fit a problem. Each folder there has a reference and its kernel: tests have both judged.
"""
