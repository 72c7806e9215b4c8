"""The tools of whoever writes a kernel, as a model sees them."""

from __future__ import annotations

from typing import Any, NamedTuple

from agents.models import Message, ToolSpec
from agents.prompting.render import Prompts
from tools.idioms.idiom import all_idioms

PROMPTS = Prompts(__file__)

SUBMIT = "submit"
SOURCE = "source"
NAME = "name"


class Tool(NamedTuple):
    """One tool."""

    name: str
    does: str
    takes: str = SOURCE
    """Its one argument; empty: none."""


TOOLS = (
    Tool(
        "compile",
        "Compile the kernels for the target, run nothing: registers, spills, shared memory, occupancy, counts of the machine's "
        "instructions, or the compiler's error at its line. Quick, and free.",
    ),
    Tool(
        "check",
        "Compile, and judge it at the small sizes: right or wrong, with the first wrong elements beside what is "
        "expected. Nothing is timed. Free.",
    ),
    Tool(
        "time",
        "Judge it in full, as it will be when you hand it in, and time it where there is a GPU (else its time is estimated, and said to "
        "be). It counts as one evaluation of the run's budget; handing in the same source afterwards costs nothing more.",
    ),
    Tool(
        "profile",
        "Hardware counters of a source that was timed, by Nsight Compute: memory and arithmetic units in per cent, and what its warps "
        "wait for. Says so where there are none.",
    ),
    Tool("memory", "What earlier runs taught about operators like this one on this hardware.", takes=""),
    Tool(
        "idioms",
        f"Small judged kernels to take over: {', '.join(one.name for one in all_idioms())}. Name one to read it; an empty name lists what "
        "each is for, those that fit this problem first.",
        takes=NAME,
    ),
    Tool(
        SUBMIT,
        "Hand the kernel in: it is then judged in full. Leave `source` empty to hand in the source of your last call. This ends your turn.",
    ),
)
"""In the order in which they are shown."""
_MEANS = {SOURCE: "The whole file; empty: that of your last call.", NAME: "Of an idiom; empty: list them."}


def with_tools(messages: tuple[Message, ...], calls: int) -> tuple[Message, ...]:
    """Tell of the tools in the first message."""
    names = [f"`{tool.name}`" for tool in TOOLS]
    told = PROMPTS.render("tools", calls=calls, names=names)
    return (messages[0].model_copy(update={"content": f"{messages[0].content}\n{told}"}), *messages[1:])


def specs() -> tuple[ToolSpec, ...]:
    """The tools as a server is told them."""
    return tuple(ToolSpec(name=one.name, description=one.does, parameters=_schema(one.takes)) for one in TOOLS)


def _schema(takes: str) -> dict[str, Any]:
    fields = {takes: {"type": "string", "description": _MEANS[takes]}} if takes else {}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
