"""What every action means, in one place: shown to people by the command line and put into language models' prompts.

The built-in coder's schedules use exactly the parameters named here (`tools/codegen/templates/*/knobs.py`); language models may use the
same names and others.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.records import ATTEMPT, IDEA, Action, ActionKind


@dataclass(frozen=True)
class ParameterMeaning:
    """One parameter of an action."""

    name: str
    values: str
    """Legal values, in words."""
    meaning: str


@dataclass(frozen=True)
class Meaning:
    """What one kind of action does."""

    title: str
    does: str
    helps: str
    """When it helps."""
    parameters: tuple[ParameterMeaning, ...]
    risk: str


_P = ParameterMeaning

GUIDE: dict[ActionKind, Meaning] = {
    ActionKind.FUSION: Meaning(
        "Fuse operators",
        "Runs several operators in one kernel, so that what passes between them stays in registers.",
        "Where intermediates are written to memory and read back: the moved bytes exceed those of inputs and outputs.",
        (
            _P(
                "scope",
                "each, together, library",
                "each: every named region becomes one kernel of its own; together: the named regions become one kernel; library: a "
                "convolution and the relu that alone reads it become one call of cuDNN",
            ),
            _P("sms", "a whole number", "multiprocessors of the device, from which first block sizes are chosen"),
        ),
        "Too many live values spill; a fused matrix product may lose to the library's.",
    ),
    ActionKind.TILING: Meaning(
        "Change tile sizes",
        "Sets how many rows, columns or summed elements one program handles at a time.",
        "Where programs are too few to fill the device, too small to hide latency, or so large that registers or shared memory run out.",
        (
            _P("ROWS", "1, 2, 4, … 256", "rows of a row region, or sequences of a loop, that one program holds"),
            _P("CHUNK", "16, 32, … 256", "steps of a loop that one program takes at once, by algorithm=scan or chunked"),
            _P("BLOCK_M", "1, 2, … 256", "rows of a tile, of a matrix product or of a loop nest"),
            _P("BLOCK_N", "1, 2, … 8192", "columns of a tile, or of one step along a long row"),
            _P("BLOCK_K", "1, 4, … 2048", "summed elements of a step, of a product or of a reduction in tiles"),
            _P("BLOCK_B", "16, 32, 64", "sequences of recurrent layers that one program takes"),
            _P("BLOCK_H", "4, 8, … 64", "hidden units of a recurrent layer, with all of their gates, that one program makes"),
            _P("SLICES", "1, 2, 4", "slices of a convolution's result of which one program makes the same tile"),
            _P("STEPS", "1, 2, 4, … 64", "positions of a dimension that a program walks: what is the same along it is made once"),
            _P("BLOCK_D", "32, 64, 128, 256", "elements of a head in one step of an attention's scores"),
            _P("BLOCK_V", "32, 64, 128, 256", "elements of a value that one program of an attention holds"),
        ),
        "Larger tiles cost registers and shared memory; smaller ones re-read more.",
    ),
    ActionKind.PIPELINE: Meaning(
        "Change pipelining",
        "Sets how many steps of a loop have their loads in flight at once.",
        "Where a loop waits for memory: low occupancy, long rows, matrix products.",
        (
            _P("num_stages", "1, 2, 3, 4, 5", "steps in flight"),
            _P(
                "ahead",
                "nothing, launch, weights",
                "what a wave of recurrent layers does before the one ahead of it has ended: nothing, begin, or load its weights, too "
                "(Hopper and newer)",
            ),
            _P("UNROLL", "1, 2, 4, 8", "blocks of a long row that one step loads together, each thread reducing its own"),
            _P(
                "loads",
                "pointers, descriptors",
                "how a matrix product fetches its tiles: each thread by its own addresses, or the copy engine of Hopper and Blackwell "
                "(TMA) whole tiles by descriptor, which frees registers and instructions; both operands must be matrices whose rows "
                "begin at multiples of 16 bytes; not for programs=persistent",
            ),
        ),
        "Each stage costs shared memory.",
    ),
    ActionKind.REORDERING: Meaning(
        "Reorder programs",
        "Walks the tiles of a matrix product in groups of rows, so that programs running together share what they read.",
        "Where a product's operands exceed the L2 cache and its traffic exceeds the compulsory bytes.",
        (_P("GROUP_M", "1, 4, 8, 16", "rows of tiles in a group; 1 walks row by row"),),
        "None for correctness; a wrong group costs L2 hits.",
    ),
    ActionKind.VECTORISATION: Meaning(
        "Change elements a thread",
        "Sets how many elements each thread of a pointwise kernel handles: wider accesses and more loads in flight.",
        "Where accesses are narrower than 16 bytes, or too few bytes are in flight to reach the memory's rate.",
        (_P("ELEMENTS", "1, 2, 4, 8, 16, 32", "elements a thread"),),
        "Many elements a thread leave small problems with too few programs.",
    ),
    ActionKind.LAYOUT: Meaning(
        "Change a layout",
        "Brings an operand into a layout that the hardware reads better, and lets the kernels around it read the result as it lies.",
        "Library convolutions want channels last; TF32 products want a right operand that is contiguous along the summed dimension.",
        (
            _P(
                "memory_format",
                "contiguous, channels_last, channels_last_result",
                "how library convolutions lay out what they give: as the reference does; channels last, with the kernels around them "
                "reading it as it lies; the same for what forward returns, whose strides then differ from the reference's",
            ),
            _P("right", "as_is, k_major, exchanged", "k_major copies the right operand to lie along the sum; exchanged makes a transpose"),
            _P(
                "weights",
                "every_call, prepacked",
                "prepacked writes what a product or convolution reads of its weights (fp16 parts of split floats, another order), or what "
                "regions make of parameters alone, once for all calls, in `pack_weights`, and again when a weight changes; that step is "
                "timed by itself",
            ),
        ),
        "The copy costs a pass over the operand: it pays for large products and convolutions only. Prepacked weights take memory as well.",
    ),
    ActionKind.PRECISION: Meaning(
        "Change how products are computed",
        "Chooses the units that multiply, and how their partial sums are added.",
        "Where a float32 product is bound by the ordinary cores: three TF32 products on tensor cores are as accurate and faster.",
        (
            _P(
                "precision",
                "ieee, tf32, tf32x3, fp16x3, fp16x1, bf16x3, bf16x6",
                "float32 products on the ordinary cores, rounded to TF32 on tensor cores (where the policy allows it), as three TF32 "
                "products, as three products of float16 parts, scaled by powers of two row by row so that every range fits, as one "
                "product of such parts, with TF32's digits (where the policy allows it), as three products of two bfloat16 parts (16 "
                "digits, where the policy allows it), or as six of three, which have float32's range and digits",
            ),
            _P(
                "accumulate",
                "direct, chunked",
                "chunked adds each step's partial sums in a fresh accumulator, then in float32: smaller errors",
            ),
        ),
        "Under the exact policy the errors decide; tf32x3 without chunked accumulation can exceed them.",
    ),
    ActionKind.ALGORITHM: Meaning(
        "Change the algorithm",
        "Computes the same result in another way, or takes a region from the library or back to it.",
        "registers: rows that fit. online, looped: long rows. l2_two_pass: long rows that are read again to be written. "
        "split: rows too few to fill the device. library: where it is faster.",
        (
            _P(
                "implementation",
                "library, generated, tile, steps, modelled, torch.compile",
                "who runs a region; tile: the template of loop nests in the place of pointwise or rows; steps: a loop of Python launches "
                "kernels of its body at every step, whose regions are r1/r0, r1/r1, …, where no kernel holds the loop; modelled: all of "
                "forward as the "
                "cost model has it; torch.compile: as Inductor writes it, "
                "which a run tries by itself",
            ),
            _P(
                "choice",
                "1, 2, 3, …",
                "which of the cost model's choices for all regions at once, the best first",
            ),
            _P(
                "algebra",
                "reduction_pushdown, fold_batch_norm",
                "reduction_pushdown: a sum or mean of a product, or of a convolution over positions, is taken before it: of one operand "
                "instead of the result, which makes a product with a vector of it; so is an average pooling of a convolution whose kernel "
                "has one element; fold_batch_norm: a batch norm with running statistics "
                "becomes part of the weight and bias before it, made in `pack_weights`; both equal for finite values whose partial "
                "results stay in range",
            ),
            _P(
                "algorithm",
                "flat, tile; pairs, vec4, across; registers, looped, online, split, l2_two_pass; sequential, scan, chunked",
                "how a pointwise region is walked (flat: one vector; tile: rows by columns), a "
                "pooling shares what it loads (pairs: windows two apart; vec4: windows one apart, four a lane; across: lanes along each "
                "wide window) or a row is reduced "
                "(registers: whole; looped: one pass a level; online: levels merged by rescaled running sums; "
                "split: several programs a row; "
                "l2_two_pass: so, in one launch, a row read again while the L2 has it); of a loop: sequential: step by step, what is "
                "carried in registers; scan: blocks of steps at once, where a step is linear in each element that it carries; chunked: "
                "blocks of steps by matrix products, where it adds an outer product to a decayed matrix and queries read that: some more "
                "operations, and one wait a chunk instead of one a step",
            ),
            _P(
                "reduction",
                "registers, looped, split",
                "how a loop nest reduces: what is walked held whole, stepped along, or shared by several programs",
            ),
            _P(
                "waves",
                "diagonal, layered",
                "which steps of recurrent layers share a launch: diagonal: one of every layer, each a step behind the one below; layered: "
                "one of one layer, in both directions",
            ),
            _P("SPLIT_K", "1, 2, 4, … 64", "programs that share the sum of one tile of a product, for few tiles with long sums"),
            _P("SPLIT_KEYS", "1, 2, 4, … 64", "programs that share the keys of one tile of queries, for few queries with many keys"),
            _P("sms", "a whole number", "multiprocessors of the device, from which first block sizes are chosen"),
        ),
        "Another order of additions changes the last digits.",
    ),
    ActionKind.LAUNCH: Meaning(
        "Change the launch",
        "Sets how many warps run a program, or how many programs share a row.",
        "Where occupancy, latency or the number of programs limits: more warps for long rows, fewer for small tiles.",
        (
            _P("num_warps", "1, 2, 4, 8, 16, 32", "warps a program"),
            _P("SPLITS", "2, 4, … 1024", "programs a row of a split or l2_two_pass reduction"),
            _P(
                "COPIES", "1, 8, 32, … 2048", "copies of a small tensor that programs add to, summed at the end: fewer wait for one another"
            ),
            _P(
                "programs",
                "data_parallel, persistent, stream_k, operand_stationary",
                "what a program of a matrix product does: one tile; tile after tile, one program a multiprocessor; one tile in all "
                "rounds that fill the device and then an equal share of the steps of the tiles left, whose parts are added in order; or, "
                "for fp16x3 and sums of at most 128 elements, it holds a tile of one operand, splits it and walks the other",
            ),
            _P(
                "tune",
                "a whole number",
                "trials of the tuner, which sets all numbers of the region's kernels at once; offered where it can run",
            ),
            _P(
                "launches",
                "each, together",
                "together, on the region forward: regions in a row that wait for none of one another and have as many warps are one grid, "
                "so that many small tensors fill the device where each alone does not",
            ),
            _P(
                "capture",
                "none, graph",
                "graph, on the region forward: the whole forward is captured as a CUDA graph at its first call and replayed afterwards, "
                "which pays where many short launches leave the device waiting",
            ),
        ),
        "Reductions across many warps go through shared memory.",
    ),
    ActionKind.REWRITE: Meaning(
        "Rewrite by another design",
        "Replaces the kernel by one of another design, stated in words and written as a whole.",
        "Where no single step leads there: another algorithm, another division of the work among programs, one kernel for everything.",
        (
            _P(IDEA, "one or two sentences", "the design; two rewrites differ where their ideas do"),
            _P(ATTEMPT, "a whole number", "instead: its number in the run, where the coder states the idea itself"),
        ),
        "Nothing of the parent is sure to be kept: what it had right must be right again.",
    ),
}


def headline(action: Action) -> str:
    """Say what an action changes, without its parameters."""
    return f"{GUIDE[action.kind].title} in {action.region}"


def describe(action: Action) -> str:
    """Say in one sentence what an action would do."""
    known = {parameter.name: parameter.meaning for parameter in GUIDE[action.kind].parameters}
    details = "; ".join(f"{name}={value}" + (f" ({known[name]})" if name in known else "") for name, value in action.parameters.items())
    return headline(action) + (f": {details}." if details else ".")


def render_guide() -> str:
    """Write the whole vocabulary as plain text."""
    parts = []
    for kind, meaning in GUIDE.items():
        lines = [f"{kind}: {meaning.title}. {meaning.does}", f"  Helps: {meaning.helps}", f"  Risk: {meaning.risk}"]
        lines += [f"  {parameter.name} = {parameter.values}: {parameter.meaning}" for parameter in meaning.parameters]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
