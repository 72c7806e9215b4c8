"""How prompts are made: templates filled in and cut to a length (`render.py`), for a language and a kind of run (`frame.py`).

`prompts/` has the parts that several roles use; each role has its own beside it.
"""
