"""Whether a problem can tell right from wrong: what trivial kernels pass on it, and which inputs do not matter."""

from __future__ import annotations

from tools.records.base import Record


class NullPass(Record):
    """A kernel that does not do the work, and yet would pass."""

    null: str
    """Which one, e.g. `zeros`, `input x`, `without aten.relu.default (operator 2)`."""
    output: str
    """The output it was put in the place of, the others being right."""
    where: str
    """`everywhere`: on every call that was tried; `own inputs`: only on the problem's own inputs, the battery tells."""


class Admission(Record):
    """What the examination of a problem found; nothing where it was not examined."""

    examined: tuple[str, ...] = ()
    """Sizes, as in `Correctness.sizes`; empty where the problem was not examined."""
    calls: int = 0
    """Calls on which the null kernels were judged."""
    nulls: tuple[str, ...] = ()
    """The null kernels that applied and were tried."""
    passed: tuple[NullPass, ...] = ()
    ignored: tuple[str, ...] = ()
    """Inputs and parameters that change no output beyond its limits."""
    notes: tuple[str, ...] = ()
    """What was left out, and why."""

    @property
    def admitted(self) -> bool:
        """Whether it was examined, no null kernel passed everywhere, and every input and parameter matters."""
        return bool(self.examined) and not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why results on this problem prove less than they seem to, a sentence each; empty where nothing was found."""
        found = []
        passed = [one for one in self.passed if one.where == "everywhere"]
        for output in dict.fromkeys(one.output for one in passed):
            names = _listed([one.null for one in passed if one.output == output], 3)
            found.append(f"A kernel that gives {names} as {output} passes.")
        if self.ignored:
            found.append(f"No output depends on {_listed(list(self.ignored), 6)}.")
        return tuple(found)

    @property
    def marks(self) -> tuple[str, ...]:
        """What is shown beside every figure on this problem; empty where it is admitted."""
        return self.reasons if self.examined else self.notes[:1] or ("The problem was not examined with null kernels.",)


def _listed(names: list[str], most: int) -> str:
    return ", ".join(names[:most]) + (f" (and {len(names) - most} more)" if len(names) > most else "")
