"""What is worth the work: shares of the time against the roofline, nothing twice, the budget where most can be gained."""

from __future__ import annotations

from tools.hardware import load_sheet
from tools.models.choosing.choice import choose, choose_instead, compiled_calls
from tools.models.records import TENSOR, Capture, Group, Input, Output, Trace
from tools.records import ABI, DEFAULT_POLICY, OperatorFamily, TensorSpec, Work

MIB = 1 << 20


def group(name: str, paths: tuple[str, ...], share: float, us: float, mib: int = 8) -> Group:
    """A pointwise group that moves twice `mib` MiB, and takes `us` microseconds a call."""
    x = TensorSpec(name="x", shape=(mib * MIB // 4,), dtype="float32")
    work = Work(
        operators=("aten.exp.default",) * 3,
        families=(OperatorFamily.POINTWISE,),
        matmul_flops=0,
        pointwise_flops=x.numel,
        eager_bytes=6 * x.nbytes,
    )
    trace = Trace(
        source="",
        structure=[[TENSOR], {}],
        result=TENSOR,
        inputs=(Input(name="x", shape=x.shape, dtype="float32", contiguous=True),),
        outputs=(Output(shape=("x.shape[0]",), dtype="float32"),),
        parameters={},
        abi=ABI(arguments=(x,), outputs=(x,)),
        work=work,
    )
    return Group(name=name, title=name, paths=paths, config="", calls={"a": 1}, us=us, share=share, operators=3, trace=trace)


def chosen(*groups: Group, budget: int = 4, most: int = 6, measured: bool = True) -> dict[str, tuple[int, str]]:
    """Budget and reason by group."""
    found = Capture(title="M", clock="", us={"a": 1.0}, weights={"a": 1.0}, modules=1, groups=groups)
    rows = choose(found, load_sheet("h200"), DEFAULT_POLICY, budget=budget, most=most, measured=measured)
    return {row.group: (row.budget, row.why_not) for row in rows}


def test_the_budget_goes_where_most_time_can_be_saved() -> None:
    """Twelve evaluations of three are spread by what each could save of the whole time."""
    found = chosen(group("large", ("a",), 0.6, 100.0), group("small", ("b",), 0.1, 100.0))
    assert found["large"][0] > 3 * found["small"][0] - 2
    assert found["small"][0] >= 2


def test_what_is_near_the_roofline_is_not_worth_a_run() -> None:
    """A large share of the time is nothing where the device can do no better."""
    assert chosen(group("near", ("a",), 0.9, 6.7)) == {"near": (0, "too little to gain")}


def test_nothing_is_worked_on_twice() -> None:
    """Of a module and the modules inside of it, that with the larger gain is chosen."""
    found = chosen(group("outer", ("block",), 0.5, 100.0), group("inner", ("block.norm", "norm"), 0.3, 100.0))
    assert found["outer"][0] > 0
    assert found["inner"] == (0, "in or around outer")


def test_names_that_only_begin_alike_do_not_overlap() -> None:
    """`layer.10` does not lie in `layer.1`."""
    found = chosen(group("one", ("layer.1",), 0.3, 100.0), group("ten", ("layer.10",), 0.3, 100.0))
    assert all(budget for budget, _ in found.values())


def test_other_shapes_of_a_module_are_worked_on_too() -> None:
    """What a workload calls in one shape and another in another are two operators, and neither shuts the other out."""
    rows, row = group("rows", ("norm",), 0.3, 100.0), group("row", ("norm",), 0.3, 100.0)
    inner = group("inner", ("norm.part",), 0.2, 100.0).model_copy(update={"calls": {"b": 1}})
    assert all(budget for budget, _ in chosen(rows, row, inner).values())


def test_no_more_than_so_many_are_chosen() -> None:
    """The rest says that it was not among the first."""
    found = chosen(group("one", ("a",), 0.4, 100.0), group("two", ("b",), 0.3, 100.0), most=1)
    assert found["two"] == (0, "not among the first 1")


def test_without_the_target_the_cost_model_says_how_long_a_call_takes() -> None:
    """A CPU's microseconds say nothing about a GPU: the estimate of eager execution does."""
    assert chosen(group("slow here", ("a",), 0.9, 1e6), measured=False)["slow here"][0] > 0


def test_a_module_is_chosen_over_its_parts_only_where_it_promises_clearly_more() -> None:
    """Else the parts are the surer work; where nothing comes of what was chosen, the others take its place."""
    inner = [group("one", ("block.one",), 0.3, 100.0), group("two", ("block.two",), 0.25, 100.0)]
    found = chosen(group("outer", ("block",), 0.6, 100.0), *inner)
    assert found["outer"] == (0, "in or around one")
    assert found["one"][0] > 0
    assert found["two"][0] > 0
    sheet = load_sheet("h200")
    whole = Capture(
        title="M", clock="", us={"a": 1.0}, weights={"a": 1.0}, modules=1, groups=(group("outer", ("block",), 0.9, 100.0), *inner)
    )
    rows = choose(whole, sheet, DEFAULT_POLICY, budget=4, most=6, measured=True)
    assert [(row.group, row.instead) for row in rows if row.budget] == [("outer", ("one", "two"))]


def test_what_lies_in_an_operator_that_was_taken_out_gets_its_evaluations() -> None:
    """A layer's eight go to the two modules in it, four each; with one of them tried, all to the other."""
    inner = (group("one", ("block.one",), 0.3, 100.0), group("two", ("block.two",), 0.2, 100.0))
    groups = (group("outer", ("block",), 0.9, 100.0), *inner)
    whole = Capture(title="M", clock="", us={"a": 1.0}, weights={"a": 1.0}, modules=1, groups=groups)
    rows = choose(whole, load_sheet("h200"), DEFAULT_POLICY, budget=8, most=6, measured=True)
    both = choose_instead(rows, groups, gone=["outer"], kept=[], tried=["outer"])
    assert {row.group: (row.budget, row.why_not) for row in both} == {"one": (4, ""), "two": (4, "")}
    assert {row.group: row.budget for row in choose_instead(rows, groups, gone=["outer"], kept=[], tried=["outer", "one"])} == {"two": 8}


def test_nothing_takes_the_place_of_an_operator_inside_of_one_that_is_kept() -> None:
    """Two operators would stand in each other's way."""
    inner = (group("one", ("block.one",), 0.3, 100.0), group("two", ("block.two",), 0.2, 100.0))
    groups = (group("outer", ("block",), 0.3, 100.0), *inner)
    whole = Capture(title="M", clock="", us={"a": 1.0}, weights={"a": 1.0}, modules=1, groups=groups)
    rows = choose(whole, load_sheet("h200"), DEFAULT_POLICY, budget=8, most=6, measured=True)
    assert [row.group for row in rows if row.budget] == ["one", "two"]
    assert choose_instead(rows, groups, gone=["one"], kept=["two"], tried=["one", "two"]) == ()


def test_one_shape_of_several_that_no_one_kernel_can_serve_is_marked() -> None:
    """The table says so beside its name."""
    alone = group("row", ("a",), 0.5, 100.0).model_copy(update={"apart": "it branches"})
    whole = Capture(title="M", clock="", us={"a": 1.0}, weights={"a": 1.0}, modules=1, groups=(alone, group("rows", ("a",), 0.4, 100.0)))
    rows = choose(whole, load_sheet("h200"), DEFAULT_POLICY, budget=8, most=6, measured=True)
    assert {row.group: row.apart for row in rows} == {"row": True, "rows": False}


def test_a_compiler_does_no_better_than_what_can_be_hoped_for() -> None:
    """Pointwise operators are one kernel to it, so that nothing of them is left to a run."""
    one = group("pointwise", ("a",), 0.9, 20.0)
    found = Capture(title="M", clock="", us={"a": 1.0}, weights={"a": 1.0}, modules=1, groups=(one,))
    sheet = load_sheet("h200")
    compiled = compiled_calls(found, sheet, DEFAULT_POLICY)
    [row] = choose(found, sheet, DEFAULT_POLICY, budget=4, most=6, measured=True, compiled=compiled)
    assert compiled["pointwise"].compiled_us >= row.reach_us
    assert row.why_not == "torch.compile would gain as much, estimated"
    assert row.compiled_us < row.us
