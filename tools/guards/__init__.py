"""What a delivered file does about calls that it was not made for: each gets an error that says so, or the reference.

A guard is written from a problem and its small variants alone, and stands behind whatever source claims to solve it: a generated one, a
model's, or a user's. It is text in the file that is delivered; a search judges sources without it.
"""

from tools.guards.contract import Contract, contract_of
from tools.guards.reference import embeddable, reference_text
from tools.guards.text import guarded, unguarded

__all__ = ["Contract", "contract_of", "embeddable", "guarded", "reference_text", "unguarded"]
