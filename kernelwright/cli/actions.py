"""Show the action vocabulary: what each kind of step means, its parameters and its risk.

Example: kernelwright actions
"""

from __future__ import annotations

from kernelwright.cli.options import Json


def command(json: Json = False) -> None:
    """Print the guide."""
    from tools.actions import GUIDE, render_guide

    if json:
        from json import dumps

        print(dumps({kind: meaning.model_dump(mode="json") for kind, meaning in GUIDE.items()}, indent=1))
    else:
        print(render_guide())
