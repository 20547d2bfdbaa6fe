"""LATS, Language Agent Tree Search (Zhou et al. 2023, section 4): Monte Carlo search of actions.

    for k = 1 ... iterations do
      s = the leaf that UCT leads to, UCT(s) = V(s) + w sqrt(ln N(parent) / N(s))  # selection
      n actions are sampled and taken from s                                       # expansion
      V(s') = weight * LM(s') + (1 - weight) * SC(s') for each of them             # evaluation
      the child with the highest V goes on in the same way until the end           # simulation
      V(s) = (V(s) (N(s) - 1) + r) / N(s), up to the root                          # backpropagation
      if r < 1 then what went wrong is read by all that follow                     # reflection

LM is a mark from 1 to 10 that the model gives a trajectory, SC the share of the samples that wrote
the same action. A node is a thread that begins with its parent's tokens: those are in the cache
already where the session keeps the cells of threads that have ended (`keep_cells`, which the method
by name sets), so that a node costs its own action alone. Going back to another node costs nothing.
The environment is brought to where a node's actions left it (the paper reverts it, too).
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from thread_kit.methods.common import (
    act_or_think,
    as_instruction,
    ask,
    ask_prose,
    begin,
    find_asked,
    reopen,
    verdict,
)
from thread_kit.methods.reflexion import look_back, with_lessons
from thread_kit.prompts import Prompt
from thread_kit.requests import (
    Finished,
    Generate,
    Generated,
    NewThread,
    Request,
    Restore,
    Status,
    Steps,
)
from thread_kit.sequence import Sequence

_MARK_IS = re.compile(r"\bmark is (\d+(?:\.\d+)?)", re.IGNORECASE)
"""As the examples say it, whatever numbers its reasons have; else the last number counts."""
_MARK = re.compile(r"(?<![\d./])(?<!/ )(?<!out of )\d+(?:\.\d+)?")
"""A number, but not the 10 of "8/10"."""

WORST, BEST = 1, 10
"""The marks that a trajectory can get."""


@dataclass(slots=True, eq=False)
class Node:
    """A state of the search: what the thread that reached it wrote and saw.

    actions: from the start of the environment. value: V; visits: N. reward: the environment's, in
    this state. is_over: nothing can be done from here.
    """

    sequence: Sequence
    actions: tuple[str, ...] = ()
    parent: Node | None = None
    value: float = 0.0
    visits: int = 0
    reward: float = 0.0
    is_over: bool = False
    children: list[Node] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def is_exhausted(self) -> bool:
        """Whether every way from here is over."""
        return self.is_over or (
            bool(self.children) and all(child.is_exhausted for child in self.children)
        )

    def back_up(self, reward: float) -> None:
        """Count a visit that earned `reward`, here and in all nodes above."""
        self.visits += 1
        self.value += (reward - self.value) / self.visits
        if self.parent is not None:
            self.parent.back_up(reward)


def select_leaf(root: Node, exploration: float) -> Node | None:
    """The leaf that UCT leads to; None where every way is over. exploration: w."""
    node = root
    while node.children:
        choices = [child for child in node.children if not child.is_exhausted]
        if not choices:
            return None
        visits = max(node.visits, 1)

        def bound(child: Node, visits: int = visits) -> float:
            if child.visits == 0:  # not yet tried: in the order of their first value
                return math.inf
            return child.value + exploration * math.sqrt(math.log(visits) / child.visits)

        node = max(choices, key=lambda child: (bound(child), child.value))
    return None if node.is_over else node


def lats(
    thread: NewThread,
    *,
    value: Prompt,
    reflect: Prompt,
    samples: int = 5,
    iterations: int = 30,
    max_depth: int = 15,
    exploration: float = 1.0,
    weight: float = 0.5,
    temperature: float = 1.0,
    memory: int = 3,
    start: tuple[str, ...] = (),
) -> Steps:
    """Search for actions that earn the full reward; the best that were found are done at the end.

    value, reflect: prompts that mark a trajectory, and that say what went wrong in one.
    samples: n. iterations: k. max_depth: actions of a trajectory at most, and thoughts that stand
    in the place of one. exploration: w.
    weight: of LM in V. temperature: of the samples. memory: lessons that are kept. start: actions
    before the first call, as in `react`.
    """
    Y, lessons = Sequence(), list[str]()
    begun, observation = yield from begin(thread, start)
    root = Node(begun, start)
    if observation is not None:  # which may be the task's end
        root.is_over, root.reward = observation.is_over, observation.reward
    best, status = root, Status.ENDED
    for iteration in range(1, iterations + 1):
        # selection
        leaf = select_leaf(root, exploration)
        if leaf is None:
            break
        # expansion, evaluation; simulation goes on with the best child
        context = with_lessons(thread.context, lessons, memory)
        while not leaf.is_over and leaf.depth < max_depth and best.reward < 1:
            Y = yield from _expand(thread, Y, leaf, context, samples, temperature)
            Y = yield from _evaluate(thread, Y, leaf, context, value, weight)
            best = max(best, *leaf.children, key=lambda node: node.reward)
            leaf = max(leaf.children, key=_rank)
        leaf.is_over = True
        # backpropagation
        leaf.back_up(leaf.reward)
        if best.reward == 1:
            break
        # reflection, of which the last iteration has no use
        if iteration == iterations:
            continue
        text = f"{thread.context}\n{leaf.sequence.text}".rstrip() + f"\nReward: {leaf.reward:g}"
        Y, lesson = yield from look_back(thread, Y, text, reflect)
        if lesson.strip():
            lessons.append(lesson)
    else:
        status = Status.OUT_OF_CALLS
    yield Restore(best.actions)
    return Finished(Y, status, {}, verdict(best.reward == 1))


def sample_action(thread: NewThread, *, begun: Sequence, temperature: float) -> Steps:
    """One action behind what a trajectory holds already, or a thought in its place.

    The variables of what it returns: `action` (None where the model wrote none), `over`, and where
    something was done `taken` and the environment's `reward`. Behind its end mark, which ends
    nothing, it is asked once more.
    """
    Y = as_instruction(begun)
    for is_last in (False, True):
        generated: Generated = yield Generate(Y, temperature)
        Y += generated.span
        status = generated.ended
        is_cut = status is not None and not status.is_end
        action = None if is_cut else find_asked(Y, thread.dialect)
        if is_last or is_cut or action is not None or status is None:
            break
        Y += reopen(thread)
    facts: dict[str, Any] = {"action": action, "over": action is None}
    if action is None:
        return Finished(Y, status or Status.ENDED, facts, "no action")
    Y, observation = yield from act_or_think(thread, Y, action)
    if observation is not None:
        facts |= {"taken": (action,), "reward": observation.reward, "over": observation.is_over}
    return Finished(Y, Status.ENDED, facts, action)


def _expand(
    thread: NewThread, Y: Sequence, node: Node, context: str, samples: int, temperature: float
) -> Generator[Request, Any, Sequence]:
    """Sample actions from a node; its children, whose value is SC so far, each action once.

    A sample without an action is a child only where no sample has one.
    """
    shares: dict[str | None, Node] = {}
    for number in range(1, samples + 1):
        if not (yield Restore(node.actions)):
            raise ValueError(
                "LATS goes back to earlier states, and this environment cannot (can_undo is "
                "False); choose another method, or an environment that can"
            )
        step = partial(sample_action, begun=node.sequence, temperature=temperature)
        line = f"{'.'.join(_place(node))} sample {number}"
        Y, _, finished = yield from ask(thread, Y, line, context, program=step)
        facts = finished.variables
        action = facts.get("action")
        if action not in shares:
            actions = (*node.actions, *facts.get("taken", ()))
            child = Node(finished.sequence, actions, node)
            # A thought, or no action, leaves what has been earned as it is.
            child.is_over, child.reward = facts.get("over", True), facts.get("reward", node.reward)
            shares[action] = child
        shares[action].value += 1 / samples
    if len(shares) > 1:
        shares.pop(None, None)
    node.children = list(shares.values())
    return Y


def _rank(child: Node) -> tuple[float, bool, float]:
    """Of children the highest goes on; one that is over and has earned nothing is a dead end."""
    return child.reward, not child.is_over, child.value


def _place(node: Node) -> Iterator[str]:
    """Where a node stands: the number of each child on the way to it."""
    if node.parent is not None:
        yield from _place(node.parent)
        yield str(node.parent.children.index(node) + 1)
    else:
        yield "0"


def _evaluate(
    thread: NewThread, Y: Sequence, node: Node, context: str, value: Prompt, weight: float
) -> Generator[Request, Any, Sequence]:
    """V of a node's children: their share of the samples, and the mark that the model gives.

    context: with the lessons, which the model reads here as well (section 4.1).
    """
    for child in node.children:
        if not child.is_over:
            text = f"{context}\n{child.sequence.text}".rstrip()
            Y, mark = yield from _mark(thread, Y, text, value)
            child.value = weight * mark + (1 - weight) * child.value
    return Y


def _mark(
    thread: NewThread, Y: Sequence, text: str, value: Prompt
) -> Generator[Request, Any, tuple[Sequence, float]]:
    """LM: a mark from 1 to 10, as 0.1 to 1.0; 0.0 where the model gives none."""
    Y, reply, _ = yield from ask_prose(thread, Y, "value", text, prompt=value)
    said = _MARK_IS.search(reply)
    numbers = [said[1]] if said else _MARK.findall(reply[-100:])
    mark = float(numbers[-1]) if numbers else 0.0
    return Y, mark / BEST if WORST <= mark <= BEST else 0.0
