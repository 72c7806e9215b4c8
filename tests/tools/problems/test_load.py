"""What a loaded problem says of a file."""

import ast
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tools.errors import UserError
from tools.problems import load_problem, open_problem, problem_notes, reload_problem, with_changing_weights
from tools.problems.source import entry_to_name
from tools.records import OperatorFamily, PrecisionPolicy, Problem, ProblemForm, ScalarSpec, TensorSpec

Load = Callable[..., Problem]

PLUS_ONE = "def f(x):\n    return x + 1\n\ndef example_inputs():\n    return (torch.randn(20, 30),)\n"

LINEAR = """
class Model(nn.Module):
    def __init__(self, in_features, out_features, low):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.register_buffer("shift", torch.randn(out_features))
        self.low = low

    def forward(self, x, residual):
        return torch.clamp(self.linear(x) + self.shift, self.low) + residual

batch_size = 32
in_features, out_features = 64, 48

def get_inputs():
    return [torch.randn(batch_size, in_features), torch.randn(batch_size, out_features)]

def get_init_inputs():
    return [in_features, out_features, -0.5]
"""


def test_kernelbench_file_gives_its_abi(load: Load) -> None:
    """Arguments are named as in forward, parameters and buffers come in state-dict order and are not dynamic."""
    abi = load(LINEAR).abi
    assert [(a.name, a.shape, a.dynamic) for a in abi.inputs] == [("x", (32, 64), True), ("residual", (32, 48), True)]
    assert [(p.name, p.shape, p.dynamic) for p in abi.parameters] == [
        ("shift", (48,), False),
        ("linear.weight", (48, 64), False),
        ("linear.bias", (48,), False),
    ]
    assert [(o.name, o.shape, o.dtype) for o in abi.outputs] == [("output0", (32, 48), "float32")]
    assert ast.literal_eval(abi.init) == [64, 48, -0.5]
    assert abi.training


def test_kernelbench_file_gives_its_work(load: Load) -> None:
    """Operators are listed in order without views, products counted with two operations a multiply-add."""
    work = load(LINEAR).work
    assert work.operators == ("aten.addmm.default", "aten.add.Tensor", "aten.clamp.default", "aten.add.Tensor")
    assert work.families == (OperatorFamily.POINTWISE, OperatorFamily.MATMUL)
    assert work.matmul_flops == 2 * 32 * 64 * 48
    assert work.pointwise_flops == 3 * 32 * 48
    activation, weights = 32 * 48, 48 + 48 * 64
    # addmm reads bias, x and weight; both additions read two tensors, one of them the shift of 48
    assert work.eager_bytes == 4 * ((weights + 32 * 64 + activation) + (2 * activation + 48) + 2 * activation + 3 * activation)


def test_function_file(load: Load) -> None:
    """A plain function with scalars among its arguments is a problem without parameters."""
    problem = load(
        "def scale(x, factor, mode):\n    return x * factor\n\ndef example_inputs():\n    return torch.randn(40, 50), 2.5, 'up'\n"
    )
    assert problem.form is ProblemForm.FUNCTION
    assert problem.entry == "scale"
    assert problem.abi.arguments == (
        TensorSpec(name="x", shape=(40, 50), dtype="float32"),
        ScalarSpec(name="factor", value=2.5),
        ScalarSpec(name="mode", value="up"),
    )
    assert problem.abi.parameters == ()
    assert not problem.abi.training


def test_entry_picks_among_functions(load: Load) -> None:
    """Of several public functions the named one is taken, or the one called like the file."""
    source = "def a(x):\n    return x + 1\n\ndef b(x):\n    return a(x) * 2\n\ndef example_inputs():\n    return (torch.randn(20, 30),)\n"
    assert load(source, entry="b").entry == "b"
    assert load(source, name="a.py").entry == "a"
    assert load(source, name="a.py", entry="b").id != load(source, name="a.py").id


def test_function_that_no_other_calls_is_the_reference(load: Load) -> None:
    """Of several public functions the only one that nothing else in the file calls is taken; its helpers need no underscore."""
    source = "def root(x):\n    return x.sqrt()\n\ndef norm(x):\n    twice = root(x) * 2\n    return twice\n\n"
    inputs = "def noise(n):\n    return torch.randn(n, 30)\n\ndef example_inputs():\n    return (noise(20),)\n"
    assert load(source + inputs).entry == "norm"


def test_functions_that_call_none_of_each_other_are_named_in_the_error(load: Load) -> None:
    """Where two public functions could be meant nothing is guessed; a variable called like one is no call of it."""
    source = "def root(x):\n    norm = x.sqrt()\n    return norm\n\ndef norm(x):\n    return x * 2\n\n"
    with pytest.raises(UserError, match="several public functions: norm, root"):
        load(source + "def example_inputs():\n    return (torch.randn(20, 30),)\n")


def test_several_outputs_are_flattened_in_order(load: Load) -> None:
    """A tuple of tensors gives as many outputs, of their own dtypes and shapes."""
    problem = load("def top(x):\n    return torch.max(x, dim=1)\n\ndef example_inputs():\n    return (torch.randn(20, 30),)\n")
    assert [(o.name, o.shape, o.dtype) for o in problem.abi.outputs] == [("output0", (20,), "float32"), ("output1", (20,), "int64")]


def test_large_problem_loads_without_its_memory(load: Load) -> None:
    """A softmax of six gigabytes is read without contents, in about a second."""
    start = time.monotonic()
    problem = load(
        "class Model(nn.Module):\n    def forward(self, x):\n        return torch.softmax(x, dim=1)\n\n"
        "batch_size = 4096\ndim = 393216\n\ndef get_inputs():\n    return [torch.rand(batch_size, dim)]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    assert problem.abi.inputs[0].nbytes == 4096 * 393216 * 4
    assert problem.work.eager_bytes == 2 * problem.abi.inputs[0].nbytes
    assert time.monotonic() - start < 20


def test_reference_that_needs_contents_is_really_run(load: Load) -> None:
    """A reference that reads a value of a tensor cannot run without contents, and is loaded all the same."""
    problem = load("def f(x):\n    return x / x.abs().max().item()\n\ndef example_inputs():\n    return (torch.randn(20, 30),)\n")
    assert problem.abi.outputs[0].shape == (20, 30)
    assert "aten.div.Tensor" in problem.work.operators


def test_selection_inside_is_fine_where_outputs_keep_their_shape(load: Load) -> None:
    """An intermediate of unknown size is no obstacle."""
    problem = load("def f(x):\n    return x[x > 0].sum()\n\ndef example_inputs():\n    return (torch.randn(20, 30),)\n")
    assert problem.abi.outputs[0].shape == ()


def test_missing_init_inputs_mean_no_arguments(load: Load) -> None:
    """A Model without arguments needs no get_init_inputs."""
    model = "class Model(nn.Module):\n    def forward(self, x):\n        return x.exp()\n\n"
    problem = load(model + "def get_inputs():\n    return [torch.randn(20, 30)]\n")
    assert problem.abi.init == "[]"


def test_policy_is_part_of_the_identity(write: Callable[..., Path]) -> None:
    """The same file under another precision policy is another problem."""
    path = write(PLUS_ONE, "My Operator-2.py")
    exact, loose = load_problem(path), load_problem(path, PrecisionPolicy(name="tf32"))
    assert exact.id != loose.id
    assert exact.name == "my_operator_2"


def test_default_dtype_of_a_file_stays_in_it(load: Load) -> None:
    """A file may set the default dtype for its own tensors; the next file does not see it."""
    load("torch.set_default_dtype(torch.float64)\n\n" + PLUS_ONE)
    later = load(PLUS_ONE)
    assert later.abi.inputs[0].dtype == "float32"


def test_notes_say_what_weakens_a_check(load: Load) -> None:
    """Constant inputs and outputs that ignore the inputs are noted, an ordinary problem has no notes."""
    same = load("def f(x):\n    return x + 1\n\ndef example_inputs():\n    return (torch.ones(20, 30),)\n")
    assert "same under every seed" in problem_notes(same)[0]
    zero = load("def f(x):\n    return x - x\n\ndef example_inputs():\n    return (torch.randn(20, 30),)\n")
    assert "do not depend" in problem_notes(zero)[0]
    assert problem_notes(load(PLUS_ONE)) == ()


def test_a_file_may_say_that_its_weights_change(load: Load, write: Callable[..., Path]) -> None:
    """WEIGHTS_CHANGE makes parameters dynamic; said from outside it makes another problem, which a reload keeps; a number is refused."""
    fixed = load(LINEAR)
    assert all(spec.dynamic for spec in load(f"{LINEAR}\nWEIGHTS_CHANGE = True\n").abi.parameters)
    changing = with_changing_weights(fixed)
    assert changing.id != fixed.id
    assert all(spec.dynamic for spec in reload_problem(changing).abi.parameters)
    with pytest.raises(UserError, match="WEIGHTS_CHANGE in"):
        load_problem(write(f"{LINEAR}\nWEIGHTS_CHANGE = 1\n"))


def test_a_byte_order_mark_is_no_part_of_a_file(write: Callable[..., Path]) -> None:
    """Files that an editor saved with a byte order mark are read like any other."""
    path = write(PLUS_ONE)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_problem(path).source.startswith("import torch")


def test_inputs_may_be_yielded(load: Load) -> None:
    """A generator gives the arguments of one call, drawn under the seed as those of a list are."""
    yielded = load(PLUS_ONE.replace("return (torch.randn(20, 30),)", "yield torch.randn(20, 30)"))
    first, again, other = (open_problem(yielded).inputs(seed)[0] for seed in (1, 1, 2))
    assert isinstance(first, torch.Tensor)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_results_that_are_partly_undefined_are_noted(load: Load) -> None:
    """A reference that gives NaN in places can be judged, and its user hears of it."""
    notes = problem_notes(load(PLUS_ONE.replace("return x + 1", "return torch.sqrt(x)")))
    assert any("is NaN in" in note for note in notes)


def test_a_file_without_small_variants_is_told_how_to_name_some(load: Load) -> None:
    """Where no small size can be derived, the note names SMALL_SIZES."""
    notes = problem_notes(load("def f(x):\n    return x + 1\n\ndef example_inputs():\n    return (torch.randn(3, 5),)\n"))
    assert any("SMALL_SIZES" in note for note in notes)


def test_a_reference_is_named_where_its_file_does_not_tell_it() -> None:
    """Among several functions a command has to name the reference; the only one, or the one called like the file, it has not."""
    one, makes = "def twice(x): return x * 2\n", "def example_inputs(): return []\n"
    two = one + "def thrice(x): return x * 3\n" + makes
    assert entry_to_name(one + makes, "f.py", "twice") == ""
    assert entry_to_name(two, "twice.py", "twice") == ""
    assert entry_to_name(two, "f.py", "twice") == "twice"
