"""What an answer of the coder amounts to."""

from __future__ import annotations

import pytest

from agents.coder.answers import Ground, idea_of, source_of
from agents.coder.edits import edited, read_edits
from agents.coder.llm import PROMPTS, view
from agents.models import Answer
from agents.prompting.frame import Frame
from agents.samples import case as samples
from agents.samples.sources import KERNEL

EDIT = "<<<<<<< SEARCH\n        y = torch.empty_like(x)\n=======\n        y = torch.zeros_like(x)\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize("text", [EDIT, f"```\n{EDIT}```", f"Idea: zeros.\n```diff\n{EDIT}```\n"])
def test_edits_make_a_whole_source(text: str) -> None:
    """Edits are made in the source that was shown, fenced or not."""
    source, complaint = source_of(Answer(text=text), Ground(edited=KERNEL))
    assert (source, complaint) == (KERNEL.replace("empty_like", "zeros_like"), "")


def test_edits_need_a_source() -> None:
    """Where nothing was shown whole, edits are no answer."""
    assert source_of(Answer(text=EDIT), Ground())[1]


def test_an_edit_that_cannot_be_made_is_the_complaint() -> None:
    """What is wrong with an edit is what the model is told."""
    assert "What edit 1 searches is not in the source" in source_of(Answer(text=EDIT), Ground(edited="x = 1\n"))[1]


@pytest.mark.parametrize(
    ("reply", "idea"),
    [
        ("Idea: one pass.\n```python\nx = 1\n```", "one pass."),
        ("**Idea:** one pass.\nMore.\n```python\nx = 1\n```", "one pass."),
        ("One pass\nis enough.\n```python\n# Idea: not this\n```", "One pass is enough."),
        ("<think>Idea: no</think>Idea: yes\n", "yes"),
        ("```python\nx = 1\n```", ""),
    ],
)
def test_the_idea_is_what_is_said_before_the_code(reply: str, idea: str) -> None:
    """The line that states the idea is taken, else the words before the code; code and thoughts are none."""
    assert idea_of(reply) == idea


def test_the_form_of_edits_that_prompts_show_is_read() -> None:
    """The example in the coder's system prompt is one that can be read and made."""
    system = PROMPTS.opening("design", "coder", Frame(), **view(samples.task()), start="")[0].content
    assert edited("x = 1\n    lines of the source\n", read_edits(system)) == ("x = 1\n    lines in their place\n", "")
    assert "`pack_weights` may be added right beside `forward`" in system
