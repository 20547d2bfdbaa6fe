"""The types of errors of the THREAD paper (E.1), in few words."""

from __future__ import annotations

from enum import StrEnum


class ErrorType(StrEnum):
    """The types of Tables 9 and 11; of what the paper calls other, two have names of their own."""

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


AGENT_TYPES = (ErrorType.INADEQUATE_PLAN, ErrorType.INVALID_ACTION, ErrorType.MISREAD_OBSERVATION)
"""The types of agent tasks (THREAD paper, Table 9), which Figure 4 counts beside "other"."""

QUESTION_TYPES = (
    ErrorType.WRONG_INFORMATION,
    ErrorType.WRONG_ANALYSIS,
    ErrorType.MISREAD_RESULTS,
    ErrorType.RUNTIME_ERROR,
)
"""The types of questions (THREAD paper, Table 11), which Figure 6 counts beside "other"."""

DESCRIPTIONS = {
    ErrorType.INADEQUATE_PLAN: "the steps do not suffice, or come in the wrong order: a stick is "
    "fetched once more, and the crossbow's iron ingot never",
    ErrorType.INVALID_ACTION: "the environment knows no such action, or no such recipe: take "
    "peppershaker from countertop 3, without its number",
    ErrorType.MISREAD_OBSERVATION: "it goes on as if the environment had said something else: it "
    "takes soapbottle 1 from where none was seen",
    ErrorType.WRONG_INFORMATION: "what the question needs is not retrieved: the national "
    "average is asked for and never looked up",
    ErrorType.WRONG_ANALYSIS: "the information is there, but the analysis does not answer: asked "
    "which of two averages is higher, it never computes both",
    ErrorType.MISREAD_RESULTS: "the analysis is right, and its results are taken for others: asked "
    "where crime was lower, it says Rhode Island, with 462 against Maine's 143",
    ErrorType.RUNTIME_ERROR: "a line of code fails: it makes a table of series_1, and there is no "
    "such name",
    ErrorType.OUT_OF_CONTEXT: "a thread has more to read than the model can see (other, in the "
    "paper)",
    ErrorType.OUT_OF_BUDGET: "calls, tokens, seconds or the environment's actions are used "
    "up (other, in the paper): a table is described until the ten rounds are over",
    ErrorType.OTHER: "none of these",
}
"""Each type in words, and what a failed episode of this kit did (THREAD paper, Tables 9 to 12)."""
