"""A bundle as named files, each fact in one place: sources and logs as text, everything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from tools.errors import UserError
from tools.evidence.bundle import Bundle, Origin
from tools.records import Baselines, Evaluation, HardwareSheet, Problem, ProblemForm, Profile, RawTimes

KERNEL, LOG = "kernel.py", "build.log"
PROBLEM, EVALUATION, TIMINGS, SEEDS = "problem.json", "evaluation.json", "timings.json", "seeds.json"
HARDWARE, BASELINES, PROFILE, ORIGIN = "hardware.json", "baselines.json", "profile.json", "origin.json"
OTHER_BASELINES = "other_baselines.json"

_SHARED = ("name", "form", "entry", "source", "policy")
"""What a variant has in common with its problem."""

_SOURCES = {ProblemForm.EXPORTED: "problem.pt2.base64"}


def to_files(bundle: Bundle) -> dict[str, bytes]:
    """Write a bundle down."""
    evaluation = bundle.evaluation
    timing = evaluation.timing
    texts = {source_name(bundle.problem.form): bundle.problem.source, KERNEL: bundle.kernel, LOG: evaluation.log}
    values = {
        PROBLEM: {
            "problem": bundle.problem.model_dump(mode="json", exclude={"source"}),
            "variants": [variant.model_dump(mode="json", exclude=set(_SHARED)) for variant in bundle.variants],
        },
        EVALUATION: {
            "stage": bundle.stage,
            "timeout_s": bundle.timeout_s,
            "evaluation": evaluation.model_dump(mode="json", exclude={"log": True, "seeds": True, "timing": {"raw"}}),
        },
        TIMINGS: timing.raw.model_dump(mode="json") if timing and timing.raw else None,
        SEEDS: [one.model_dump(mode="json") for one in evaluation.seeds],
        HARDWARE: bundle.hardware.model_dump(mode="json"),
        BASELINES: bundle.baselines.model_dump(mode="json") if bundle.baselines else None,
        OTHER_BASELINES: {name: one.model_dump(mode="json") for name, one in bundle.other_baselines.items()} or None,
        PROFILE: bundle.profile.model_dump(mode="json") if bundle.profile else None,
        ORIGIN: bundle.origin.model_dump(mode="json"),
    }
    # a lone surrogate in what a kernel printed must not keep its evidence from being written
    files = {name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()}
    return files | {name: (json.dumps(value, indent=1) + "\n").encode() for name, value in values.items() if value is not None}


def source_name(form: ProblemForm) -> str:
    """Name of the file that holds the reference."""
    return _SOURCES.get(form, "problem.py")


def from_files(files: Mapping[str, bytes]) -> Bundle:
    """Read a bundle; what is no valid record raises UserError with the file and the field, and so does a file that means nothing."""
    problem_json = _json(files, PROBLEM)
    outer = _json(files, EVALUATION)
    try:
        form = ProblemForm(problem_json["problem"]["form"])
        known = {source_name(form), KERNEL, LOG, PROBLEM, EVALUATION, TIMINGS, SEEDS, HARDWARE, BASELINES, OTHER_BASELINES, PROFILE, ORIGIN}
        if unknown := sorted(set(files) - known):
            raise _broken(unknown[0], "a bundle of this format has no such file")
        problem = Problem.model_validate(problem_json["problem"] | {"source": _text(files, source_name(form))})
        shared = problem.model_dump(include=set(_SHARED))
        variants = tuple(Problem.model_validate(one | shared) for one in problem_json["variants"])
    except ValidationError as error:
        raise _broken(PROBLEM, _first(error)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(PROBLEM, f"it has another shape ({error})") from error
    try:
        return Bundle(
            problem=problem,
            variants=variants,
            kernel=_text(files, KERNEL),
            evaluation=_evaluation(files, outer["evaluation"]),
            stage=outer["stage"],
            timeout_s=outer["timeout_s"],
            hardware=_record(files, HARDWARE, HardwareSheet),
            baselines=_record(files, BASELINES, Baselines) if BASELINES in files else None,
            other_baselines=_json(files, OTHER_BASELINES) if OTHER_BASELINES in files else {},
            profile=_record(files, PROFILE, Profile) if PROFILE in files else None,
            origin=_record(files, ORIGIN, Origin),
        )
    except ValidationError as error:
        raise _broken(EVALUATION, _first(error)) from error
    except (KeyError, TypeError) as error:
        raise _broken(EVALUATION, f"it has another shape ({error})") from error


def _evaluation(files: Mapping[str, bytes], fields: Any) -> Evaluation:
    fields = fields | {"log": _text(files, LOG), "seeds": _json(files, SEEDS)}
    if TIMINGS in files:
        raw = _record(files, TIMINGS, RawTimes)
        if not fields["timing"]:
            raise _broken(TIMINGS, "the evaluation has no measured time")
        fields["timing"] = fields["timing"] | {"raw": raw.model_dump(mode="json")}
    # through JSON text, so that tuples, enums and infinities are read as they were written
    return Evaluation.model_validate_json(json.dumps(fields))


def _record(files: Mapping[str, bytes], name: str, type_: Any) -> Any:
    try:
        return type_.model_validate_json(_text(files, name))
    except ValidationError as error:
        raise _broken(name, _first(error)) from error


def _json(files: Mapping[str, bytes], name: str) -> Any:
    try:
        return json.loads(_text(files, name))
    except (ValueError, RecursionError) as error:
        raise _broken(name, f"it is no JSON ({error})") from error


def _text(files: Mapping[str, bytes], name: str) -> str:
    if name not in files:
        raise _broken(name, "it is missing")
    try:
        return files[name].decode("utf-8")
    except UnicodeDecodeError as error:
        raise _broken(name, "it is not UTF-8 text") from error


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    field = ".".join(str(part) for part in found["loc"])
    return f"{field}: {found['msg']}" if field else str(found["msg"])


def _broken(file: str, what: str) -> UserError:
    return UserError(f"{file}: {what}", "Get the bundle again from where it came.")
