"""What agents use and what knows nothing of agents: records, problems, hardware, actions, codegen, evaluation, profiling, tracing.

Nothing here imports LangGraph, LangChain or Chroma, so an evaluation worker needs torch, triton and pydantic, and
no API key is ever near untrusted code. Imports of our own stay inside `tools`.
"""
