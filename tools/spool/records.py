"""What lies in a spool: jobs, claims, answers and announcements, as JSON of frozen records."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from tools.records import Baselines, Evaluation, EvaluationRequest, HardwareSheet, Problem, Record, content_hash

VERSION = 1
"""Version of the spool's layout and records; the two sides must speak the same."""

Executor = Literal["any", "gpu", "interpreter"]
"""Who may answer: a worker with the target's GPU (measured), one without a GPU (estimated), or whoever comes first."""


class BaselinesQuestion(Record):
    """Asks how fast the reference is by itself on a target."""

    problem: Problem
    target: HardwareSheet

    @property
    def key(self) -> str:
        """The same question has the same key."""
        return content_hash("baselines", self.problem.id, self.target.name)


class Job(Record):
    """One question to whoever works on this spool: a candidate to judge, or a reference to time."""

    version: Literal[1] = 1
    """`VERSION`."""
    token: str
    """Random: tells two askings of the same job apart, so that withdrawing one does not end the other."""
    asked: float
    """When, in seconds since 1970 by the asker's clock; for people."""
    asker: str
    """Host of the agents; for people."""
    executor: Executor = "any"
    attempt: int = Field(default=1, ge=1)
    """Counts the askings that a failing machine answered: each is a job of its own."""
    evaluation: EvaluationRequest | None = None
    baselines: BaselinesQuestion | None = None

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if (self.evaluation is None) == (self.baselines is None):
            raise ValueError("a job asks exactly one thing")
        return self

    @property
    def question(self) -> EvaluationRequest | BaselinesQuestion:
        """What is asked."""
        question = self.evaluation or self.baselines
        assert question is not None
        return question

    @property
    def id(self) -> str:
        """Name of the job's files: a function of what is asked, of whom, and of the attempt."""
        return content_hash(self.question.key, self.executor, str(self.attempt))

    @property
    def target(self) -> HardwareSheet:
        """The device the answer is about."""
        return self.question.target

    def __str__(self) -> str:
        """Read as `softmax 3f2a91 (confirm) for h200`."""
        if self.evaluation:
            stage = " (confirm)" if self.evaluation.stage == "confirm" else ""
            return f"{self.evaluation.problem.name} {self.evaluation.candidate[:6]}{stage} for {self.target.name}"
        return f"the reference of {self.question.problem.name} for {self.target.name}"


class Identity(Record):
    """One worker process, told apart from every other."""

    session: str
    """Random, of this process; names its announcement."""
    host: str
    boot: str
    """Id of this boot of the machine; empty where it is unknown."""
    pids: str
    """The namespace that `pid` counts in; empty where it is unknown."""
    pid: int
    started: int
    """Start of the process in clock ticks since boot: a pid used again is another process."""

    def __str__(self) -> str:
        """Read as `worker 9c01de on host gpu7`."""
        return f"worker {self.session[:6]} on host {self.host}"


class Announcement(Record):
    """What a worker says of itself, written anew at every beat: an announcement that stops changing is of a dead worker."""

    version: Literal[1] = 1
    worker: Identity
    executor: Literal["gpu", "interpreter"]
    target: str | None
    """Sheet name of its GPUs; None for the interpreter, which cross-compiles for any."""
    devices: tuple[str, ...]
    """Titles of its GPUs as the driver reports them; empty for the interpreter."""
    versions: dict[str, str]
    since: float
    beat: int = 0
    """Counts the times it was written."""
    written: float
    """By the worker's clock."""
    done: int = 0
    """Jobs answered so far."""
    ended: bool = False
    """True in the last beat of a worker that ended in order."""

    @property
    def place(self) -> str:
        """What it evaluates on, in words."""
        if not self.devices:
            return "interpreter"
        count = f"{len(self.devices)}x " if len(self.devices) > 1 else ""
        return count + self.devices[0]


class Claim(Record):
    """A worker has taken a job."""

    job: str
    """Job id."""
    token: str
    """Of the asking that was taken."""
    worker: Identity
    generation: int = Field(ge=1)
    """1 for the first taker; each later one took the job over from a worker that died or gave it back."""
    died: int = Field(default=0, ge=0)
    """How many earlier takers died over it."""
    since: float
    """By the worker's clock."""


class Failure(Record):
    """An error of the machine, or of what the user gave, passed on as such."""

    kind: Literal["machine", "user"] = "machine"
    what: str
    mend: str


class Answer(Record):
    """What came of a job: an evaluation, baselines, or the failure of a machine."""

    version: Literal[1] = 1
    job: str
    """Job id."""
    key: str
    """Key of the question."""
    announced: Announcement
    """The worker that answered, as it announced itself then."""
    generation: int = 1
    """Which taking of the job this is."""
    finished: float
    evaluation: Evaluation | None = None
    baselines: Baselines | None = None
    failure: Failure | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if sum(part is not None for part in (self.evaluation, self.baselines, self.failure)) != 1:
            raise ValueError("an answer is exactly one thing")
        return self

    @property
    def place(self) -> str:
        """Where it was judged, read as `gpu7 (2x NVIDIA H200)`."""
        return f"{self.announced.worker.host} ({self.announced.place})"

    @property
    def origin(self) -> str:
        """Who answered, in one sentence."""
        return f"Evaluated by {self.announced.worker} ({self.announced.place})."


class Withdrawal(Record):
    """The agents no longer want an answer."""

    job: str
    token: str
    """Of the asking that is withdrawn."""
