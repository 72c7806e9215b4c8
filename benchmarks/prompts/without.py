"""Writes questions of a desk's folder again, without some of their parts, to be answered beside the whole ones.

Usage: python -m benchmarks.prompts.without DESK OUT --part "Idioms that may fit" [--part …] [--questions 0019,0020]

A part is what stands below a line `# HEADING` of a question; `--part` is how its heading begins. A question that has none of them is left
out. Answers go to OUT/NNNN.answer.md, and `python -m benchmarks.prompts.judged` says what they came to.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

SUFFIX = ".prompt.md"


def main() -> None:
    """Write them and say how much shorter they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("desk", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--part", action="append", required=True)
    parser.add_argument("--questions", default="", help="Numbers, e.g. 0019,0020; all where none are given.")
    given = parser.parse_args()
    wanted = {number for number in given.questions.split(",") if number}
    given.out.mkdir(parents=True, exist_ok=True)
    for file in sorted(given.desk.glob(f"*{SUFFIX}")):
        number, whole = file.name.removesuffix(SUFFIX), file.read_text(encoding="utf-8")
        less = without(whole, given.part)
        if less != whole and (not wanted or number in wanted):
            (given.out / file.name).write_text(less, encoding="utf-8")
            print(f"{number}: {len(whole):,} characters, {len(less):,} without")


def without(question: str, parts: Sequence[str]) -> str:
    """Leave the parts of a question out whose headings begin so; what is shown as data, comments of a source above all, has none."""
    kept, is_data, is_left_out = [], False, False
    for line in question.splitlines(keepends=True):
        if not is_data and line.startswith("# "):
            is_left_out = line.removeprefix("# ").startswith(tuple(parts))
        is_data = (is_data or line.startswith("<<<DATA ")) and not line.rstrip().endswith(">>>")
        if not is_left_out:
            kept.append(line)
    return "".join(kept)


if __name__ == "__main__":
    main()
