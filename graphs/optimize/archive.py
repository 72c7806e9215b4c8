"""A run's search method, and the run's store as it sees it: surveys of parents, portraits of candidates, granted wishes."""

from __future__ import annotations

from functools import cached_property

from agents.coder.tuning import structure_in
from agents.records.tune import is_tuning
from graphs.optimize.briefing import choices_tried, structures_tuned, tried
from graphs.optimize.survey import Surveyed
from graphs.optimize.wishes import granted, opened_offers
from graphs.run.context import Services
from graphs.run.steering import is_vetoed, vetoed_actions
from graphs.search import open_search
from graphs.search.archive import Offer, Portrait
from graphs.search.protocol import Ask, SearchMethod
from graphs.search.wishes import Answer, Wish
from tools.records import Evaluation, Launch, Plan, Profile

SATURATION = {"sm": "compute_share", "dram": "peak_share"}
"""Figures of a profile that say how far a resource is used. None is read for the L2 cache, which therefore never masks."""


def search_of(services: Services, state: str = "", round_: int = 0) -> SearchMethod:
    """Make the run's search method, fresh or continued, with the run's store to look things up in."""
    return open_search(services.settings.search, services.settings.search_settings, state, StoreArchive(services, round_))


class StoreArchive:
    """Looks everything up in the run's store."""

    def __init__(self, services: Services, round_: int) -> None:
        """Look at `services`' run in its round `round_`."""
        self._services = services
        self._round = round_
        self.designs = services.team.coder.free

    def offers(self, parent: str, *, fresh: bool = False, rated: bool = False) -> tuple[Offer, ...] | None:
        """Steps of the last survey, and steps that the planner opened in a tree, that were not tried since."""
        if is_vetoed(self._services.store, parent):
            return ()
        found = self._services.store.get("survey", parent, Surveyed)
        if found is None or (fresh and found.round != self._round) or (rated and not found.rated):
            return None
        plans = self._services.store.all("plan", Plan, subject=parent).values()
        done = {plan.action.id for plan in plans if tried(self._services, plan) is not None} | self._never
        known = {offer.action.id for offer in found.offers}
        opened = [offer for offer in opened_offers(self._services, parent) if offer.action.id not in known]
        left = tuple(offer for offer in (*opened, *found.offers) if offer.action.id not in done)
        return tuple(offer for offer in left if not is_tuning(offer.action) or self._may_tune(parent))

    @cached_property
    def _never(self) -> set[str]:
        return choices_tried(self._services) | vetoed_actions(self._services.store)

    @cached_property
    def _tuned(self) -> set[str]:
        return structures_tuned(self._services)

    def _may_tune(self, parent: str) -> bool:
        """Whether the parent's structure was not tuned on another parent since the survey."""
        one = self._services.store.candidate(parent)
        return one is not None and structure_in(self._services.problem, one) not in self._tuned

    def answer(self, wish: Wish) -> Answer | None:
        """What the wish was granted with."""
        return granted(self._services, wish)

    def portrait(self, candidate: str) -> Portrait:
        """Figures of the candidate's evaluation and profile."""
        store = self._services.store
        evaluation, profile = self._services.evaluation(candidate), store.get("profile", candidate, Profile)
        lines = sum(bool(line.strip()) for line in store.source(candidate).splitlines())
        if evaluation is None:
            return Portrait(candidate=candidate, lines=lines)
        main = _heaviest(evaluation)
        return Portrait(
            candidate=candidate,
            signature=signature(evaluation),
            lines=lines,
            time_us=evaluation.time_us or 0.0,
            registers=max((kernel.registers for kernel in evaluation.kernels), default=0),
            shared_bytes=max((kernel.shared_bytes for kernel in evaluation.kernels), default=0),
            threads=32 * main.num_warps if main else 0,
            occupancy=(profile.figure("occupancy") if profile else None) or 0.0,
            saturation={name: value for name, figure in SATURATION.items() if profile and (value := profile.figure(figure)) is not None},
        )


def surveyed_offer(services: Services, ask: Ask) -> Offer | None:
    """Find the offer that an ask gives as its action; the planner's own words of a tree go before a survey's."""
    if ask.action is None:
        return None
    found = services.store.get("survey", ask.parent, Surveyed)
    known = (*opened_offers(services, ask.parent), *(found.offers if found else ()))
    return next((offer for offer in known if offer.action.id == ask.action.id), None)


def signature(evaluation: Evaluation) -> str:
    """Which strategy a candidate embodies: how many kernels and library calls, and how its heaviest kernel is run."""
    own = [launch for launch in evaluation.launches if launch.kind != "library"]
    main = _heaviest(evaluation)
    run = f" w{main.num_warps} s{main.num_stages} b{_block(main)}" if main else ""
    tensor = any(kernel.instructions.get("tensor", 0) for kernel in evaluation.kernels)
    return f"k{len(own)} l{len(evaluation.launches) - len(own)}{run}{' t' if tensor else ''}"


def _heaviest(evaluation: Evaluation) -> Launch | None:
    own = (launch for launch in evaluation.launches if launch.kind != "library")
    return max(own, key=lambda launch: launch.nbytes, default=None)


def _block(launch: Launch) -> int:
    """Power of two of the product of the kernel's block sizes."""
    product = 1
    for name, value in launch.constants.items():
        if name.isupper() and isinstance(value, int) and not isinstance(value, bool) and value > 1:
            product *= value
    return product.bit_length() - 1
