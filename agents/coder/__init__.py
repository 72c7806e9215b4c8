"""The coder: applies one action to one parent and gives back a source, or says why it cannot.

`builtin.py` drives the code generator in tools, `llm.py` asks a language model, `mixed.py` takes the first where it can and the
second where it cannot. What a candidate must look like for the evaluator is said to models in `prompts/contract.j2`.
"""
