"""The knowledge base as a whole."""

from knowledge.protocol import Memory, NoMemory
from knowledge.store import KnowledgeBase


def test_it_is_a_memory(base: KnowledgeBase) -> None:
    """The store and the null memory fit the graph's protocol."""
    memories: list[Memory] = [base, NoMemory()]
    assert [bool(memory.name) for memory in memories] == [True, True]
