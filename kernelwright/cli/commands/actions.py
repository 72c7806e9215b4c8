"""Show the action vocabulary: what each kind of step means, its parameters and its risk.

Example: kernelwright actions
"""

from __future__ import annotations

from kernelwright.cli.shared.options import Json


def command(json: Json = False) -> None:
    """Print the guide."""
    from tools.actions import GUIDE, render_guide

    if json:
        from dataclasses import asdict
        from json import dumps

        print(dumps({kind: asdict(meaning) for kind, meaning in GUIDE.items()}, indent=1))
    else:
        print(render_guide())
