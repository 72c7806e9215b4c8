"""The report of the work on a model: what was hot, what was chosen, what each operator came to, and what the whole model does now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from kernelwright.models.proving import brought
from kernelwright.models.records import Outcome, Ratio
from kernelwright.models.ways import PAIRS
from kernelwright.screen.words import counted
from tools.models.choosing.chosen import Chosen
from tools.models.jobs import COMPILED, COMPILED_OURS, EAGER, IN_GRAPH, OURS, WITHOUT, OutputProof
from tools.models.records import Capture, Group

OUTPUT_HEAD = ("workload", "output", "error with operators", "the original's own", "limit")
BEST_HEAD = ("workload", "fastest without operators, µs", "with", "speed-up")
REPORT, PAGE, FACTS = "report.md", "report.html", "report.json"


def summary(outcome: Outcome) -> str:
    """Say in a sentence or two what came out."""
    kept = [one.name for one in outcome.operators if one.kept]
    if not kept:
        return f"No operator helps {outcome.capture.title}: keep the model as it is."
    proof = outcome.proof
    if proof.what:
        return (
            f"{counted(len(kept), 'operator')} for {outcome.capture.title} {'is' if len(kept) == 1 else 'are'} in the package. "
            f"The whole model was not proven with {'it' if len(kept) == 1 else 'them'}: {proof.what}"
        )
    right = "right" if proof.holds else "NOT PROVEN right"
    said = (
        f"{counted(len(kept), 'operator')} {'takes' if len(kept) == 1 else 'take'} the place of {counted(len(proof.replaced), 'module')} "
        f"of {outcome.capture.title}; the whole model is {right}"
    )
    measured = {(one.over, one.under): one for one in outcome.ratios}
    if eager := measured.get((EAGER, OURS)):
        compiled = measured.get((COMPILED, COMPILED_OURS))
        beside = "".join(
            f", {_interval(measured[way, f'{OURS}{IN_GRAPH}'])} in a CUDA graph{alone}"
            for way, alone in ((f"{EAGER}{IN_GRAPH}", ""), (EAGER, ", which holds the model only with them"))
            if (way, f"{OURS}{IN_GRAPH}") in measured
        )
        beside += f", and {_interval(compiled)} inside torch.compile" if compiled else ""
        return f"{said}, and {_interval(eager)} as fast as eager{beside}; measured on {outcome.target}."
    return (
        f"{said}. Not timed: an estimated {outcome.expected:.2f}x against {_expected_over(outcome)} on {outcome.target}, "
        "by shares of the time and each operator's estimate."
    )


def estimate_words(outcome: Outcome) -> str:
    """Say what the whole model is expected to gain where it was not timed."""
    over = _expected_over(outcome)
    return f"Not timed. By shares and the operators' own figures, the model is an estimated {outcome.expected:.2f}x as fast as {over}."


def _expected_over(outcome: Outcome) -> str:
    """Name what speed-ups of operators are over where nothing was timed: evaluations estimate eager alone."""
    known = any(row.compiled_us for row in outcome.chosen if not row.judged)
    return "the better of eager and torch.compile" if known else "eager"


def _interval(one: Ratio) -> str:
    return f"{one.value:.2f}x [{one.low:.2f}, {one.high:.2f}]"


def report_text(outcome: Outcome) -> str:
    """Write the report as Markdown."""
    parts = [
        f"# {outcome.capture.title}",
        summary(outcome),
        f"File `{outcome.file}`, target {outcome.target}, policy {outcome.policy}; {outcome.seconds:.0f} s of work.",
        "## What was hot",
        f"Shares are by {outcome.capture.clock}. {chosen_words(outcome.chosen, outcome.target)}",
        *table(*chosen_table(outcome.chosen)),
        f"Not chosen: {not_chosen(outcome.chosen) or 'nothing else'}.",
        *(f"* {line}" for line in parted(outcome.capture)),
        *_left_alone(outcome.capture),
        "## What was made",
        *table(("operator", "by itself", "in the package", "what its run said"), operator_rows(outcome)),
        "## The whole model",
        *_whole(outcome),
    ]
    return "\n".join(parts).replace("\n## ", "\n\n## ").replace("\n|", "\n|") + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a table of Markdown, with an empty line around it."""
    lines = [head, ["---"] * len(head), *rows]
    return ["", *(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines), ""]


def chosen_table(rows: Sequence[Chosen]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Give head and rows of what is worked on."""
    beside, judged = any(row.compiled_us for row in rows), all(row.judged for row in rows)
    head = (
        "operator",
        "modules",
        "calls",
        "share",
        "µs a call",
        *(("compiled",) if beside else ()),
        "over roofline",
        "gain",
        *(("budget",) if judged else ()),
    )
    found: list[tuple[str, ...]] = []
    for row in rows:
        if row.budget:
            over = "–" if row.over > 999 else f"{row.over:.1f}x"
            times = (f"{row.now_us:.1f}", *((f"~{row.baseline_us:.1f}",) if beside else ()))
            figures = (f"{row.share:.1%}", *times, over, f"{row.gain:.2f}x", *((str(row.budget),) if judged else ()))
            name = f"{row.group} (one shape)" if row.apart else row.group
            found.append((name, str(row.modules), str(row.calls), *figures))
    return head, found


def chosen_words(rows: Sequence[Chosen], target: str) -> str:
    """Say what the columns of that table mean."""
    times = times_words(rows, target)
    if any(row.compiled_us for row in rows):
        times += "; compiled: what torch.compile would leave of it, estimated"
    gain = f"of the whole model, if its calls took what one launch could at best{beyond_words(rows)}"
    budget = "Budget: evaluations." if all(row.judged for row in rows) else "No evaluation is made."
    return f"µs a call: {times}. Gain: {gain}. {budget}"


def times_words(rows: Sequence[Chosen], target: str) -> str:
    """Say where the times of calls come from."""
    return f"of eager execution on {target}, estimated" if any(row.eager_us for row in rows) else "measured"


def beyond_words(rows: Sequence[Chosen]) -> str:
    """Say over what a gain of the whole model counts, where that is not all of eager's time."""
    return ", by what that saves beyond torch.compile, of eager's time" if any(row.compiled_us for row in rows) else ""


def not_chosen(rows: Sequence[Chosen]) -> str:
    """Say what is not worked on, and why."""
    return ", ".join(f"{row.group} ({row.why_not})" for row in rows if not row.budget)


def parted(capture: Capture) -> list[str]:
    """Say which modules are called at shapes that no one kernel serves, and why; one line for each kind."""
    kinds: dict[tuple[str, str], list[Group]] = {}
    for group in capture.groups:
        if group.apart and not group.reason:
            kinds.setdefault((group.title, group.apart), []).append(group)
    return [
        f"{title} is called at several shapes, and no one kernel serves them all: {why}. "
        f"Each shape stands for itself: {', '.join(f'{one.name} ({one.share:.1%})' for one in groups)}."
        for (title, why), groups in kinds.items()
    ]


def left_alone(capture: Capture) -> list[tuple[str, str, str]]:
    """Name what cannot be replaced, with its share and the reason; a class that has the same one at several shapes or places, once."""
    kinds: dict[tuple[str, str], list[Group]] = {}
    for group in capture.groups:
        if group.reason:
            kinds.setdefault((group.title, group.reason), []).append(group)
    return [
        (_named(title, list(dict.fromkeys(path for one in groups for path in one.paths))), f"{sum(one.share for one in groups):.1%}", why)
        for (title, why), groups in kinds.items()
    ]


def operator_rows(outcome: Outcome) -> list[tuple[str, str, str, str]]:
    """Say what came of each chosen operator."""
    return [
        (
            one.name,
            f"{one.speedup:.2f}x ({one.tier})" if one.delivered else "–",
            "yes" if one.kept else f"no: {one.taken_out or 'kept as it is'}",
            one.reason,
        )
        for one in outcome.operators
    ]


def time_rows(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Say what was measured: each way over the other with its interval."""
    names = {EAGER: "against eager", COMPILED: "inside torch.compile, against torch.compile"}
    names |= {f"{way}{IN_GRAPH}": f"{said}, both in CUDA graphs" for way, said in names.items()}
    deciding = brought(outcome, [one.name for one in outcome.operators if one.kept]).values()
    graphed = any(one.under == f"{OURS}{IN_GRAPH}" for one in outcome.ratios)

    def named(one: Ratio) -> str:
        alone = one.under.endswith(IN_GRAPH) and not one.over.endswith(IN_GRAPH)
        said = names.get(one.over, one.over.replace(WITHOUT, "gain by ")) + (", in a CUDA graph only with operators" if alone else "")
        return f"{said} (decides what stays)" if graphed and one in deciding else said

    return [(named(one), f"{one.value:.3f}x", f"[{one.low:.3f}, {one.high:.3f}]") for one in outcome.ratios]


def _left_alone(capture: Capture) -> list[str]:
    rows = left_alone(capture)
    return ["Left alone:", *table(("module", "share", "because"), rows)] if rows else []


def _named(title: str, paths: Sequence[str]) -> str:
    return f"{title} ({paths[0] or 'the model'}" + (f" and {len(paths) - 1} more)" if len(paths) > 1 else ")")


def _whole(outcome: Outcome) -> list[str]:
    proof = outcome.proof
    if proof.what:
        return [proof.what]
    lines = [
        f"Compared with {proof.oracle}, on two fresh sets of inputs, {'interpreted' if outcome.device == 'cpu' else 'on the device'}:",
        *table(OUTPUT_HEAD, output_rows(outcome)),
        f"`remove` brings the original back: {'yes' if proof.restored else 'NO'}. {_breaks(proof.breaks)}",
        f"Calls that operators took: {_counts(proof.hits)}. Calls that went to the original: {_counts(proof.misses)}.",
    ]
    if outcome.ratios:
        lines += [
            "",
            "Times of the whole model, in turn, in its own process:",
            *table(("", "speed-up", "95 % interval"), time_rows(outcome)),
        ]
        lines += table(BEST_HEAD, best_ways(outcome))
        lines += table(("way", "workload", "median µs"), medians(outcome))
    else:
        lines.append(estimate_words(outcome))
    return [*lines, *(f"* {note}" for note in proof.notes)]


def output_rows(outcome: Outcome) -> list[tuple[str, ...]]:
    """Say how far each output is from the oracle."""
    return [_output(one) for one in outcome.proof.outputs]


def _output(one: OutputProof) -> tuple[str, ...]:
    return (
        one.workload,
        f"{one.output} ({one.dtype})",
        f"{one.error:.1e}",
        f"{one.own:.1e}",
        f"{one.limit:.1e}" + ("" if one.holds else " EXCEEDED"),
    )


def medians(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Say how long each workload takes in each way of running it."""
    return [
        (way, name, f"{sorted(each)[len(each) // 2]:,.1f}") for way, times in outcome.proof.times.items() for name, each in times.items()
    ]


def best_ways(outcome: Outcome) -> list[tuple[str, ...]]:
    """Say for each workload how it is run fastest without the operators, and with them."""
    found: dict[str, dict[bool, tuple[float, str]]] = {}
    for pair in PAIRS:
        for ours, way in enumerate(pair):
            for name, each in outcome.proof.times.get(way, {}).items():
                best = found.setdefault(name, {})
                best[bool(ours)] = min(best.get(bool(ours), (float("inf"), "")), (median(each), way))
    return [
        (
            name,
            f"{each[False][1]}: {each[False][0]:,.1f}",
            f"{each[True][1]}: {each[True][0]:,.1f}",
            f"{each[False][0] / each[True][0]:.3f}x",
        )
        for name, each in found.items()
        if len(each) > 1
    ]


def _breaks(found: dict[str, int]) -> str:
    if not {"with", "without"} <= found.keys():
        return "Graph breaks were not looked for."
    return f"Graph breaks under torch.compile: {found['with']} with the operators, {found['without']} without."


def _counts(found: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in found.items()) or "none"
