"""Small variants: what is rescaled, what is kept, and what they are good for."""

import math
import sys
from collections.abc import Callable

import pytest

from tools.errors import UserError
from tools.problems import describe_sizes, small_variants
from tools.problems.variants import MAX_ELEMENTS, MAX_FLOPS, MAX_TOUCHED
from tools.records import Problem

Load = Callable[..., Problem]


def kernelbench(forward: str, sizes: str, inputs: str, init: str = "", build: str = "pass") -> str:
    """A file as KernelBench writes them."""
    names = ", ".join(["self", *[part.strip() for part in init.split(",") if part.strip()]])
    return (
        f"class Model(nn.Module):\n    def __init__({names}):\n        super().__init__()\n        {build}\n\n"
        f"    def forward(self, {', '.join('abc'[: inputs.count('torch.')])}):\n        return {forward}\n\n"
        f"{sizes}\n\ndef get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return [{init}]\n"
    )


FILES = {
    "rows and columns": kernelbench("torch.softmax(a, 1)", "batch_size = 4096\ndim = 393216", "torch.rand(batch_size, dim)"),
    "square product": kernelbench("a @ b", "N = 2048 * 2", "torch.rand(N, N), torch.rand(N, N)"),
    "three sizes": kernelbench("a @ b", "M = 1024 * 2\nK = 4096 * 2\nN = 2048 * 2", "torch.rand(M, K), torch.rand(K, N)"),
    "image": kernelbench(
        "self.conv(a)",
        "batch_size = 16\nin_channels = 32\nout_channels = 64\nheight, width = 256, 128\nkernel_size = 3",
        "torch.rand(batch_size, in_channels, height, width)",
        "in_channels, out_channels, kernel_size",
        "self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)",
    ),
    "groups": kernelbench(
        "self.norm(self.gemm(a))",
        "batch_size = 1024\nin_features = 8192\nout_features = 8192\nnum_groups = 512",
        "torch.rand(batch_size, in_features)",
        "in_features, out_features, num_groups",
        "self.gemm = nn.Linear(in_features, out_features); self.norm = nn.GroupNorm(num_groups, out_features)",
    ),
    "heads": kernelbench(
        "self.proj(a).view(a.shape[0], a.shape[1], self.heads, -1).transpose(1, 2).softmax(-1)",
        "batch_size = 64\nseq_len = 512\nn_embd = 768\nn_head = 8",
        "torch.rand(batch_size, seq_len, n_embd)",
        "n_embd, n_head",
        "self.heads = n_head; self.proj = nn.Linear(n_embd, n_embd)",
    ),
    "shape in a tuple": kernelbench(
        "torch.cumsum(a, 1)",
        "batch_size = 32768\ninput_shape = (32768,)",
        "torch.rand(batch_size, *input_shape)",
    ),
    "equal sizes that must stay equal": kernelbench(
        "(a * b).sum()",
        "rows = 2048\ncolumns = 2048",
        "torch.rand(rows, 512), torch.rand(columns, 512)",
    ),
    "labels below a size": kernelbench(
        "F.cross_entropy(a, b)",
        "batch_size = 4096\nnum_classes = 10000",
        "torch.rand(batch_size, num_classes), torch.randint(0, num_classes, (batch_size,))",
    ),
    "literals": kernelbench("a.sum(1)", "", "torch.rand(2048, 4096)"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_shape_of_file_has_variants_within_the_limits(name: str, load: Load) -> None:
    """Two to four variants: the ABI's names, ranks and dtypes are kept, one size at least is odd, one is a single row."""
    problem = load(FILES[name])
    variants = small_variants(problem)
    assert 2 <= len(variants) <= 4
    for variant in variants:
        abi = variant.abi
        assert [(a.name, len(a.shape), a.dtype) for a in abi.inputs] == [(a.name, len(a.shape), a.dtype) for a in problem.abi.inputs]
        assert sum(t.numel for t in (*abi.inputs, *abi.parameters, *abi.outputs)) <= MAX_ELEMENTS
        assert variant.work.matmul_flops <= MAX_FLOPS
        assert variant.source == problem.source
        assert variant.id != problem.id
    assert any(size % 2 for size in variants[0].sizes.values())
    assert any(variant.abi.inputs[0].shape[0] == 1 for variant in variants)


def test_all_pairs_of_points_are_few(load: Load) -> None:
    """What operators make in between counts as well: of seven clouds of a thousand points the distances alone are many millions."""
    pairs = "(((a[:, :, None] - b[:, None]) ** 2).sum(-1)).amin(-1)"
    sizes, inputs = "clouds = 8\npoints = 4096\nothers = 2048", "torch.rand(clouds, points, 3), torch.rand(clouds, others, 3)"
    variants = small_variants(load(kernelbench(pairs, sizes, inputs)))
    assert len(variants) >= 3
    assert all(variant.work.pointwise_flops <= MAX_TOUCHED for variant in variants)


def test_products_are_not_square_by_chance(load: Load) -> None:
    """Sizes of different names get different values, so that a transposed operand shows."""
    sizes = small_variants(load(FILES["three sizes"]))[0].sizes
    assert len(set(sizes.values())) == 3


def test_structure_is_kept(load: Load) -> None:
    """Kernel sizes and group counts are not rescaled; channels stay multiples of the groups."""
    assert all("kernel_size" not in variant.sizes for variant in small_variants(load(FILES["image"])))
    for variant in small_variants(load(FILES["groups"])):
        assert "num_groups" not in variant.sizes
        assert variant.sizes["out_features"] % 512 == 0


def test_a_size_that_fits_numbers_of_the_reference_is_kept(load: Load) -> None:
    """A width that is split into parts of fixed widths stays as written; the other sizes become small."""
    split = "torch.cat([part * n for n, part in enumerate(a.split([16, 24, 24], -1))], -1)"
    problem = load(kernelbench(split, "tokens = 2048\nheads = 32\nwidth = 64", "torch.rand(tokens, heads, width)"))
    variants = small_variants(problem)
    assert len(variants) >= 2
    assert all(variant.sizes["width"] == 64 and variant.sizes["tokens"] <= 5 for variant in variants)


def test_sizes_at_which_other_operators_run_are_left_out_where_others_do_not(load: Load) -> None:
    """Steps that double until a length is reached are as many as written in every variant; a loop along a length has its own at each."""
    body = "def f(x):\n    step = 1\n    while step < x.shape[1]:\n        {}\n        step {}= {}\n    return x\n\n"
    made = "ROWS = 512\nLENGTH = 256\n\ndef example_inputs():\n    return (torch.randn(ROWS, LENGTH),)\n"
    doubling = "x = x.view(x.shape[0], -1, 2, step).flip(2).reshape(x.shape[0], -1)"
    assert {v.sizes["LENGTH"] for v in small_variants(load(body.format(doubling, "*", 2) + made))} == {256}
    assert 256 not in {v.sizes["LENGTH"] for v in small_variants(load(body.format("x = x.roll(step, 1)", "+", 1) + made))}


def test_constants_of_the_reference_itself_are_kept(load: Load) -> None:
    """A constant that the reference reads may be written into a candidate, so no variant changes it."""
    source = "ROWS = 512\nWIDTH = 64\n\ndef f(x):\n    return x / WIDTH\n\ndef example_inputs():\n    return (torch.randn(ROWS, WIDTH),)\n"
    assert all(set(variant.sizes) == {"ROWS"} for variant in small_variants(load(source)))


def test_parameter_called_like_a_constant_does_not_use_it(load: Load) -> None:
    """KernelBench names constructor parameters like its constants; that does not tie them."""
    assert all({"in_channels", "height"} <= set(v.sizes) for v in small_variants(load(FILES["image"])))


def test_declared_sizes_replace_the_choice(load: Load) -> None:
    """SMALL_SIZES is taken as it stands."""
    problem = load(FILES["rows and columns"] + "\nSMALL_SIZES = [{'batch_size': 3, 'dim': 77}]\n")
    assert [variant.sizes for variant in small_variants(problem)] == [{"batch_size": 3, "dim": 77}]
    assert describe_sizes(small_variants(problem)[0]) == "batch_size=3, dim=77"


LAYERS = """LAYERS, ROUNDS, ROWS = 4, 24, 4096
SMALL_SIZES = [{"LAYERS": 2, "ROUNDS": 5, "ROWS": 3}, {"LAYERS": 1, "ROUNDS": 6, "ROWS": 16}]


class Model(nn.Module):
    def __init__(self, layers, rounds):
        super().__init__()
        self.gains = nn.ParameterList([nn.Parameter(torch.ones(8)) for _ in range(layers)])
        self.rounds = rounds

    def forward(self, a):
        for gain in self.gains:
            a = torch.tanh(a * gain)
        for _ in range(self.rounds):
            a = torch.sin(a) + 1
        return a


def get_inputs():
    return [torch.randn(ROWS, 8)]


def get_init_inputs():
    return [LAYERS, ROUNDS]
"""


PAIRS = """FIELDS, ROWS = 9, 4096
SMALL_SIZES = [{{"FIELDS": 4, "ROWS": 3}}, {{"FIELDS": 4, "ROWS": 16}}]

def interaction(x):
    total = 0
    for one in range(x.shape[1]):
        {}
    return total

def example_inputs():
    return (torch.randn(ROWS, FIELDS),)
"""


@pytest.mark.parametrize(
    ("step", "kept"),
    [("for two in range(one):\n            total = total + x[:, one] * x[:, two]", True), ("total = total + x[:, one].exp()", False)],
)
def test_pairs_are_no_steps_of_a_loop(load: Load, step: str, kept: bool) -> None:
    """Operators that grow as a square stay as many as written, though one declared size says no more than two numbers of them."""
    own = {} if kept else {"FIELDS": 4}
    assert [variant.sizes for variant in small_variants(load(PAIRS.format(step)))] == [{**own, "ROWS": 3}, {**own, "ROWS": 16}]


def test_declared_sizes_change_no_structure(load: Load) -> None:
    """How many layers there are stays as written: fewer have other operators; a loop may have fewer rounds."""
    assert [variant.sizes for variant in small_variants(load(LAYERS))] == [{"ROUNDS": 5, "ROWS": 3}, {"ROUNDS": 6, "ROWS": 16}]


def test_steps_with_parameters_of_their_own_stay_as_many_as_written(load: Load) -> None:
    """No loop of a kernel reads another parameter at each step: a dozen are written out, though the input has as many columns."""
    source = LAYERS.replace("LAYERS, ROUNDS, ROWS = 4", "LAYERS, ROUNDS, ROWS = 12").replace(
        "torch.randn(ROWS, 8)", "torch.randn(ROWS, LAYERS)"
    )
    source = source.replace("torch.ones(8)", "torch.ones(layers)")
    assert [variant.sizes for variant in small_variants(load(source))] == [{"ROUNDS": 5, "ROWS": 3}, {"ROUNDS": 6, "ROWS": 16}]


def test_a_declared_size_as_written_says_nothing_of_it(load: Load) -> None:
    """Two layers are other operators, though three, as written, are no other ones."""
    source = LAYERS.replace("LAYERS, ROUNDS, ROWS = 4", "LAYERS, ROUNDS, ROWS = 3").replace('{"LAYERS": 1,', '{"LAYERS": 3,')
    assert [variant.sizes for variant in small_variants(load(source))] == [{"ROUNDS": 5, "ROWS": 3}, {"ROUNDS": 6, "ROWS": 16}]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [("[{'rows': 3}]", "names 'rows'"), ("7", "not a list"), ("[{'dim': -1}]", "does not run"), ("[{'dim': 'x'}]", "not a list")],
)
def test_wrong_declared_sizes_are_refused(sizes: str, words: str, load: Load) -> None:
    """SMALL_SIZES that name no constant, are no list of dictionaries or do not run get a UserError."""
    with pytest.raises(UserError, match=words):
        load(FILES["rows and columns"] + f"\nSMALL_SIZES = {sizes}\n")


def test_declared_sizes_that_a_constructor_reads_by_itself_are_refused(load: Load) -> None:
    """A kernel's module, which is built by the same arguments, could not have parameters of those sizes."""
    reads = LAYERS.replace("[LAYERS, ROUNDS]", "[2, 24]").replace("range(layers)", "range(LAYERS)")
    with pytest.raises(UserError, match="not what its constructor is given"):
        load(reads)


def test_no_constants_no_variants(load: Load) -> None:
    """Nothing to vary, nothing invented."""
    problem = load("def f(x):\n    return x + 1\n\ndef example_inputs():\n    return (torch.randn(3, 5),)\n")
    assert small_variants(problem) == ()


def test_variants_are_the_same_every_time(load: Load) -> None:
    """An evaluation is keyed by its variants: they depend on the problem alone."""
    problem = load(FILES["image"])
    assert [v.id for v in small_variants(problem)] == [v.id for v in small_variants(problem)]


CHOSEN = {
    "one of two": "batch = 2048 if FAST else 32\nwidth = 4096",
    "two of four": "batch, width = (2048, 4096) if FAST else (32, 64)",
    "of three": "batch = 2048 if FAST else 64 if not FAST else 32\nwidth = 4096",
    "nested": "(batch, (width,)) = (2048, (4096,))",
    "nested choice": "batch, (width, _) = (2048, (4096, 4)) if FAST else (64, (32, 4))",
    "in a tuple": "shape = (2048 if FAST else 32, 4096)\nbatch, width = shape",
    "a statement": "if FAST:\n    batch, width = 2048, 4096\nelse:\n    batch = 32\n    width = 64",
    "the other branch": "if not FAST:\n    batch, width = 32, 64\nelse:\n    batch, width = 2048, 4096",
}


@pytest.mark.parametrize("name", CHOSEN)
def test_sizes_that_a_condition_chooses_are_varied(name: str, load: Load) -> None:
    """A size that a condition chooses between integers, alone or in tuples, by an expression or a statement, is varied as one constant."""
    source = (
        f"def f(a):\n    return a.sum(1)\n\nFAST = True\n{CHOSEN[name]}\n\ndef example_inputs():\n    return (torch.rand(batch, width),)\n"
    )
    shapes = {variant.abi.inputs[0].shape for variant in small_variants(load(source))}

    assert len(shapes) >= 2
    assert all(rows < 2048 and columns < 2048 for rows, columns in shapes)


def test_sizes_that_do_not_fit_are_tried_once(load: Load) -> None:
    """Whatever kind of variant asks for the same sizes, the reference is run at them once."""
    body = (
        "import sys\nROWS = 60\nCOLUMNS = 1000\n\n"
        "def f(x):\n    return x.view(-1, 25).sum(0)\n\n"
        "def example_inputs():\n"
        "    vars(sys).setdefault('sizes_tried', []).append((ROWS, COLUMNS))\n"
        "    return (torch.randn(ROWS, COLUMNS),)\n"
    )
    problem = load(body)
    vars(sys)["sizes_tried"] = []
    small_variants(problem)
    tried = [sizes for sizes in vars(sys).pop("sizes_tried") if math.prod(sizes) % 25]
    assert tried
    assert len(tried) == len(set(tried))


def test_declared_sizes_that_would_change_operators_are_looked_at_once(load: Load) -> None:
    """Whoever asks for the variants again, as each stage of a trace does, runs the reference at no size."""
    seen = "    __import__('sys').__dict__.setdefault('sizes_run', []).append(ROUNDS)\n"
    problem = load(LAYERS.replace("def get_inputs():\n", "def get_inputs():\n" + seen))
    first = small_variants(problem)
    assert vars(sys).pop("sizes_run")
    assert small_variants(problem) == first
    assert "sizes_run" not in vars(sys)
