"""The types of errors of the THREAD paper (E.1), in few words."""

from __future__ import annotations

from enum import StrEnum


class ErrorType(StrEnum):
    """The types of Tables 9 and 11, and what the paper calls other."""

    INADEQUATE_PLAN = "inadequate plan"
    INVALID_ACTION = "invalid action"
    MISREAD_OBSERVATION = "misread observation"
    WRONG_INFORMATION = "wrong information"
    WRONG_ANALYSIS = "wrong analysis"
    MISREAD_RESULTS = "misread results"
    RUNTIME_ERROR = "runtime error"
    OUT_OF_CONTEXT = "out of context"
    OUT_OF_BUDGET = "out of budget"
    OTHER = "other"


DESCRIPTIONS = {
    ErrorType.INADEQUATE_PLAN: "the steps do not suffice, or come in the wrong order",
    ErrorType.INVALID_ACTION: "the environment knows no such action, or no such recipe",
    ErrorType.MISREAD_OBSERVATION: "it goes on as if the environment had said something else",
    ErrorType.WRONG_INFORMATION: "what the question needs is not retrieved",
    ErrorType.WRONG_ANALYSIS: "the information is there, but the analysis does not answer",
    ErrorType.MISREAD_RESULTS: "the analysis is right, and its results are taken for others",
    ErrorType.RUNTIME_ERROR: "a line of code fails",
    ErrorType.OUT_OF_CONTEXT: "a thread has more to read than the model can see",
    ErrorType.OUT_OF_BUDGET: "calls, tokens, seconds or levels are used up",
    ErrorType.OTHER: "none of these",
}
