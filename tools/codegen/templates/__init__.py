"""Templates: each lays out one kind of kernel and writes its Triton text.

A folder is a template, but for `shared` (what all are written with; `template.py` says what a template is) and `device` (Triton functions
that emitted files carry). `registry` lists one object of each: whoever asks a template anything asks that object.
"""
