"""Whether a candidate, or the reference, leaves anything to gain: not where it takes what moving its compulsory bytes takes."""

from __future__ import annotations

from tools.hardware.rates import copy_gbps
from tools.records import ROOT, Against, FigureSource, HardwareSheet, Profile

NO_ROOM = 0.97
"""Share of a measured time that is the least possible from which on nothing is left: kernels that read more than they write beat a
copy's rate by a little, and less than 3 % is rarely told from noise."""

LESS = 1.1
"""The same factor from which on a kernel plainly does less than the reference, by algebra or with packed weights: the least possible is
then another one, which nobody knows."""


def no_room(profile: Profile, sheet: HardwareSheet, against: Against = "better") -> str:
    """Say in one clause why nothing is left to gain; empty where something is, or where nothing was measured on this device.

    The reference has the time of its fastest baseline, or eager's where a kernel is held `against` that alone. The least possible is the
    longer of the compulsory bytes at a copy's rate and the roofline floor.
    """
    times = _measured(profile)
    if against != "better" and against in times:
        times = {against: times[against]}
    nbytes, floor = profile.figure("compulsory_bytes"), profile.figure("floor_us") or 0.0
    if not times or nbytes is None or profile.target != sheet.name:
        return ""
    name, time = min(times.items(), key=lambda item: item[1])
    copied = nbytes / copy_gbps(sheet) / 1e3
    if not NO_ROOM * time <= max(copied, floor) <= LESS * time:
        return ""
    share = f"{name} takes {time:.4g} µs, and {max(copied, floor) / time:.0%} of that is what"
    rate = f"its compulsory {nbytes / 1e9:.3g} GB take at the {copy_gbps(sheet):.0f} GB/s of a copy"
    return f"{share} {rate if copied >= floor else f'the roofline of {sheet.title} leaves'}: nothing is left to gain"


def most_gain(profile: Profile) -> float | None:
    """The gain that the roofline floor leaves to a candidate, at least 1; None where it is not known, or the kernel plainly does less."""
    share = profile.figure("floor_share")
    return max(1.0, 1.0 / share) if share and 0 < share <= LESS else None


def _measured(profile: Profile) -> dict[str, float]:
    """Times that were measured, by what took them: the candidate's own, or those of all baselines."""
    timed = {figure.name: figure.value for figure in profile.figures if figure.source is FigureSource.EVENTS and figure.unit == "us"}
    if profile.candidate != ROOT:
        return {"it": timed["time_us"]} if "time_us" in timed else {}
    baselines = {name.removesuffix("_us"): time for name, time in timed.items() if name != "time_us"}
    return baselines or ({"the reference": timed["time_us"]} if "time_us" in timed else {})
