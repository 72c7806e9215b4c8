"""The candidates that are fastest at each shape become one more, which is judged and delivered like the others."""

import asyncio
from pathlib import Path

from graphs.optimize.joining import JOINER, join_best
from graphs.run.context import Services
from graphs.run.judge import judge
from tests.support.loop import TextPool, small_services
from tools.evaluation.weighted import evaluate_shapes
from tools.records import ROOT, Action, ActionKind, Candidate, Evaluation, EvaluationRequest, ProblemShape, TensorSpec

SOURCE = "# {times}\nclass ModelNew:\n    def forward(self, x):\n        return x\n"


class ShapesPool(TextPool):
    """Says of a source that names `small 3` that it takes 3 µs at the shape `small`; of a joined one the best of both."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge at each shape."""
        return await evaluate_shapes(self._at, request)

    async def _at(self, request: EvaluationRequest) -> Evaluation:
        shape = next(iter(request.problem.sizes))
        times = [float(line.split(f"{shape} ")[1].split()[0]) for line in request.source.splitlines() if line.startswith("# ")]
        wrong = "# verdict: WRONG\n" if "wrong" in request.source else ""
        return await super().evaluate(request.model_copy(update={"source": f"# time: {min(times)}\n{wrong}"}))


def opened(folder: Path) -> Services:
    """A run on a problem with two shapes."""
    services = small_services(folder)
    shapes = []
    for name, rows in (("small", 1), ("large", 1024)):
        x = TensorSpec(name="x", shape=(rows, 1024), dtype="float32")
        abi = services.problem.abi.model_copy(update={"arguments": (x,), "outputs": (x,)})
        shapes.append(ProblemShape(name=name, weight=1.0, sizes={name: rows}, abi=abi, work=services.problem.work))
    services.problem = services.problem.model_copy(update={"shapes": tuple(shapes)})
    services.pool = ShapesPool(folder / "evaluations.log")
    return services


def judged(services: Services, *times: str) -> list[str]:
    """Keep and judge a candidate for each."""
    names = []
    for each in times:
        action = Action(kind=ActionKind.TILING, region="r0")
        one = Candidate(problem=services.problem.id, parent=ROOT, action=action, source=SOURCE.format(times=each), coder="builtin")
        services.store.put_candidate(one)
        asyncio.run(judge(services, services.request(one)))
        names.append(one.id)
    return names


def test_two_candidates_that_are_best_at_different_shapes_become_one(tmp_path: Path) -> None:
    """It takes the best time at each, and says which candidate serves what."""
    services = opened(tmp_path / "run")
    one, other = judged(services, "small 10 large 80", "small 30 large 40")
    name = asyncio.run(join_best(services))
    found = services.evaluation(name)
    assert found is not None
    assert [shape.evaluation.time_us for shape in found.shapes] == [10.0, 40.0]
    assert services.candidate(name).coder == JOINER
    assert f"small by {one[:6]}, large by {other[:6]}" in services.candidate(name).notes[0]


def test_nothing_is_joined_where_one_candidate_is_best_everywhere(tmp_path: Path) -> None:
    """Nor where the other is faster by less than the noise, or not right."""
    services = opened(tmp_path / "run")
    judged(services, "small 10 large 40", "small 30 large 39.9", "small 1 large 1 wrong")
    assert asyncio.run(join_best(services)) == ""
    assert all(one.coder == "builtin" for one in map(services.candidate, services.store.names("candidate")))


def test_a_problem_of_one_shape_joins_nothing(tmp_path: Path) -> None:
    """Its candidates have no shapes to be better at."""
    services = small_services(tmp_path / "run")
    assert asyncio.run(join_best(services)) == ""
