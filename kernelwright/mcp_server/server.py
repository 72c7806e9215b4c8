"""The server: which tools and resources a coding agent finds, and what each says of itself."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from kernelwright.mcp_server.commands import Commands, Facts
from kernelwright.mcp_server.places import Places, kernel_file
from kernelwright.mcp_server.resources import add_resources
from tools.errors import KernelwrightError, UserError
from tools.evidence.files import PROFILE
from tools.scratch import PREFIX, scratch
from tools.version import VERSION

Problem = Annotated[str, Field(description="Path of the file with the PyTorch reference, below the server's root.")]
Kernel = Annotated[str, Field(description="Path of the file that defines ModelNew; or give kernel_text.")]
KernelText = Annotated[str, Field(description="Source that defines ModelNew, instead of a path.")]
Target = Annotated[str, Field(description="Device, such as h200 or a100; empty: this machine's GPU, else an H200, estimated.")]
Policy = Annotated[Literal["default", "exact", "tf32", "fp16", "bf16"], Field(description="Precision policy.")]

INSTRUCTIONS = """Judge and write faster Triton or CUDA kernels for PyTorch operators.
Start with `explain` (what the built-in generator would do) or `optimize` (a whole search). Judge every kernel of your own with
`evaluate`: stage `search` while you work, stage `confirm` before you say that it is faster. A time is measured only where the result
says a tier of sealed, bracketed or in-process; tier estimated comes from a model. Figures without a PASS mean nothing."""


@dataclass(frozen=True)
class Limits:
    """What one call may spend at most."""

    evaluations: int = 64
    """Of a run."""
    minutes: float = 60.0
    """Of a run."""
    usd: float = 0.0
    """For a run's language models; 0: no model can be asked for."""


def build_server(places: Places, commands: Commands, limits: Limits) -> MCPServer[Any]:
    """Make a server whose calls name files in `places`, run as `commands` and stay within `limits`."""
    server: MCPServer[Any] = MCPServer("kernelwright", version=VERSION, instructions=INSTRUCTIONS, log_level="WARNING")
    calls = _Calls(places, commands, limits)
    for call in (calls.evaluate, calls.profile, calls.verify, calls.explain, calls.search_memory, calls.optimize, calls.trace):
        server.tool()(_refusing(call))
    add_resources(server, commands, places.home)
    return server


def _refusing(call: Callable[..., Awaitable[Facts]]) -> Callable[..., Awaitable[Facts]]:
    """Have a call's refusal reach the agent as one line."""

    @functools.wraps(call)
    async def run(*given: Any, **named: Any) -> Facts:
        try:
            return await call(*given, **named)
        except KernelwrightError as error:
            raise ToolError(f"{error.what} {error.mend}".strip()) from error

    return run


class _Calls:
    """The tools; their docstrings are what an agent reads."""

    def __init__(self, places: Places, commands: Commands, limits: Limits) -> None:
        self._places, self._commands, self._limits = places, commands, limits

    async def evaluate(
        self,
        problem: Problem,
        kernel: Kernel = "",
        kernel_text: KernelText = "",
        stage: Literal["search", "confirm"] = "search",
        target: Target = "",
        policy: Policy = "default",
        timeout_s: Annotated[float, Field(ge=1, le=600, description="Seconds for build, check and timing each.")] = 120.0,
    ) -> Facts:
        """Judge a kernel in the sandbox: whether it is right (and where it is not), how fast, and against which baselines."""
        with kernel_file(self._places, kernel, kernel_text) as file:
            return await self._judged(problem, file, stage, target, policy, timeout_s)

    async def profile(
        self,
        problem: Problem,
        kernel: Kernel = "",
        kernel_text: KernelText = "",
        target: Target = "",
        policy: Policy = "default",
        timeout_s: Annotated[float, Field(ge=1, le=600, description="Seconds for build, check and timing each.")] = 120.0,
    ) -> Facts:
        """Say where a right kernel's time goes: its bottleneck, bytes, operations, and the source of each figure. Confirms it first."""
        with kernel_file(self._places, kernel, kernel_text) as file, scratch(f"{PREFIX}mcp-") as folder:
            bundle = folder / "bundle"
            judged = await self._judged(problem, file, "confirm", target, policy, timeout_s, "--bundle", str(bundle))
            found = bundle / PROFILE
            profile = loads(found.read_text(encoding="utf-8")) if found.is_file() else None
        return {"verdict": judged["verdict"], "time_us": judged["time_us"], "tier": judged["tier"], "profile": profile}

    async def _judged(self, problem: str, kernel: Path, stage: str, target: str, policy: str, timeout_s: float, *more: str) -> Facts:
        options = ("--stage", stage, "--policy", policy, "--timeout", str(timeout_s), *_given("--target", target), *more)
        return await self._commands.run("evaluate", *options, "--", str(self._places.source(problem)), str(kernel))

    async def verify(
        self,
        bundle: Annotated[str, Field(description="Folder of an evidence bundle, below the root or in a run.")],
        run: Annotated[bool, Field(description="Also run its kernel again, with fresh inputs.")] = True,
    ) -> Facts:
        """Re-check an evidence bundle claim by claim: its files, its figures, and its kernel on this machine."""
        return await self._commands.run("verify", *(() if run else ("--no-run",)), "--", str(self._places.folder(bundle)))

    async def explain(
        self,
        problem: Problem,
        target: Target = "",
        policy: Policy = "default",
        choice: Annotated[int, Field(ge=1, le=99, description="Which of the cost model's choices, the best first.")] = 1,
    ) -> Facts:
        """Show how the built-in generator gets from the operator to kernels, stage by stage. Nothing runs; times are estimated."""
        options = ("--policy", policy, "--choice", str(choice), *_given("--target", target))
        return await self._commands.run("explain", *options, "--", str(self._places.source(problem)))

    async def search_memory(
        self,
        text: Annotated[str, Field(min_length=1, max_length=2000, description="A situation or an idea, in plain words.")],
        limit: Annotated[int, Field(ge=1, le=50)] = 8,
    ) -> Facts:
        """Find past strategies: in such a situation this step gave that measured change, so often."""
        return await self._commands.run("knowledge", "search", "--limit", str(limit), "--", text)

    async def optimize(
        self,
        problem: Problem,
        ctx: Context[Any, Any],
        budget: Annotated[int, Field(ge=1, description="Evaluations to spend.")] = 16,
        minutes: Annotated[float, Field(gt=0, description="Minutes the run may take.")] = 15.0,
        target: Target = "",
        policy: Policy = "default",
        model: Annotated[str, Field(description="A language model of the server's own settings; empty: built-in agents.")] = "",
    ) -> Facts:
        """Search for a faster kernel and prove it: minutes of work, with progress. The answer names the kernel's file and its evidence."""
        spending = self._allowed(budget, minutes, model)
        said = _Progress(ctx, budget)
        options = ("--policy", policy, *spending, *_given("--target", target), *_given("--model", model), "--verbose")
        return await self._commands.run("optimize", *options, "--", str(self._places.source(problem)), told=said.tell)

    def _allowed(self, budget: int, minutes: float, model: str) -> tuple[str, ...]:
        most = self._limits
        if budget > most.evaluations or minutes > most.minutes:
            raise UserError(f"A run here may take {most.evaluations} evaluations and {most.minutes:g} minutes.", "Ask for no more.")
        if model and not most.usd:
            raise UserError("This server pays for no language models.", "Leave `model` away, or have it started with --usd.")
        return ("--budget", str(budget), "--minutes", str(minutes), *(("--usd", str(most.usd)) if model else ()))

    async def trace(
        self,
        run: Annotated[str, Field(min_length=1, description="Name of a run, or the start of it.")],
        candidate: Annotated[str, Field(description="One candidate whole: its id, or the start of it.")] = "",
    ) -> Facts:
        """Show what the agents of a run tried, in which order, and what came of it; of a run under way, too."""
        return await self._commands.run("trace", *_given("--candidate", candidate), "--", run)


class _Progress:
    """Counts a run's evaluations from its lines."""

    def __init__(self, ctx: Context[Any, Any], budget: int) -> None:
        self._ctx, self._budget, self._done = ctx, budget, 0

    async def tell(self, line: str) -> None:
        """Pass a line on; evaluations move the bar."""
        self._done += " evaluate " in line
        await self._ctx.report_progress(min(self._done, self._budget), self._budget, line)


def _given(option: str, value: str) -> tuple[str, ...]:
    # as one word, so that a value that begins with a dash stays a value
    return (f"{option}={value}",) if value else ()
