"""The evidence that a run keeps of what it confirmed."""

from __future__ import annotations

from pathlib import Path

from graphs.optimize.confirm import deliver
from graphs.optimize.evidence import evidence_folder
from graphs.run.context import Services
from graphs.run.judge import judge
from tests.support.loop import EAGER_US, small_services
from tools.evidence import damages, read_bundle
from tools.evidence.bundle import candidate_id
from tools.guards import unguarded
from tools.records import ROOT, Action, ActionKind, Candidate


async def _candidate(services: Services, text: str) -> str:
    action = Action(kind=ActionKind.TILING, region="r0")
    candidate = Candidate(problem=services.problem.id, parent=ROOT, action=action, source=text, coder="test")
    services.store.put_candidate(candidate)
    await judge(services, services.request(candidate))
    return candidate.id


async def test_a_confirmed_candidate_comes_with_a_bundle(tmp_path: Path) -> None:
    """The bundle of what is delivered is whole, and holds the confirming evaluation under the name of the file with its guard."""
    services = small_services(tmp_path / "run")
    name = await _candidate(services, "# time: 40.0\n")
    delivery = await deliver(services, [name], "budget")
    folder = evidence_folder(services.store.folder, delivery.candidate)
    assert damages(folder) == ()
    bundle = read_bundle(folder)
    kernel = services.guarded(services.candidate(name))
    assert (bundle.stage, bundle.kernel, bundle.evaluation.candidate) == ("confirm", kernel, candidate_id(services.problem, kernel))
    assert unguarded(kernel) == "# time: 40.0\n"
    assert bundle.origin.run == services.run


async def test_a_bundle_that_was_written_stays(tmp_path: Path) -> None:
    """A run that was cut short between evidence and delivery writes neither twice."""
    services = small_services(tmp_path / "run")
    name = await _candidate(services, "# time: 40.0\n")
    await deliver(services, [name], "budget")
    folder = evidence_folder(services.store.folder, name)
    before = (folder / "manifest.json").read_bytes()
    services.store._db.execute("DELETE FROM records WHERE kind = 'delivery'")
    await deliver(services, [name], "budget")
    assert (folder / "manifest.json").read_bytes() == before


async def test_where_the_reference_is_kept_there_is_no_bundle(tmp_path: Path) -> None:
    """A candidate that was never confirmed leaves no evidence folder behind."""
    services = small_services(tmp_path / "run")
    name = await _candidate(services, f"# time: {2 * EAGER_US}\n")
    delivery = await deliver(services, [name], "budget")
    assert delivery.candidate == ROOT
    assert not (services.store.folder / "evidence").exists()


async def test_of_equals_the_first_is_delivered(tmp_path: Path) -> None:
    """A later candidate that is no faster, such as a step that changed nothing, does not take the place of the one it came from."""
    services = small_services(tmp_path / "run")
    names = [await _candidate(services, f"# time: 40.0\n# take: {number}\n") for number in range(4)]
    assert names != sorted(names)
    assert (await deliver(services, names, "budget")).candidate == names[0]
    assert names[0] != min(names)
