"""The teacher of threads for WebShop: a function of one thread's text to the text that comes next.

It sees no variable's value, no parent, no goal and nothing of the shop but the pages that its
thread has read. So whatever it does, a model that reads the same text can learn to do.

The form of the threads (what is distilled; there is no few-shot prompt):

    the instruction    query = ''' Find me ... black 9'''[1:]; limit = 80.0
                       First, I need to search for {query}. =>
                       one = ''' black'''[1:]; two = ''' 9'''[1:]; n = 2; ...
                       product = found[0]
                       So, I need to look at {product} for {n} options. =>
                       product = found[1] ... until one has all options, or there is no other
                       Then, I need to buy {product} with {n} options. =>
    I need to search for Find me ... black 9. =>
                       > search[{query}] =>; found = [...]; prices = [...]
    I need to look at B09KP78G37 for 2 options. =>
                       > click[{product}] =>, has = [two], > click[< Prev] =>
    I need to buy B09KP78G37 with 2 options. =>
                       > click[{product}] =>, > click[{two}] =>, > click[Buy Now] =>

The query is what is asked for without its limit, and of the options their values alone. The page of
a product shows an option that is wanted by its name, "[{two}]", since its value is a variable's: so
it is read there whether the product has it. The interpreter drops what costs too much and takes the
product with most of the options. A text is copied with the blank before it, so that it has the
tokens that it has in the instruction.
"""

from __future__ import annotations

import re

from thread_kit.dialect import AGENT
from thread_kit.distill.textcraft_teacher import TeacherError, read
from thread_kit.envs.webshop.pages import BACK, BUY, PREVIOUS

NUMBERS = ("one", "two", "three", "four", "five")
"""The names of the options that are wanted, as many as there are."""

NO_LIMIT = "1000000.0"
ALL = "It has all."
THE_END = "There is no other."
FOUND = "I found "
INVALID = "Invalid action!"
LOOK = "So, I need to look at {product} for {n} options. =>"
BUY_IT = "Then, I need to buy {product} with {n} options. =>"
TRIES = 2
"""So often a thread searches, or opens a product."""

_LIMIT = re.compile(r", and price lower than ([\d.]+) dollars$")
_OPTIONS = re.compile(r"(.+) with ([a-z][a-z ]*: .+)")
_OPTION = re.compile(r"(?:^|, and )[a-z][a-z ]*: ")
_RESULT = re.compile(r"^\[([A-Z0-9]{1,10})\]\n[^\n]*\n\$([\d.]+)", re.MULTILINE)


def speak_webshop(text: str) -> str:
    """What comes next in a thread: `text` is its context and its sequence so far.

    Raises TeacherError for a text that is not of the form that it teaches.
    """
    request, feedback = read(text)
    if instruction := re.fullmatch(r"Instruction: (.+)", request):
        return _shop(*read_instruction(instruction[1]), feedback)
    if request.startswith("I need to search for "):
        return _search(feedback)
    if look := re.fullmatch(r"I need to look at (\w+) for (\d) options\.", request):
        return _look(look[1], int(look[2]), feedback)
    if re.fullmatch(r"I need to buy (\w+) with \d options\.", request):
        return _buy(feedback)
    raise TeacherError(f"not a request of this form: {request!r}")


def read_instruction(instruction: str) -> tuple[str, list[str], str]:
    """What is asked for in words, the values of the options, and the highest price."""
    limit = _LIMIT.search(instruction)
    wanted = instruction[: limit.start()] if limit else instruction
    parts = _OPTIONS.fullmatch(wanted)
    values = _OPTION.split(parts[2])[1:] if parts else []
    return parts[1] if parts else wanted, values, limit[1] if limit else NO_LIMIT


def _shop(words: str, values: list[str], limit: str, feedback: list[str]) -> str:
    names = NUMBERS[: len(values)]
    if not feedback:
        query = _copy("query", " ".join([words, *values]))
        return f"{query}\nlimit = {limit}\nFirst, I need to search for {{query}}. =>"
    if len(feedback) > 1 and (feedback[-1] == ALL or feedback[-1] == THE_END):
        best = "product = found[counts.index(max(counts))]\n" * (feedback[-1] == THE_END)
        return f"{best}{BUY_IT}"
    if len(feedback) == 1 and feedback[0].startswith(FOUND):
        if not values:
            return f"n = 0\nproduct = found[0]\n{BUY_IT}"
        copies = "\n".join(map(_copy, names, values))
        start = f"n = {len(values)}\ncounts = []\nfound += ['end']\nproduct = found[0]"
        return f"{copies}\n{start}\n{LOOK}"
    if feedback[-1].startswith("It has "):
        return f"counts += [len(has)]\nproduct = found[{len(feedback) - 1}]\n{LOOK}"
    return AGENT.end  # it is bought, or nothing was found


def _copy(name: str, text: str) -> str:
    """The line that gives a variable a text of the instruction."""
    if "''" in f"{text}'" or "\\" in text:
        raise TeacherError(f"not a text that can be copied in quotation marks: {text!r}")
    return f"{name} = ''' {text}'''[1:]"


def _search(feedback: list[str]) -> str:
    search = "> search[{query}] =>"
    if not feedback or (feedback[-1] != INVALID and not _RESULT.search(feedback[-1])):
        if len(feedback) < 2 * TRIES - 1:
            return search  # the page at the end of a way back has a box, too
        return f"print('Nothing was found.')\n{AGENT.end}"
    if feedback[-1] == INVALID:
        return f"> click[{BACK}] =>"
    results = _RESULT.findall(feedback[-1])
    found = "', '".join(result for result, _ in results)
    prices = ", ".join(price for _, price in results)
    within = "found = [f for f, price in zip(found, prices) if price <= limit] or found"
    printed = f"print('{FOUND}{{found}}.')\n{AGENT.end}"
    return f"found = ['{found}']\nprices = [{prices}]\n{within}\n{printed}"


def _look(product: str, n: int, feedback: list[str]) -> str:
    if product == "end":
        return f"print({THE_END!r})\n{AGENT.end}"
    if not feedback:
        return "> click[{product}] =>"
    if len(feedback) == 1:
        return f"has = [{', '.join(_listed(feedback[0]))}]\n> click[{PREVIOUS}] =>"
    has = _listed(feedback[0])
    said = ALL if len(has) == n else "It has {has}."
    return f"print({said!r})\n{AGENT.end}"


def _buy(feedback: list[str]) -> str:
    if not feedback:
        return "> click[{product}] =>"
    if feedback[-1] == f"You have clicked {BUY}.":
        return f"print('I bought it.')\n{AGENT.end}"
    options = _listed(feedback[0])
    if len(feedback) <= len(options):
        return f"> click[{{{options[len(feedback) - 1]}}}] =>"
    return f"> click[{BUY}] =>"


def _listed(page: str) -> list[str]:
    """The options that are wanted and stand on the page of a product, in their order."""
    return [name for name in NUMBERS if f"[{{{name}}}]" in page]
