"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

UNJUDGED = 3
"""Exit status where it could not be judged whether a kernel is right."""
Home = Annotated[
    Path | None,
    typer.Option("--home", envvar="KERNELWRIGHT_HOME", help="Folder of runs and knowledge.", show_default="~/.kernelwright"),
]
Evaluator = Annotated[
    str,
    typer.Option(
        "--evaluator",
        metavar="local|spool:DIR|ray[:ADDRESS]",
        help="Who evaluates: this machine, workers that watch a folder, or a Ray cluster.",
    ),
]
RunsOn = Annotated[
    Literal["here", "cluster"],
    typer.Option(help="With a Ray cluster: agents work here, or whole runs are its tasks (agents without a language model)."),
]
Devices = Annotated[
    str,
    typer.Option(
        "--devices", metavar="all|interpreter|0,1", help="GPUs to evaluate on: all, none, or this machine's by nvidia-smi's numbers."
    ),
]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="With a spool: wait for answers, or stop (exit status 75) and go on with `resume`.")
]
Counters = Annotated[
    Literal["auto", "never"],
    typer.Option("--counters", help="Hardware counters of the best candidates by Nsight Compute, where it is found and works."),
]
SEARCHES = "greedy, random, macro, evolution, world-model, memory, bandit, tree, portfolio"
SearchSet = Annotated[
    list[str] | None,
    typer.Option(
        "--search-set", metavar="NAME=VALUE", help="A setting of the search method, as its page in docs/search/ lists; may be repeated."
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of search methods that draw at random.")]
Floor = Annotated[
    float, typer.Option("--floor", min=1, help="Least speed-up worth delivering: the lower end of the confirmed interval must exceed it.")
]
AgainstOption = Annotated[
    Literal["better", "eager"],
    typer.Option("--against", help="What a delivered kernel must be faster than: the better of eager and torch.compile, or eager alone."),
]
Fallback = Annotated[
    Literal["error", "reference"],
    typer.Option(
        "--fallback",
        help="What the delivered file does with calls it was not made for (other ranks, dtypes, fixed sizes, gradients): "
        "raise an error that says so, or call the reference, which it then carries.",
    ),
]
Weights = Annotated[
    Literal["fixed", "changing"],
    typer.Option(
        "--weights",
        help="fixed: a kernel may pack its weights once for all calls; that step is timed and shown by itself. "
        "changing: they change between calls, as in training, and every call pays for what it makes of them.",
    ),
]
Policy = Annotated[
    str,
    typer.Option(
        "--policy",
        "--precision",
        metavar="default|exact|tf32|fp16|bf16|FILE",
        help="default: PyTorch as it comes, which lets convolutions and recurrent networks round float32 to TF32, and nothing else. "
        "exact: float32 stays float32. The others: the reference may round to that, so a kernel may too. Or a JSON file. "
        "The baselines are timed under the same flags.",
    ),
]
NamedPolicy = Annotated[
    Literal["default", "exact", "tf32", "fp16", "bf16"],
    typer.Option("--policy", help="What kernels and baselines may round, as for `optimize`; default: what PyTorch does as it comes."),
]
OtherBaselines = Annotated[
    str,
    typer.Option(
        "--baselines",
        metavar="POLICY[,…]",
        help="Also time eager and torch.compile under these policies' flags, by themselves, and show both: e.g. default,exact.",
        show_default="those of --policy",
    ),
]
Tolerance = Annotated[
    float, typer.Option("--tolerance", min=0, help="Relative L2 error that is allowed in any case; 0: what the policy derives.")
]
RowTolerance = Annotated[
    float, typer.Option("--row-tolerance", min=0, help="The same for the worst row.", show_default="four times --tolerance")
]
NonFinite = Annotated[bool, typer.Option("--non-finite", help="Also try inputs with NaN and infinities.")]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME[@URL][,…]",
        help="Language model that designs and writes kernels (--team); of several one is chosen for each question, by what it achieved "
        "and cost.",
        show_default="none: built-in",
    ),
]
Team = Annotated[
    Literal["solo", "pair", "full"],
    typer.Option(
        "--team",
        help="How a model works. solo: one agent designs and writes whole kernels. pair: solo, and a reviewer's second look. "
        "full: planner and coder are agents of their own. Profiler and reviewer are built-in unless --role says else.",
    ),
]
BaseUrl = Annotated[str, typer.Option("--base-url", help="An OpenAI-compatible server, e.g. http://localhost:8000/v1.")]
KeyFile = Annotated[
    str,
    typer.Option(
        "--api-key-file", "--key-file", help="File that holds the server's key.", show_default="KERNELWRIGHT_API_KEY or OPENAI_API_KEY"
    ),
]
Role = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE=VARIANT[:MODEL[@URL]]",
        help="Who plays a role (planner, coder, profiler, reviewer): builtin or llm, or mixed for the coder; may be repeated.",
    ),
]
Context = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        metavar="ROLE=TOKENS",
        help="Longest prompt of a role, e.g. coder=12000; may be repeated.",
        show_default="kernelwright prompts",
    ),
]
ModelSet = Annotated[
    list[str] | None,
    typer.Option(
        "--model-set",
        metavar="[ROLE.|MODEL.]NAME=VALUE",
        help="A setting of the models, as docs/models.md lists: timeout_s, retries, temperature, api, …; may be repeated.",
    ),
]
TraceTimeout = Annotated[
    float,
    typer.Option(
        "--trace-timeout", min=1, help="Seconds that tracing a reference may take; beyond them the built-in coder writes nothing."
    ),
]
CompileTimeout = Annotated[
    float,
    typer.Option(
        "--compile-timeout",
        min=1,
        help="Seconds that torch.compile of a reference is waited for; then it goes on against eager, and the rest joins when it comes.",
    ),
]
Tune = Annotated[
    int,
    typer.Option(
        "--tune",
        min=0,
        help="Trials when the tuner sets all numbers of a schedule, or of a kernel that a model or you wrote; each is an evaluation, "
        "at most half of those left. 0 never tunes.",
    ),
]
Parents = Annotated[
    Literal["auto", "torch.compile", "none"],
    typer.Option(
        "--parents",
        help="auto: where times are measured, torch.compile's own kernels are judged as well, as a file of their own, and searched from. "
        "torch.compile: everywhere, also where times are estimates. none: nowhere.",
    ),
]
Cache = Annotated[bool, typer.Option("--cache", help="Answer from the home folder what any run there has asked of the same model before.")]
SERVER_VARIABLE = "KERNELWRIGHT_CHROMA_SERVER"
ChromaServer = Annotated[
    str,
    typer.Option(
        "--chroma-server",
        metavar="http://HOST:PORT",
        envvar=SERVER_VARIABLE,
        help="A Chroma server (`chroma run`) that holds memory's vectors; its log stays on this machine.",
        show_default="the index in the knowledge's folder",
    ),
]
SHARE_VARIABLE = "KERNELWRIGHT_SHARE"
Share = Annotated[
    str,
    typer.Option(
        "--share",
        metavar="NAME",
        envvar=SHARE_VARIABLE,
        help="Learn with the machines that name the same on that Chroma server; docs/knowledge.md says what is shared.",
        show_default="nothing is shared",
    ),
]
HALF_LIFE = 365.0
HalfLife = Annotated[
    float,
    typer.Option(
        "--half-life",
        min=0,
        metavar="DAYS",
        envvar="KERNELWRIGHT_HALF_LIFE",
        help="Days in which what memory measured loses half of its weight; a sixth of that with other versions. 0: it does not age.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say every step with its reasons, and all figures of the result.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output, and nothing else there.")]


def search_options(written: list[str] | None) -> dict[str, str]:
    """Read `NAME=VALUE` settings of a search method."""
    from tools.errors import UserError

    wrong = [one for one in written or [] if not one.partition("=")[0] or "=" not in one]
    if wrong:
        raise UserError(f"--search-set {wrong[0]} is not of the form NAME=VALUE.", "Write for example --search-set epsilon=0.2.")
    return {name: value for name, _, value in (one.partition("=") for one in written or [])}


def home_folder(home: Path | None) -> Path:
    """The folder the user named, or the default."""
    from tools.tracing.finding import default_home

    return home or default_home()
