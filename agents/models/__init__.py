"""Chat models: settings, one `ask`, what servers can do, prices, the record of every call.

Everything that talks to a language-model server lives here and nothing else in the project does. Agents see `ChatModel.ask` and
records only; LangChain and the OpenAI client are imported when the first request is made. A key is read from the environment or
a file when a request needs it and is never part of a record.
"""

from agents.models.calls import CallRecord, CallStore, Findings, MemoryCalls, Trouble
from agents.models.chat import ChatModel, InFlight
from agents.models.check import check_model
from agents.models.ensemble import Ensemble
from agents.models.errors import BudgetReached, ModelUnavailable, NotRecorded
from agents.models.guard import Guard, budget_guard
from agents.models.messages import Answer, Message, ToolCall, ToolSpec, Usage
from agents.models.prices import Price, PriceTable
from agents.models.protocol import Model
from agents.models.recording import Recording
from agents.models.settings import ModelSettings
from agents.models.shared import Shared

__all__ = [
    "Answer",
    "BudgetReached",
    "CallRecord",
    "CallStore",
    "ChatModel",
    "Ensemble",
    "Findings",
    "Guard",
    "InFlight",
    "MemoryCalls",
    "Message",
    "Model",
    "ModelSettings",
    "ModelUnavailable",
    "NotRecorded",
    "Price",
    "PriceTable",
    "Recording",
    "Shared",
    "ToolCall",
    "ToolSpec",
    "Trouble",
    "Usage",
    "budget_guard",
    "check_model",
]
