"""The LangGraph graphs: optimize (the loop), refine (one plan: write, evaluate, repair or roll back) and the search methods.

Nodes are thin: the work is in agents, knowledge and tools. Only this folder knows LangGraph's graph API.
"""
