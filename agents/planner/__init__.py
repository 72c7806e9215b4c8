"""The planner: turns what is known of one parent into plans of one action each.

`builtin.py` scores the coder's options (`scoring.py`) from the table in `scores.py`, recalled strategies and what was tried;
`rating.py` rates every possible step for search methods that choose among them;
`world.py` and `edits.py` are for edits of a tree of decisions, `weigh.py` for weighing choices; `choices.py` reads a model's words;
`llm.py` asks a language model and checks its answer against the same options. Change `scores.py` to change the prior.
"""
