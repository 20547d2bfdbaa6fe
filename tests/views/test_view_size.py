"""What a view holds is bounded by its trace: a few tokens of a model fill no page and no memory."""

from __future__ import annotations

import pytest
from helpers.episodes import span

from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode, TraceError
from thread_kit.trace.events import ExecutedLine, Pictured, Spawned
from thread_kit.views.html import episode_html
from thread_kit.views.view_model import MORE, view_episode

CONTEXT = span(Provenance.CONTEXT, "Prompt:\nx =>\n\nResponse:\n#START#\n")


def family(children: int, variables: int, *, changed: int = 0, scope: str = "exported") -> Episode:
    """A main thread with variables, and children that inherit them and change some."""
    episode = Episode({"model": {}, "prompts": {}, "scope": scope})
    first = {f"v{n}": n for n in range(variables)}
    episode.add(Spawned(0, None, 0, CONTEXT, "", None, first))
    for child in range(1, children + 1):
        episode.add(Spawned(child, 0, 0, CONTEXT, ""))
        for n in range(changed):
            episode.add(ExecutedLine(child, f"v{n} = 'own'", None, None, {f"v{n}": "own"}))
    return episode


def test_what_is_shown_does_not_grow_with_threads_times_variables():
    one, many = (len(episode_html(family(children, 3_000))) for children in (1, 41))
    assert (many - one) / 40 < one / 20


def test_a_child_shows_what_it_changed_and_the_latest_that_it_inherited():
    child = view_episode(family(1, 3_000, changed=2)).threads[1]
    more, *rows = child.variables
    assert more == (MORE, "2,958 more that it inherited")
    assert rows[:2] == [("v0", "'own'"), ("v1", "'own'")]
    assert [name for name, _ in rows[2:]] == [f"v{n}" for n in range(2_960, 3_000)]
    assert "variables: 42, 2,958 more that it inherited" in episode_html(
        family(1, 3_000, changed=2)
    )
    few = view_episode(family(1, 5, changed=1)).threads[1].variables
    assert few == (("v0", "'own'"), *((f"v{n}", str(n)) for n in range(1, 5)))


def test_children_share_what_they_inherit_until_one_of_them_changes_it():
    episode = family(2, 5)
    threads = episode.threads
    assert threads[0].variables is threads[1].variables is threads[2].variables
    episode.add(ExecutedLine(0, "v1 = 9", None, None, {"v1": 9}))
    episode.add(ExecutedLine(1, "del v2", None, None, {}, ("v2",)))
    assert [thread.variables["v1"] for thread in threads.values()] == [9, 1, 1]
    assert ["v2" in thread.variables for thread in threads.values()] == [True, False, True]


@pytest.mark.parametrize(("scope", "seen"), [("shared", ["own"] * 3), ("own", [0, "own", "own"])])
def test_other_scopes_share_all_or_nothing(scope, seen):
    episode = family(2, 5, changed=1, scope=scope)
    assert [thread.variables["v0"] for thread in episode.threads.values()] == seen
    assert dict(episode.at_first) == {f"v{n}": n for n in range(5)}


def test_a_file_whose_threads_would_fill_memory_is_refused(monkeypatch):
    lines = list(family(3, 40, changed=1).to_lines())
    monkeypatch.setattr("thread_kit.trace.episode.COPIED", 100)
    with pytest.raises(TraceError, match="more than 100 variables of their own"):
        Episode.from_lines(lines)


def test_a_picture_is_in_the_page_once():
    episode = family(2, 0)
    episode.add(Pictured(0, "/scratch/1.png", "AAAA"))
    for thread in episode.threads:
        line = "p = '/scratch/1.png'"
        episode.add(ExecutedLine(thread, line, None, None, {"p": "/scratch/1.png"}))
    text = episode_html(episode)
    assert text.count("base64,AAAA") == 1
    assert text.count("/scratch/1.png: shown with thread") == 2
