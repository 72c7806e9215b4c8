"""The reviewer: accepts only what the evaluation proves, and words the lesson.

`protocol.py` is the contract. `gain.py` compares two times and says how sure that is: every variant takes its gain and
its acceptance from there. `lesson.py` words what to remember, `builtin.py` is the variant of rules, `llm.py` the
language model's with `prompts/`.
"""
