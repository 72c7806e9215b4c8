"""Show every prompt that language models are given, in each role and form, for a sample case: a softmax on an H200.

Examples:
  kernelwright prompts

  kernelwright prompts coder
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.shared.options import Json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agents.samples.prompts import Sample


def command(
    role: Annotated[str, typer.Argument(metavar="[ROLE]", help="Show one role: planner, coder, repairer, profiler or reviewer.")] = "",
    json: Json = False,
) -> None:
    """Print prompts."""
    from agents.prompting.frame import CONTEXTS
    from agents.samples.prompts import corrections, sample_prompts
    from tools.errors import UserError

    if role and role not in CONTEXTS:
        raise UserError(f"There is no role called {role!r} that has prompts.", f"Choose one of: {', '.join(CONTEXTS)}.")
    shown = [one for one in (*sample_prompts(), *corrections()) if role in ("", one.role)]
    if json:
        from json import dumps

        print(dumps([_facts(one) for one in shown], indent=1))
        return
    print("\n".join(_lines(shown)))


def _facts(sample: Sample) -> dict[str, object]:
    from agents.prompting.frame import CONTEXTS
    from agents.prompting.render import tokens

    messages = [{"role": one.role, "content": one.content, "tokens": tokens(one.content)} for one in sample.messages]
    return {"role": sample.role, "asked": sample.title, "limit": CONTEXTS[sample.role], "messages": messages}


def _lines(shown: Iterable[Sample]) -> Iterator[str]:
    """Write prompts for people; a system prompt that was shown before is not repeated."""
    from agents.prompting.frame import CONTEXTS
    from agents.prompting.render import tokens

    seen: set[str] = set()
    for sample in shown:
        count = sum(tokens(one.content) for one in sample.messages)
        yield f"=== {sample.role}: {sample.title} (about {count:,} of {CONTEXTS[sample.role]:,} tokens)\n"
        for message in sample.messages:
            if message.role == "system" and message.content in seen:
                yield "--- system, as before\n"
                continue
            seen.add(message.content)
            yield f"--- {message.role}\n{message.content}"
