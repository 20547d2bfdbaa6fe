"""Makes the memories of RAP, AutoGuide and AdaPlanner, from tasks of a train split alone.

python -m thread_kit.experiments.memories rap --env alfworld --first 2000 --tasks 24
python -m thread_kit.experiments.memories rap --env webshop --tasks 60
python -m thread_kit.experiments.memories autoguide --env webshop --tasks 12
python -m thread_kit.experiments.memories adaplanner --env textcraft --tasks 12
python -m thread_kit.experiments.memories rap --env module:name
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from thread_kit.cli.arguments import read_benchmark
from thread_kit.dialect import Dialect
from thread_kit.engines.engine import Engine
from thread_kit.engines.models import load_model
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.env import GENERATED
from thread_kit.envs.alfworld.generator import KINDS
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.env import Env
from thread_kit.experiments.budgets import apply_budget, budget_of
from thread_kit.experiments.memory_builders import find_memory, load_guides, make_adaplanner
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_builders import make_react
from thread_kit.methods.autoguide import extract_guideline
from thread_kit.methods.memory import Guideline, Log, write_records
from thread_kit.methods.steps import is_any_thought
from thread_kit.prompts import EMPTY
from thread_kit.requests import NewThread, Steps
from thread_kit.session.checks import check_numbers
from thread_kit.trace.episode import Episode

TRAIN = "train"
FIRST = 2_000
"""The seed of the first generated game: those that prompts show and suites play are below."""


def list_train(benchmark: Benchmark, tasks: int, first: int = 0) -> Iterator[Env]:
    """Tasks that no table counts: of the train split, or of ALFWorld games that are generated.

    first: the number, or the seed, that the first one has.
    """
    if benchmark.name == "alfworld":
        kinds = list(KINDS)
        for number in range(tasks):
            seed = max(first, FIRST) + number // len(kinds)
            game = f"{kinds[number % len(kinds)]}-{seed}"
            yield benchmark.environment(split=GENERATED, game=game)
    else:
        for task in benchmark.tasks(TRAIN)[first : first + tasks]:
            yield benchmark.environment(**benchmark.arguments(task))


def make_log(env: Env, start: Iterable[str] = ()) -> Log | None:
    """What the oracle does in a task, with thoughts: what it looks for, changes or chooses.

    start: actions that come before its own. None where it knows no way that an agent could find.
    """
    actions = env.oracle()
    if actions is None:
        return None
    task = env.reset().rpartition("\n")[2]
    write = env.dialect.write_action
    steps = [(write(action), env.step(action).observation.strip()) for action in start]
    reward = 0.0
    for number, action in enumerate(actions):
        if thought := _think(action, actions[number:], actions[number - 1] if number else ""):
            steps.append((thought, "OK."))
        action = _SEARCH.sub(lambda _: f"search[{_ask_for(task)}]", action)
        step = env.step(action)
        steps.append((write(action), step.observation.strip()))
        reward = step.reward
    return Log(task, env.examples, _plan(actions), tuple(steps)) if reward == 1 else None


_SEARCH = re.compile(r"search\[.*\]", re.DOTALL)
_SAID = re.compile(
    r"(?i)^instruction: |, and price lower than .*|\b(look|for|that|offer|with|and)\b|[:,]"
)


def _ask_for(task: str) -> str:
    """A query with the words of a task: the oracle knows the title of what it looks for."""
    return " ".join(_SAID.sub(" ", task).split())


_IN_SHOP = re.compile(r"click\[(?:([A-Z0-9]{10})|([^\]]+))\]")
_THING = re.compile(r"(take|clean|heat|cool|put|use) ((\w+) \d+)(?:.* (\w+) \d+)?")


def _plan(actions: list[str]) -> str:
    """A plan of ALFWorld: what is done to things, in a sentence; "" elsewhere."""
    done = [match for action in actions if (match := _THING.match(action))]
    parts = []
    for match in done:
        verb, _, thing, place = match.groups()
        match verb:
            case "take":
                parts.append(f"find and take a {thing}")
            case "put":
                parts.append(f"put it in {place}")
            case "use":
                parts.append(f"find and use a {thing}")
            case _:
                parts.append(f"{verb} it with {place}" if place else f"{verb} it")
    return f"I {', then '.join(parts)}." if parts else ""


def _think(action: str, following: list[str], before: str) -> str:
    """The thought before an action: that something is looked for, or what is done or chosen."""
    if action.startswith("search["):
        return "think: I search with the words of what is asked for."
    if match := _IN_SHOP.fullmatch(action):
        product, option = match.groups()
        if option and option.casefold() == "buy now":
            return "think: All that was asked for is chosen. I buy it."
        if product:
            return f"think: {product} is what was asked for, and its price is right. I look at it."
        return f"think: It shall be {option}."
    if match := _THING.match(action):
        verb, name, _, _ = match.groups()
        if verb in ("take", "use"):
            return f"think: There is {name}. I {verb} it."
        return f"think: Now I {verb} {name}."
    ahead = next((match for text in following if (match := _THING.match(text))), None)
    begins = not before or bool(_THING.match(before))
    if begins and ahead and ahead[1] in ("take", "use"):
        return f"think: I look for a {ahead[3]}."
    return ""


def read_steps(text: str, dialect: Dialect) -> tuple[tuple[str, str], ...]:
    """The actions of a thread's text, each with what was observed; no thoughts.

    Nor WebShop's `think[...]`, which is an action, but tells nothing of the shop.
    """
    head = "|".join(map(re.escape, dialect.actions))
    end, listen, close = map(re.escape, (dialect.end, dialect.listen, dialect.close))
    pattern = rf"^ *(?:{head}) *(.*?\S)\s*(?:{end})? ?{listen}(.*?){close}$"
    found = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    return tuple(
        (dialect.write_action(action), seen.strip())
        for action, seen in found
        if not is_any_thought(action)
    )


def play_with(
    engine: Engine, env: Env, method: SessionMethod, **options: Any
) -> tuple[Episode, Mapping[str, Any]]:
    """An episode of a method, and the variables that its program returns.

    options: of its session; what they leave out is the method's own budget.
    """
    program, returned = method.fixed["program"], dict[str, Any]()

    def note(thread: NewThread) -> Steps:
        finished = yield from program(thread)
        returned.update(finished.variables)
        return finished

    noted = replace(method, fixed={**method.fixed, "program": note})
    budget = apply_budget(budget_of(method.name, env.name), env, options)
    episode = noted(engine, env, seed=0, path=None, **budget).run(progress=False)
    return episode, returned


def list_shown_guidelines(benchmark: Benchmark) -> list[Guideline]:
    """Those of the pairs of train tasks that the prompt of the extraction shows."""
    extract = load_guides(benchmark)["extract"]
    return [
        Guideline(
            example.context.rpartition("Context: ")[2],
            example.response.removesuffix(extract.dialect.end).strip(),
        )
        for example in extract.examples
    ]


def make_guidelines(
    benchmark: Benchmark, envs: Iterable[Env], engine: Engine, **options: Any
) -> Iterator[Guideline]:
    """Guidelines of the tasks in which ReAct fails, beside what the oracle does there.

    Those of the pairs that the prompt shows come first. The model plays and extracts. options: as
    in `play_with`.
    """
    shown = list_shown_guidelines(benchmark)
    yield from shown
    contexts = [guideline.context for guideline in shown]
    for env in envs:
        # a trajectory that won, and one that failed
        log = make_log(env, benchmark.start)
        if log is None:
            continue
        react = make_react(benchmark, env.examples)
        episode, _ = play_with(engine, env.again(), react, **options)
        if episode.solved:
            continue
        # what the difference teaches
        guides = load_guides(benchmark)
        identify, match, extract = (guides[role] for role in ("identify", "match", "extract"))
        program = partial(
            extract_guideline,
            won=[step for step in log.steps if step[0].startswith(env.dialect.write_action(""))],
            lost=read_steps(episode.threads[0].sequence.text, episode.dialect),
            known=tuple(contexts),
            identify=identify,
            match=match,
            extract=extract,
        )
        fixed = {"program": program, "prompts": (identify, match, extract), "scope": "none"}
        main = replace(EMPTY, dialect=extract.dialect)
        extraction = SessionMethod("autoguide", main, fixed)
        _, facts = play_with(engine, env.again(), extraction, **options)
        if facts.get("context") and facts.get("guideline"):
            if facts["context"] not in contexts:
                contexts.append(facts["context"])
            yield Guideline(facts["context"], facts["guideline"])


def make_skills(
    benchmark: Benchmark, envs: Iterable[Env], engine: Engine, **options: Any
) -> Iterator[dict[str, str]]:
    """The plans of AdaPlanner that solved their tasks without a revision, with their tasks.

    (Section 3.4 there.) options: as in `play_with`.
    """
    for env in envs:
        method = make_adaplanner(benchmark, env.examples)
        episode, facts = play_with(engine, env, method, **options)
        if episode.solved and facts.get("plan"):
            yield {"kind": env.examples, "context": env.again().reset(), "plan": facts["plan"]}


def main(arguments: list[str] | None = None) -> int:
    """Make a memory and write its file."""
    about = "Make the memory of a method, from tasks of a train split."
    parser = argparse.ArgumentParser(
        prog="python -m thread_kit.experiments.memories", description=about
    )
    parser.add_argument("method", choices=["rap", "autoguide", "adaplanner"])
    parser.add_argument(
        "--env", default="alfworld", help="the benchmark, or module:name (default: alfworld)"
    )
    parser.set_defaults(split=None)  # it is always TRAIN
    parser.add_argument("--tasks", type=int, default=24, help="so many (default: 24)")
    parser.add_argument("--first", type=int, default=0, help="number or seed of the first one")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b", help="plays and extracts")
    parser.add_argument("--cpu-threads", type=int, help="cores for the model (default: all)")
    parser.add_argument("--calls", type=int, help="of an episode, at most (default: its method's)")
    parser.add_argument("--new-tokens", type=int, help="of a call, at most (default: as --calls)")
    parser.add_argument("--out", type=Path, help="the file (default: where it is read)")
    try:
        return _make_memory(parser.parse_args(arguments))
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        print(f"memories: {error}", file=sys.stderr)
        return 2


def _make_memory(options: argparse.Namespace) -> int:
    benchmark, _ = read_benchmark(options)
    if options.tasks and TRAIN not in benchmark.splits:
        raise ValueError(
            f"{benchmark.name} has no split {TRAIN!r}, of whose tasks memories are made; give the "
            f"Benchmark one that no table counts: splits={(*benchmark.splits, TRAIN)}"
        )
    least = FIRST if benchmark.name == "alfworld" and options.first else 0
    if options.tasks < 0 or options.first < least:
        raise ValueError(f"give --tasks from 0 and --first from {least}; it names the first one")
    chosen = {"calls": options.calls, "new_tokens": options.new_tokens}
    limits = {name: limit for name, limit in chosen.items() if limit is not None}
    check_numbers(limits)
    if options.method == "rap" and (limits or options.cpu_threads):
        raise ValueError("rap asks no model; --calls, --new-tokens, --cpu-threads are for others")
    envs = list_train(benchmark, options.tasks, options.first)
    records: list[Any] = []
    if options.method == "rap":
        made: Iterable[Any] = (make_log(env, benchmark.start) for env in envs)
    else:
        threads = {"cpu_threads": options.cpu_threads} if options.cpu_threads else {}
        engine: Engine = ScriptedEngine(())  # that nobody asks
        if options.tasks:
            engine = load_model(options.model, adapter=None, **threads)
        make = make_guidelines if options.method == "autoguide" else make_skills
        made = make(benchmark, envs, engine, **limits)
    out = options.out or find_memory(options.method, benchmark)
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f"{out.name}.part")  # the memory that is there counts until all are made
    for record in made:
        if record:
            records.append(record)
            write_records(part, records)
            print(f"{len(records)}: {record!r:.200}", flush=True)
    if not records:
        raise ValueError(f"no task gave a record, and {out} stays as it is; give more --tasks")
    part.replace(out)
    print(f"{len(records)} records in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
