"""What happened, in a sentence each: the player says it while it steps, and so it teaches.

The words are the paper's: phi makes a child's context, psi what comes back, xi an action.
"""

from __future__ import annotations

from thread_kit.dialect import Stop
from thread_kit.trace.episode import Episode, must_be_episode
from thread_kit.trace.events import (
    OF_CHILD,
    Acted,
    Closed,
    Edited,
    Ended,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Instructed,
    Observed,
    Pictured,
    Prompted,
    Referred,
    Resolved,
    Restarted,
    Returned,
    Spawned,
    Waiting,
)
from thread_kit.views.formatting import describe_reward, pluralize, shorten
from thread_kit.views.view_model import header_part, name_exchange

QUOTED = 160
"""Characters of a text that is quoted."""

_EXCHANGES = {
    "phi_last_line": "from the last line of thread @, behind its first comma",
    "phi_own_line": "from the last line of thread @, with its own text alone",
    "phi_whole_line": "from the last line of thread @, with what came back in it",
    "phi_full_sequence": "from all that thread @ has in its sequence",
    "psi_print": "what the last print of thread @ printed",
    "psi_full_sequence": "the whole sequence of thread @",
}
"""By the name of phi or psi, what it takes of thread @."""


def list_events(episode: Episode) -> list[str]:
    """The events of an episode by their numbers, which forks take: "3 GeneratedSpan: ..."."""
    so_far = Episode(must_be_episode(episode).header)
    lines = []
    for number, event in enumerate(episode.events):
        so_far.add(event)
        lines.append(f"{number} {type(event).__name__}: {describe_event(so_far, event, number)}")
    return lines


def describe_event(episode: Episode, event: Event, number: int) -> str:
    """One event in words, by its number; the episode has taken it in."""
    match event:
        # The model, its threads and their code.
        case Prompted(prompt, reused, evaluated):
            name = header_part(header_part(episode.header, "prompts"), prompt).get("name", prompt)
            return (
                f"The few-shot prompt {name} is in the cache: {pluralize(evaluated, 'token')} "
                f"evaluated, {reused:,} reused."
            )
        case Spawned():
            return _describe_spawn(episode, event, number)
        case GeneratedSpan():
            return _describe_call(episode, event)
        case ExecutedLine():
            return _describe_line(event)
        # The environment.
        case Acted(thread, action, observation, reward):
            return (
                f"xi reads the action {_quote(action)} in thread {thread}. The environment "
                f"answers {_quote(observation)} (reward {describe_reward(reward)})."
            )
        case Restarted(thread, _, actions, _, True):
            return (
                f"For thread {thread} the environment is brought back to where "
                f"{pluralize(len(actions), 'action')} had led."
            )
        case Restarted(thread):
            return f"For thread {thread} the environment begins anew: another trial."
        case Pictured(thread, path):
            return f"Thread {thread} saves the picture {_quote(path)}."
        case Observed(thread, span):
            return f"Thread {thread} reads {_quote(span.text)}."
        # What comes into a sequence from elsewhere.
        case Instructed(thread, span):
            return f"The program of thread {thread} writes {_quote(span.text)} into its sequence."
        case Returned():
            return _describe_return(episode, event, number)
        case Referred(thread, child, span):
            return (
                f"{_quote(span.text)} stands for thread {child}, and thread {thread} goes on "
                "without waiting."
            )
        case Waiting(thread, child):
            return f"Thread {thread} needs what thread {child} returns, and waits for it."
        case Resolved(thread, child, future, _, text):
            return f"In thread {thread}, {future} is now {_quote(text)}, from thread {child}."
        case Edited():
            return _describe_edit(event)
        # How it ends.
        case Ended(thread, status, detail):
            return f"Thread {thread} is over: {status}{f' ({detail})' if detail else ''}."
        case Closed(status, reward):
            result = "" if reward is None else f", reward {describe_reward(reward)}"
            return f"The episode is over: {status}{result}."
    return ""


def _describe_spawn(episode: Episode, event: Spawned, number: int) -> str:
    if event.parent is None:
        begins = f"Thread {event.thread}, the main thread, begins. Its context is the task."
        names = ", ".join(event.variables)
        return f"{begins} The environment gives it the variables {names}." if names else begins
    waits = "waits" if event.future is None else f"goes on; {{{event.future}}} stands for it"
    title = _quote(episode.threads[event.thread].title)
    spawns = f"Thread {event.parent} spawns thread {event.thread} and {waits}."
    if "program" in episode.header:  # another method says itself what a child is given
        return f"{spawns} Its context is {title}."
    name = name_exchange(episode, "phi", number) or "phi"
    how = _EXCHANGES.get(name, f"by {name}, from thread @").replace("@", str(event.parent))
    copied = pluralize(len(episode.threads[event.parent].variables), "variable")
    gets = {
        "shared": f", and it shares {copied} with it",
        "own": ", and it begins without its variables"
        + (", but for the environment's" if episode.at_first else ""),
        "none": "",
    }.get(str(episode.header.get("scope")), f", and it gets a copy of {copied}")
    return (
        f"{spawns} phi makes its context {how}: {title}. Of its parent it sees nothing else{gets}."
    )


def _describe_call(episode: Episode, event: GeneratedSpan) -> str:
    thread, dialect = event.thread, episode.dialect
    listen, end = dialect.listen, dialect.end
    tokens = pluralize(len(event.span), "token")
    match event.stop:
        case Stop.LISTEN:
            return f"Thread {thread} wrote {tokens} and {listen}: it listens."
        case Stop.SPAWN:
            return (
                f"Thread {thread} wrote {tokens} and {dialect.spawn}: it spawns, and does not wait."
            )
        case Stop.END:
            return f"Thread {thread} wrote {tokens} and {end}: it ends."
        case Stop.END_OF_STREAM:
            return f"Thread {thread} wrote {tokens}, and its text ends without {end}."
        case Stop.LENGTH:
            return f"Thread {thread} wrote {tokens} and is cut there: its new tokens are used up."
        case Stop.CONTEXT:
            return f"Thread {thread} wrote {tokens}; the model can see no more."
    return f"Thread {thread} wrote {tokens} and was stopped."


def _describe_line(event: ExecutedLine) -> str:
    if event.error:
        what = "A variable of the child" if event.line == OF_CHILD else _quote(event.line.strip())
        return f"{what} failed in thread {event.thread}: {_quote(event.error)}."
    results = [f"{name} is {shorten(repr(value), QUOTED)}" for name, value in event.changed.items()]
    if event.printed is not None:
        results.append(f"it printed {_quote(event.printed)}")
    outcome = f": {'; '.join(results)}" if results else ""
    return f"{_quote(event.line.strip())} ran in thread {event.thread}{outcome}."


def _describe_return(episode: Episode, event: Returned, number: int) -> str:
    name = name_exchange(episode, "psi", number) or "psi"
    how = _EXCHANGES.get(name, f"what {name} makes of thread @").replace("@", str(event.child))
    names = ""
    if event.variables:
        names = f" With it come the variables that it names: {', '.join(event.variables)}."
    stands = f"{_quote(event.span.text)} stands in thread {event.thread}.{names}"
    if "program" in episode.header:
        return f"Thread {event.child} has handed this back: {stands}"
    if event.child in episode.threads[event.thread].replaced:
        return f"What a person has written in its place comes back: {stands}"
    child = episode.threads[event.child]
    if not child.status.is_end:
        return f"Thread {event.child} did not end by itself, which its parent is told: {stands}"
    text = event.span.text.removesuffix(episode.dialect.after_close)
    if any(line.error == text.removesuffix(episode.dialect.close) for line in child.executed):
        return f"A line of thread {event.child} failed, and psi takes its error: {stands}"
    return f"psi takes {how}: {stands}"


def _describe_edit(event: Edited) -> str:
    if event.what == "forbidden":
        return f"Here thread {event.thread} was kept from spawning."
    if event.what == "variables":
        values = ", ".join(f"{name} = {value!r}" for name, value in event.variables.items())
        return f"Here a person set {shorten(values, QUOTED)} in thread {event.thread}."
    thing = {"context": "the context of a child", "returned": "what a child returned"}
    return (
        f"Here a person changed {thing.get(event.what, f'the {event.what}')} in thread "
        f"{event.thread}: {_quote(event.was)} became {_quote(event.now)}."
    )


def _quote(text: str) -> str:
    return f"“{shorten(text.strip(), QUOTED)}”"
