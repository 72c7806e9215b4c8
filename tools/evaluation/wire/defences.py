"""The evaluator's defences by name, so that a test can switch one off and see which hostile kernel it was that stopped.

Only code in the supervisor's process can do that (`LocalPool.weakened`); no setting, variable or file reaches it, and what was switched off
stands in the evaluation's `weakened`, so that it can never count as evidence.
"""

from __future__ import annotations

from enum import StrEnum


class Defence(StrEnum):
    """What stands between a hostile kernel and a PASS, or the machine."""

    STATIC_RULES = "static rules"
    """Tripwires in the source; off in every test of a hostile kernel."""

    FRESH_INPUTS = "fresh inputs"
    """Each call has contents of its own, at the same addresses."""
    SECRET_SEEDS = "secret seeds"  # noqa: S105 - a name, not a password
    """Seeds come from the system's generator once the source is fixed."""
    SEVERAL_CALLS = "several calls"
    """Every call of a runner is judged, not its first alone."""
    DISTRIBUTIONS = "distributions"
    """The battery of other contents."""
    SMALL_SIZES = "small sizes"
    """Odd and small variants of the problem."""
    SHAKEN_PARAMETERS = "shaken parameters"
    """Parameters with a default value get another."""
    POISON = "poison"
    """Memory that a call will get holds a pattern first, and so do the places where its outputs are collected."""
    SECOND_POISON = "second poison"
    """One call runs twice, with two patterns, and must agree with itself."""
    INPUTS_COMPARED = "inputs compared"
    """Inputs are compared byte for byte after a call."""
    RED_ZONES = "red zones"
    """Memory around the inputs is painted before a call and looked at after it."""
    OUTPUT_ABI = "output ABI"
    """Number, shape, dtype and density of outputs are held against the ABI."""
    COLLECTED_AT_ONCE = "collected at once"
    """Outputs are copied as soon as a call says it has ended: what is written later comes too late."""
    SEPARATE_REFERENCE = "separate reference"
    """Neither the reference nor its answers are in a process that runs candidate code."""
    TIGHT_LIMITS = "tight limits"
    """Errors are relative to float64 and to the reference's own, not a hundredth."""
    WORST_ROW = "worst row"
    """The worst row is judged, not the whole tensor alone."""
    NON_FINITE = "non-finite values"
    """NaN and infinities must stand exactly where the reference has them."""
    PROVENANCE = "provenance"
    """A library's operators are told from the candidate's own kernels."""

    DEADLINE = "deadline"
    """A phase that does not end in time is killed."""
    MEMORY_LIMIT = "memory limit"
    PROCESS_LIMIT = "process limit"
    SCRATCH_LIMIT = "scratch limit"
    """All files together."""
    FILE_LIMIT = "file limit"
    """One file."""
    OPEN_FILES_LIMIT = "open files limit"
    LOG_LIMIT = "log limit"
    """Only a tail of what is printed is kept."""

    OWN_PROCESSES = "own processes"
    """A process namespace: other processes cannot be seen."""
    END_OF_TREE = "end of the tree"
    """All that a phase started ends with it."""
    OWN_NETWORK = "own network"
    """A network namespace without interfaces."""
    OWN_IPC = "own IPC"
    """System V shared memory and message queues of its own."""
    PRIVATE_ROOT = "private root"
    """A root that holds system folders alone."""
    PRIVATE_MEMORY_FILES = "private /dev/shm"
    """A file system in memory that dies with the phase."""
    OTHER_USER = "other user"
    SECCOMP = "seccomp"
    LANDLOCK = "Landlock"
    CLEAN_ENVIRONMENT = "clean environment"
    """Variables come from an allow list."""
    CLOSED_DESCRIPTORS = "closed descriptors"
    """No descriptor is inherited but the phase's own."""

    TIMED_CALLS_JUDGED = "timed calls judged"
    """Some timed calls, unannounced, are judged like any other."""
    CHANGED_ELEMENTS = "changed elements"
    """Between some calls of a check, and before each timed call after the lead-in, a few elements of the inputs change."""
    ROOFLINE = "roofline floor"
    """A time that the device's memory does not allow is refused."""
    CALLER_STREAM = "caller's stream"
    """Outputs must be there on the stream that was current before a call, and that stream must be current again."""
    CLOCKS_AGREE = "clocks agree"
    """The clock outside of the candidate's process, around chained calls, must confirm the events."""
    BASELINES_ALONE = "baselines alone"
    """The baselines are timed before and after the candidate's process too."""


GPU_ONLY = frozenset([Defence.TIMED_CALLS_JUDGED, Defence.ROOFLINE, Defence.CALLER_STREAM, Defence.CLOCKS_AGREE, Defence.BASELINES_ALONE])
"""These act only where something is timed."""

Defences = frozenset[Defence]
NONE: Defences = frozenset()
