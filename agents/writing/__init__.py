"""What a model may do before it hands a kernel in: compile it, check it, time it, profile it, and look things up.

`tools.py` says what there is, `bench.py` who carries it out, `session.py` counts one kernel's calls, and `conversation.py` is the graph
in which LangGraph's tool node answers them.
"""
