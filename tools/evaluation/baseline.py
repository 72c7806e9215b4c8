"""placeholder"""

from tools.evaluation.phases import Phase


def serve(phase: Phase) -> None:
    raise NotImplementedError
