"""The nouns everyone shares, as frozen pydantic records: problem, action, candidate, evaluation, profile, hardware, budget.

Records hold facts and validate them; they run nothing. Import them from here.
"""

from tools.records.action import ATTEMPT, IDEA, Action, ActionKind
from tools.records.admission import Admission, NullPass
from tools.records.base import Record, content_hash
from tools.records.baselines import Baselines
from tools.records.budget import Budget, Spent
from tools.records.candidate import ROOT, Candidate, Plan
from tools.records.correctness import Correctness, OutputError, WrongElement, WrongOutput
from tools.records.evaluation import PART, Evaluation, KernelResources, Launch, SeededCall, Seeds, ShapeResult, TensorArgument, Verdict
from tools.records.hardware import HardwareSheet
from tools.records.policy import DEFAULT_POLICY, PolicyName, Precision, PrecisionPolicy
from tools.records.problem import (
    ABI,
    ITEM_BYTES,
    OperatorFamily,
    Problem,
    ProblemForm,
    ProblemShape,
    Scalar,
    ScalarSpec,
    TensorSpec,
    Work,
)
from tools.records.profile import Bottleneck, Figure, FigureSource, Profile
from tools.records.request import EvaluationRequest
from tools.records.timing import Against, Estimate, Packing, RawTimes, Sample, Tier, Timing

__all__ = [
    "ABI",
    "ATTEMPT",
    "DEFAULT_POLICY",
    "IDEA",
    "ITEM_BYTES",
    "PART",
    "ROOT",
    "Action",
    "ActionKind",
    "Admission",
    "Against",
    "Baselines",
    "Bottleneck",
    "Budget",
    "Candidate",
    "Correctness",
    "Estimate",
    "Evaluation",
    "EvaluationRequest",
    "Figure",
    "FigureSource",
    "HardwareSheet",
    "KernelResources",
    "Launch",
    "NullPass",
    "OperatorFamily",
    "OutputError",
    "Packing",
    "Plan",
    "PolicyName",
    "Precision",
    "PrecisionPolicy",
    "Problem",
    "ProblemForm",
    "ProblemShape",
    "Profile",
    "RawTimes",
    "Record",
    "Sample",
    "Scalar",
    "ScalarSpec",
    "SeededCall",
    "Seeds",
    "ShapeResult",
    "Spent",
    "TensorArgument",
    "TensorSpec",
    "Tier",
    "Timing",
    "Verdict",
    "Work",
    "WrongElement",
    "WrongOutput",
    "content_hash",
]
