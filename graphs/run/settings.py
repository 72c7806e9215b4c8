"""The settings of a run: everything that a resume must find again. No key is ever in them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, model_validator

from agents import TeamSettings
from graphs.search.protocol import SearchSettings
from tools.records import DEFAULT_POLICY, Against, Budget, PolicyName, PrecisionPolicy, Record
from tools.tracing import RunStore
from tools.tracing.store import unreadable


class RunSettings(Record):
    """What the user asked for, with every default filled in."""

    problem_file: str = ""
    """Where the reference came from, for people; the run keeps its own copy."""
    target: str = ""
    """Hardware sheet name; empty means this machine's GPU, or `h200` estimated where there is none."""
    policy: PrecisionPolicy = DEFAULT_POLICY
    baselines: tuple[PolicyName, ...] = ()
    """Policies under whose flags the reference is timed as well, when the search has ended; that of `policy` always counts."""
    budget: Budget = Budget()
    search: str = "greedy"
    search_settings: SearchSettings = SearchSettings()
    floor: float = Field(default=1.01, ge=1.0)
    """Trivial-gain floor: a candidate is delivered only where the lower end of its confirmed speed-up lies above this.

    A percent is within what medians differ by from run to run, and not worth a kernel to maintain; 1 delivers whatever is beyond the
    noise. The steps of a search are accepted by their interval alone: several small ones may add up.
    """
    against: Against = "better"
    """What a delivered kernel must be faster than: the better of eager and torch.compile, or eager alone."""
    fallback: Literal["error", "reference"] = "error"
    """What a delivered file answers calls with that it was not made for: an error, or the reference, whose text it then carries."""
    weights: Literal["fixed", "changing"] = "fixed"
    """`fixed`: a kernel may pack weights once for all calls, in a step that is timed by itself. `changing`: every call pays for it."""
    start: str = ""
    """Text of the kernel that the user brings: the first candidate, and a parent where it passes; empty: none."""
    start_file: str = ""
    """Where it came from, for people."""
    parents: Literal["auto", "torch.compile", "none"] = "auto"
    """Whether torch.compile's own kernels are a parent beside the coder's: `auto` where times are measured, `torch.compile` everywhere."""
    tune: int = Field(default=0, ge=0)
    """Trials of the tuner on one schedule's numbers, at most; 0 never offers the action."""
    tuned: str = ""
    """Folder of what earlier tuning found; empty keeps and recalls nothing."""
    repairs: int = Field(default=3, ge=0)
    """Repairs of one failing draft before it is rolled back."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Limit of each phase of an evaluation: by the clock on a GPU, without one of the candidate's own time at each size."""
    trace_timeout_s: float = Field(default=60.0, gt=0)
    """Limit of tracing the reference; where it is over, the built-in coder writes nothing."""
    compile_timeout_s: float = Field(default=120.0, gt=0)
    """How long torch.compile of the reference is waited for; a run goes on without it, and it joins when it comes."""
    counters: Literal["auto", "never"] = "auto"
    """`auto`: those of each best candidate so far that can be planned on, and of the champion, are read where Nsight Compute works."""
    evaluator: str = "local"
    """`local`, `spool:DIR` (a folder that evaluation workers watch), or `ray[:ADDRESS]` (a Ray cluster)."""
    devices: str = "all"
    """`all` GPUs, `interpreter`, or of the local evaluator NVML numbers such as `0,1`."""
    wait: bool = True
    """False: a run stops, to be resumed, where an answer is not there yet."""
    memory: bool = True
    """False is `--no-memory`."""
    learns: bool = True
    """False: what is known is recalled, and nothing is added to it."""
    knowledge: str = ""
    """Folder of the knowledge base; empty means the one in the home folder."""
    embedder: str = "default"
    """`default` (the embedded all-MiniLM-L6-v2), `hashing`, or a sentence-transformers name or path."""
    chroma_server: str = ""
    """`http://host:port` of a `chroma run` server; empty means embedded."""
    share: str = ""
    """Name of the memory that machines share on that server; empty: nothing is shared."""
    recall_limit: int = Field(default=6, ge=0)
    recall_tokens: int = Field(default=2000, ge=0)
    """About how much of a prompt one recall may fill; 0 sets no limit."""
    update_every: int = Field(default=5, ge=0)
    """Runs after which memory rewrites lessons from its outcomes; 0: never by itself."""
    half_life: float = Field(default=365.0, ge=0)
    """Days in which what memory measured loses half of its weight; 0: it does not age."""
    team: TeamSettings = TeamSettings()

    @model_validator(mode="before")
    @classmethod
    def _stored_without_policy(cls, fields: Any, info: ValidationInfo) -> Any:
        """Read settings that were stored without a policy as `exact`, which was the default when there were such."""
        stored = info.mode == "json" and isinstance(fields, dict)
        return {"policy": {"name": "exact"}, **fields} if stored else fields


def settings_of(store: RunStore) -> RunSettings:
    """Read what a run was begun with; UserError where another version wrote what this one does not know."""
    try:
        return RunSettings.model_validate_json(store.meta("settings"))
    except ValidationError as error:
        raise unreadable(f"{store.folder / 'run.db'} has settings", error) from error
