"""Bad input: one clear line and its mend."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.errors import UserError
from tools.problems import load_problem
from tools.problems.patience import limit_steps

MODEL = "class Model(nn.Module):\n    def forward(self, x):\n        return {body}\n\n"
INPUTS = "def get_inputs():\n    return [torch.randn(20, 30)]\n\n"
FUNCTION = "def f(x):\n    return {body}\n\ndef example_inputs():\n    return (torch.randn(20, 30),)\n"

CASES = {
    "neither form": ("def helper(x):\n    return x\n", "neither a class Model nor example_inputs"),
    "model without inputs": (MODEL.format(body="x"), "no get_inputs"),
    "inputs without model": (INPUTS, "no class Model"),
    "inputs without function": ("def example_inputs():\n    return (torch.ones(2),)\n", "no public function"),
    "several functions": (
        "def a(x):\n    return x\n\ndef b(x):\n    return x\n\ndef example_inputs():\n    return (torch.ones(2),)\n",
        "a, b",
    ),
    "no module": ("class Model:\n    pass\n\n" + INPUTS, "not a torch.nn.Module"),
    "import fails": ("import no_such_module_anywhere\n" + MODEL.format(body="x") + INPUTS, "ModuleNotFoundError in line 5"),
    "file raises": ("1 / 0\n" + MODEL.format(body="x") + INPUTS, "ZeroDivisionError in line 5"),
    "get_inputs raises": (
        MODEL.format(body="x") + "def get_inputs():\n    return [1 / 0]\n",
        "get_inputs() raised ZeroDivisionError in line 10",
    ),
    "example_inputs raises": (
        "def f(x):\n    return x\n\ndef example_inputs():\n    raise KeyError('rows')\n",
        "example_inputs() raised KeyError in line 9",
    ),
    "get_inputs returns a dictionary": (MODEL.format(body="x") + "def get_inputs():\n    return {'x': 1}\n", "returns dict"),
    "endless inputs": (
        MODEL.format(body="x") + "def get_inputs():\n    while True:\n        yield torch.randn(2)\n",
        "get_inputs() gives more than 256 values",
    ),
    "no finite result": (FUNCTION.format(body="x * float('nan')"), "every output of the reference is NaN or infinite"),
    "wrong shapes, with the line": (MODEL.format(body="x @ x") + INPUTS, "in line 7 (return x @ x): "),
    "nested argument": (
        MODEL.format(body="x") + "def get_inputs():\n    return [[torch.ones(3)]]\n",
        "argument 0 of get_inputs() is a list",
    ),
    "init raises": (
        MODEL.format(body="x") + INPUTS + "def get_init_inputs():\n    return [missing]\n",
        "get_init_inputs() raised NameError in line 13",
    ),
    "init not literal": (MODEL.format(body="x") + INPUTS + "def get_init_inputs():\n    return [nn.ReLU()]\n", "returns more than numbers"),
    "init infinite": (MODEL.format(body="x") + INPUTS + "def get_init_inputs():\n    return [float('inf')]\n", "returns more than numbers"),
    "constructor raises": (MODEL.format(body="x") + INPUTS + "def get_init_inputs():\n    return [1, 2]\n", "Model(…) raised TypeError"),
    "forward raises": (MODEL.format(body="x @ x") + INPUTS, "calling the reference raised RuntimeError in line 7"),
    "set output": (FUNCTION.format(body="{x}"), "returns set, not tensors"),
    "dictionary by tensors": (FUNCTION.format(body="{x: x}"), "returns dict, not tensors"),
    "number within an output": (FUNCTION.format(body="x, {'state': (x, 5)}"), "result[1]['state'][1] of the reference is int"),
    "None alone within an output": (FUNCTION.format(body="[None, {}]"), "no output"),
    "no output": (FUNCTION.format(body="None"), "returns NoneType"),
    "empty tuple": (FUNCTION.format(body="()"), "no output"),
    "empty tensor": (FUNCTION.format(body="x[:0]"), "output 0 of the reference is empty"),
    "complex output": (FUNCTION.format(body="torch.fft.fft(x.double())"), "dtype complex128"),
    "complex argument": (
        "def f(x):\n    return x.real\n\ndef example_inputs():\n    return (torch.ones(3, dtype=torch.complex128),)\n",
        "x has the dtype complex128",
    ),
    "sparse argument": ("def f(x):\n    return x\n\ndef example_inputs():\n    return (torch.eye(3).to_sparse(),)\n", "sparse"),
    "data-dependent output": (FUNCTION.format(body="x[x > 0]"), "depends on the contents"),
    "random": (FUNCTION.format(body="x + torch.rand(3, 1, 1)"), "aten.rand.default"),
    "dropout": (FUNCTION.format(body="F.dropout(x, 0.5)"), "not deterministic"),
    "calls exit": ("def f(x):\n    raise SystemExit(3)\n\ndef example_inputs():\n    return (torch.ones(3),)\n", "SystemExit"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_source_gets_one_line_and_a_mend(case: str, write: Callable[..., Path]) -> None:
    """Whatever is wrong with a file is said with the file's name, in one line, and how to mend it."""
    body, words = CASES[case]
    with pytest.raises(UserError) as caught:
        load_problem(write(body))
    assert words in caught.value.what
    assert "problem.py" in caught.value.what
    assert "\n" not in caught.value.what + caught.value.mend
    assert caught.value.mend.endswith((".", "trace."))


RETURNED = {
    "a dataclass": ("@dataclasses.dataclass\nclass Output:\n    y: torch.Tensor\n\n", "Output(x)", "class Output(NamedTuple)"),
    "a dictionary's subclass": ("class Output(dict):\n    pass\n\n", "Output(y=x)", "`dict(…)`"),
    "a dictionary by tensors": ("", "{x: x}", "keys: strings or whole numbers"),
}


@pytest.mark.parametrize("case", RETURNED)
@pytest.mark.parametrize("within", ["{}", "(x, {{'found': {}}})"])
def test_a_result_of_another_class_is_told_what_to_be_instead(case: str, within: str, write: Callable[..., Path]) -> None:
    """Of a dataclass, which ModelOutput of transformers is as well, a NamedTuple keeps the fields; so it is inside of others."""
    head, body, words = RETURNED[case]
    with pytest.raises(UserError) as caught:
        load_problem(write("import dataclasses\n" + head + FUNCTION.format(body=within.format(body))))
    assert words in caught.value.mend
    assert "\n" not in caught.value.mend


CHANGING = {
    "a number": ("self.calls = 0", "self.calls += 1", "x + self.calls", "in calls.", "Keep calls in a buffer, by `self.register_buffer`,"),
    "a list": ("self.seen = []", "self.seen.append(x)", "x * len(self.seen)", "in seen.", "or take it as an argument of forward."),
    "many": (
        "self.first, self.second, self.third, self.fourth, self.fifth = [0], [0], [0], [0], [0]",
        "[each.append(1) for each in (self.first, self.second, self.third, self.fourth, self.fifth)]",
        "x * len(self.first)",
        "in first, second, third and 2 more.",
        "Keep these in buffers",
    ),
    "in training": (
        "self.seen = [0]",
        "self.training and self.seen.append(1)",
        "x * len(self.seen)",
        "in seen.",
        "as an argument of forward, or end the constructor with self.eval(): only training changes it.",
    ),
}
KEPT = {
    "a buffer": ("self.register_buffer('mean', torch.zeros(30))", "self.mean.mul_(0.9).add_(x.mean(0))", "x - self.mean", ("mean",)),
    "one that is replaced": ("self.register_buffer('mean', torch.zeros(30))", "self.mean = self.mean * 0.9", "x - self.mean", ("mean",)),
    "a part's": (
        "self.inner = nn.Linear(30, 30)",
        "self.inner.weight.mul_(0.9), self.inner.bias.add_(1.0)",
        "self.inner(x)",
        ("inner.weight", "inner.bias"),
    ),
    "statistics of its own": (
        "self.register_buffer('running_mean', torch.zeros(30))",
        "self.running_mean.lerp_(x.mean(0), 0.1)",
        "x - self.running_mean",
        ("running_mean",),
    ),
    "running statistics": ("self.norm = nn.BatchNorm1d(30)", "y = self.norm(x)", "y", ()),
}


def stateful(made: str, changed: str, returned: str) -> str:
    """Write a module whose calls change something."""
    return (
        f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {made}\n\n"
        f"    @torch.no_grad()\n    def forward(self, x):\n        {changed}\n        return {returned}\n\n{INPUTS}"
    )


@pytest.mark.parametrize("case", CHANGING)
def test_state_between_calls_is_named(case: str, write: Callable[..., Path]) -> None:
    """A module whose outputs follow what its calls change in Python is no function of its inputs; it says where that may be kept."""
    made, changed, returned, where, mend = CHANGING[case]
    with pytest.raises(UserError, match="keeps state between calls") as caught:
        load_problem(write(stateful(made, changed, returned)))
    assert f"it keeps state between calls, {where}" in str(caught.value)
    assert mend in caught.value.mend


@pytest.mark.parametrize("case", KEPT)
def test_state_in_buffers_is_an_output(case: str, write: Callable[..., Path]) -> None:
    """What a call leaves in buffers and parameters can be put back, and is judged; running statistics of PyTorch's norms are not."""
    made, changed, returned, updated = KEPT[case]
    abi = load_problem(write(stateful(made, changed, returned))).abi
    assert abi.updated == updated
    assert [spec.name for spec in abi.outputs] == ["output0", *(f"written_{name}" for name in updated)]


def test_missing_file_folder_and_other_files(tmp_path: Path) -> None:
    """A path that is no Python file is refused before anything is run."""
    text = tmp_path / "notes.txt"
    text.write_text("x")
    binary = tmp_path / "binary.py"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, words in ((tmp_path / "none.py", "no file"), (tmp_path, "is a folder"), (text, "not a Python file"), (binary, "not UTF-8")):
        with pytest.raises(UserError, match=words):
            load_problem(path)


def test_syntax_error_names_its_line(write: Callable[..., Path]) -> None:
    """The line of a syntax error is the line in the user's file."""
    with pytest.raises(UserError, match="syntax error in line 6"):
        load_problem(write("x = 1\ndef f(:\n    pass\n"))


def test_wrong_entry_lists_what_there_is(write: Callable[..., Path]) -> None:
    """An entry that the file does not define gets the names that it does."""
    with pytest.raises(UserError) as caught:
        load_problem(write(FUNCTION.format(body="x")), entry="g")
    assert "f" in caught.value.mend


def test_inputs_that_never_end_are_named_with_their_line(write: Callable[..., Path]) -> None:
    """A `get_inputs` that loops for ever is given up, whatever it catches, and the line that it was in is named."""
    loop = "def get_inputs():\n    while True:\n        try:\n            i = 0\n            while i >= 0:\n                i += 1\n"
    body = MODEL.format(body="x") + loop + "        except Exception:\n            pass\n"
    limit_steps(0.2)
    spent = time.process_time()
    try:
        with pytest.raises(UserError, match=r"get_inputs\(\) does not end: it had not ended after 0.2 s in line 1[3-5] "):
            load_problem(write(body))
        # tried once: a second time would take as long for nothing
        assert time.process_time() - spent < 0.5
    finally:
        limit_steps(0)


def test_steps_that_end_are_not_limited(write: Callable[..., Path]) -> None:
    """No alarm is left behind by a file that is read in time."""
    limit_steps(60)
    try:
        load_problem(write(FUNCTION.format(body="x * 2")))
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        limit_steps(0)
