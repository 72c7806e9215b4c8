"""The report's figures, worked out again by hand on synthetic rows that were measured nowhere."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from kernelwright.bench.figures import GroupFigures, Means
from kernelwright.bench.pages import write_report
from kernelwright.bench.report import Report, make_report
from kernelwright.bench.row import Status
from tests.kernelwright.bench.rows import gathered, kernel, row

ROWS = (
    kernel("level1/1_a", 12.5, [1.0, 4.0]),
    kernel("level1/2_b", 25.0, [2.0]),
    row("level1/3_c"),
    row("level1/4_d", status=Status.NOT_JUDGEABLE, run="", basis="none", tier="", curve=(), baselines_us={}, floor_us=0.0),
)
"""Two kernels, 4 and 2 times the better baseline (8 and 4 times eager), one kept reference, one that draws random numbers."""


def _group(report: Report, title: str) -> GroupFigures:
    return next(group for group in report.sections[0].arms[0].groups if group.title == title)


def _means(group: GroupFigures, against: str) -> Means:
    return next(one for one in group.means if one.against == against)


def test_a_problem_without_a_win_counts_as_one() -> None:
    """Against eager 8, 4, 1, 1: geomean 32^(1/4), mean 3.5; with the problems without a win at 0, 12 / 4."""
    means = _means(_group(make_report(gathered(*ROWS)), "level 1"), "eager")
    assert means.geomean == pytest.approx(32 ** (1 / 4))
    assert means.arithmetic == pytest.approx(3.5)
    assert means.zeroed == pytest.approx(3.0)


def test_the_better_baseline_is_the_faster_of_the_two() -> None:
    """Against the better of eager and torch.compile: 4, 2, 1, 1."""
    group = _group(make_report(gathered(*ROWS)), "level 1")
    assert _means(group, "better").geomean == pytest.approx(8 ** (1 / 4))
    assert _means(group, "better").fast == {"1": 0.5, "1.1": 0.5, "1.5": 0.5, "2": 0.25, "4": 0.0}


def test_flags_of_another_policy_have_means_of_their_own() -> None:
    """A kernel of 12.5 µs beside 100 and 75 µs under exact counts 6, a kept reference 1; the better baseline is of the policy's flags."""
    rows = [kernel("level1/1_a", 12.5, other_baselines_us={"exact": {"eager": 100.0, "compile": 75.0}}), row("level1/3_c")]
    group = _group(make_report(gathered(*rows)), "level 1")
    assert [one.against for one in group.means] == ["eager", "compile", "better", "flags of exact"]
    assert _means(group, "flags of exact").geomean == pytest.approx(math.sqrt(6.0))
    assert _means(group, "better").geomean == pytest.approx(math.sqrt(4.0))


def test_who_has_a_faster_baseline_keeps_it() -> None:
    """A kernel that was delivered against eager alone counts 2 against eager, and 1 against the torch.compile that it does not beat."""
    group = _group(make_report(gathered(kernel("level1/1_a", 100 / 2.0, [1.0]), kernel("level1/2_b", 25.0, [2.0]))), "level 1")
    slower = _group(make_report(gathered(kernel("level1/1_a", 100 / 1.6, [0.8]), kernel("level1/2_b", 25.0, [2.0]))), "level 1")
    assert _means(slower, "compile").geomean == pytest.approx(_means(group, "compile").geomean) == pytest.approx(math.sqrt(2.0))
    assert _means(slower, "eager").geomean == pytest.approx(math.sqrt(1.6 * 4.0))


def test_every_problem_is_counted_by_how_it_ended() -> None:
    """Right, delivered, kept and not judgeable add up to what was asked for."""
    group = _group(make_report(gathered(*ROWS)), "level 1")
    assert (group.rows, group.right, group.delivered, group.reference, group.not_judgeable, group.failed) == (4, 2, 2, 1, 1, 0)


def test_development_and_held_out_problems_are_apart() -> None:
    """Numbers that leave 1 by 3 are development: 1 and 4 of four."""
    report = make_report(gathered(*ROWS))
    assert _group(report, "level 1, development").problems == 2
    assert _means(_group(report, "level 1, held out"), "eager").geomean == pytest.approx(math.sqrt(4.0))


def test_distance_to_the_roofline_is_of_what_the_user_ends_with() -> None:
    """Floors of 10 µs over 12.5, 25 and, the reference being kept, 50 µs."""
    group = _group(make_report(gathered(*ROWS)), "level 1")
    assert group.of_roofline == pytest.approx((0.8 * 0.4 * 0.2) ** (1 / 3))
    assert group.baseline_of_roofline == pytest.approx(0.2)


def test_the_share_of_the_gain_comes_from_the_curves() -> None:
    """After one evaluation ln 2 of ln 4 + ln 2 is reached, after four all of it."""
    shares = _group(make_report(gathered(*ROWS)), "level 1").shares
    assert shares["1"] == pytest.approx(1 / 3)
    assert shares["4"] == pytest.approx(1.0)


def test_marked_problems_are_shown_apart() -> None:
    """What admission holds against a problem gives it a line and a group of its own."""
    report = make_report(gathered(*ROWS, kernel("level1/5_e", 5.0, marks=("A kernel that gives zeros passes.",))))
    assert _group(report, "marked by admission").problems == 1
    assert _group(report, "not marked by admission").problems == 4


def test_a_baseline_that_could_not_be_timed_is_not_made_up() -> None:
    """A kernel without a torch.compile time beside it is left out of that mean, and the number timed says so."""
    alone = kernel("level1/7_g", 50.0, speedups={"eager": (2.0, 1.9, 2.1)}, baselines_us={"eager": 100.0})
    means = _means(_group(make_report(gathered(*ROWS, alone)), "level 1"), "compile")
    assert means.timed == 4
    assert means.geomean == pytest.approx(8 ** (1 / 4))


def test_estimated_and_measured_never_share_a_table() -> None:
    """An estimated row opens a section of its own; a row without any time goes with the majority."""
    guess = kernel("level1/8_h", 50.0, basis="estimated", tier="estimated", speedups={"eager": (9.0, 9.0, 9.0)})
    report = make_report(gathered(*ROWS, guess))
    assert [section.basis for section in report.sections] == ["measured", "estimated"]
    assert [line.problem for line in report.sections[1].arms[0].problems] == ["level1/8_h"]
    assert len(report.sections[0].arms[0].problems) == 4


def test_problems_without_a_kernel_are_listed_with_their_reason() -> None:
    """Nothing that failed disappears into a mean."""
    without = make_report(gathered(*ROWS)).without
    assert without == {"reference": (("level1/3_c", "made up"),), "not judgeable": (("level1/4_d", "made up"),)}


def test_the_pages_hold_together_without_a_network(tmp_path: Path) -> None:
    """Every plot is well-formed SVG, the HTML names no other address, and hostile names are escaped."""
    hostile = row("level1/6_<script>alert(1)</script>|", reason="<b>|no\nwin</b>")
    write_report(gathered(*ROWS, hostile), tmp_path)
    html = (tmp_path / "report.html").read_text()
    assert "<script" not in html
    assert "src=" not in html
    assert "href=" not in html
    plots = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert plots == [f"measured-{name}.svg" for name in ("distribution", "fast_p", "roofline", "shares", "speedups")]
    for name in plots:
        ET.fromstring((tmp_path / "plots" / name).read_text())
    assert "| level 1 | 5 | 2 | 2 | 2 | 1 | 0 | eager |" in (tmp_path / "report.md").read_text()


def test_both_pages_say_which_flags_everything_had(tmp_path: Path) -> None:
    """The policy stands at the top with what it lets PyTorch's libraries round."""
    write_report(gathered(*ROWS), tmp_path)
    for page in ("report.md", "report.html"):
        assert "kernels and baselines with TF32 on in cuDNN, off in matrix products" in (tmp_path / page).read_text()


def test_kernels_that_pack_their_weights_are_listed(tmp_path: Path) -> None:
    """A report names them with what packing takes and the calls that pay for it; where none does, it says nothing of packing."""
    packed = kernel("level1/5_e", 20.0, [2.0]).model_copy(update={"packing_us": 3148.0, "packing_pays_after": 2})
    for rows, told in (((*ROWS, packed), True), (ROWS, False)):
        write_report(gathered(*rows), tmp_path)
        texts = [(tmp_path / f"report.{kind}").read_text() for kind in ("md", "html")]
        assert all(("Weights packed once" in text) is told for text in texts)
        assert ("| level1/5_e | 20 | 3,148 | 2 |" in texts[0]) is told


@pytest.mark.parametrize("rows", [(ROWS[3],), (ROWS[2],), (kernel("level3/50_x", 0.01),)])
def test_a_report_can_be_made_of_any_single_row(rows: tuple[object, ...], tmp_path: Path) -> None:
    """One problem that cannot be judged, one that kept its reference, one extreme gain."""
    write_report(gathered(*rows), tmp_path)  # type: ignore[arg-type]
    assert (tmp_path / "report.html").is_file()


def test_a_problem_with_several_shapes_is_shown_at_each(tmp_path: Path) -> None:
    """With the kernel's time there, and its gain; without such problems there is no such table."""
    shaped = kernel("level1/5_e", 20.0, [2.0]).model_copy(update={"shapes": {"decode": (3.25, 0.91), "prefill": (70.0, 2.5)}})
    for rows, told in (((*ROWS, shaped), True), (ROWS, False)):
        write_report(gathered(*rows), tmp_path)
        for kind in ("md", "html"):
            text = (tmp_path / f"report.{kind}").read_text()
            assert ("Shape by shape" in text and "0.91" in text) is told
