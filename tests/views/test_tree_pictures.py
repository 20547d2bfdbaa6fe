"""The drawing of the tree as a picture, and the figure of one phi and psi for a slide."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from helpers.episodes import chain, session, span
from matplotlib.figure import Figure

import thread_kit as tk
from thread_kit import exchange
from thread_kit.bench.player import large_episode
from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Spawned
from thread_kit.views.tree_edge import draw_edge, save_edge
from thread_kit.views.tree_image import FORMS, save_picture
from thread_kit.views.tree_layout import layout_boxes
from thread_kit.views.tree_nodes import SMALL, list_actions, radius
from thread_kit.views.view_model import view_episode
from thread_kit.views.work_picture import draw_work

HOSTILE = "Prompt:\n$x^2$ <&> \x1b[2J \ud800 =>\n\nResponse:\n"


def gate() -> Episode:
    return Episode.load(tk.resource("data/episodes/acacia-fence-gate.jsonl"))


def texts(svg: str) -> str:
    return "".join(ElementTree.fromstring(svg).itertext())


@pytest.mark.parametrize(
    ("form", "kind"), [("nodes", "svg"), ("nodes", "pdf"), ("nodes", "png"), ("work", "svg")]
)
def test_a_drawing_is_the_same_each_time(form, kind, tmp_path):
    first, second = (save_picture(gate(), tmp_path / f"{n}.{kind}", form=form) for n in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_a_drawing_names_threads_actions_and_what_its_signs_mean(tmp_path):
    episode = gate()
    text = texts(save_picture(episode, tmp_path / "a.svg", form="nodes").read_text("utf-8"))
    for thread in view_episode(episode).threads.values():
        assert f"{thread.id}  {thread.label[:50]}" in text
    assert "> craft 1 stick using 2 bamboo  (4 times)" in text
    assert "> craft 1 acacia fence gate using 4 stick, 2 acacia planks" in text
    for sign in ("ended by itself", "phi: what a child is given", "psi: what comes back", "area:"):
        assert sign in text
    assert "cut by a limit" not in text, "no legend for what is not there"


def test_a_picture_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = save_picture(gate(), tmp_path / "a.png", form="nodes")
    before = path.read_bytes()

    def draw(episode):
        figure = Figure()
        monkeypatch.setattr(figure, "savefig", write_half)
        return figure

    def write_half(part, **options):
        part.write_bytes(before[:100])
        raise OSError("no space left on device")

    monkeypatch.setitem(FORMS, "nodes", draw)
    with pytest.raises(OSError, match="no space left"):
        save_picture(gate(), path, form="nodes")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_drawing_takes_any_text_depth_and_number_of_threads(tmp_path):
    episode = chain(200)
    episode.add(Spawned(200, 0, 0, span(Provenance.CONTEXT, HOSTILE), ""))
    text = texts(save_picture(episode, tmp_path / "a.svg", form="nodes").read_text("utf-8"))
    assert "200  $x^2$ <&>" in text
    save_picture(large_episode(200, 2000), tmp_path / "large.png", form="nodes")


def test_another_form_and_a_thread_that_there_is_not_are_refused(tmp_path):
    for options, said in (
        ({"form": "circle"}, "'rows' or 'nodes' or 'work'"),
        ({"form": "nodes", "thread": 1}, "form='nodes' has all threads"),
        ({"form": "work", "thread": 99}, "there is no thread 99; choose one of 0 to 8"),
    ):
        with pytest.raises(ValueError, match=said):
            save_picture(gate(), tmp_path / "a.svg", **options)


def test_figure_3_has_the_work_of_each_token_and_the_tree_below_it(tmp_path):
    """THREAD paper, Figure 3; as `supplemental_work_figure`, for a paper."""
    episode = gate()
    work = episode.supplemental_work(1)
    above, ribbon, below = draw_work(episode, 1).axes
    heights, edges, _ = above.patches[0].get_data()
    assert list(heights) == work
    assert (edges[0], edges[-1]) == (-0.5, len(work) - 0.5)
    assert sum(patch.get_width() for patch in ribbon.patches) == len(work)
    threads = [one.id for one in episode.subtree(1)][1:]
    assert sorted(int(text.get_text()) for text in below.texts) == sorted(threads)
    text = texts(save_picture(episode, tmp_path / "a.svg", form="work", thread=1).read_text())
    for word in ("Supplemental work in thread 1", "returned", "thread, ended (area: tokens"):
        assert word in text


def test_figure_3_of_what_is_hostile_or_empty(tmp_path):
    episode = chain(40)
    episode.add(Spawned(40, 0, 0, span(Provenance.CONTEXT, HOSTILE), ""))
    for thread in (0, 40):  # one has forty levels below it, one wrote nothing
        path = save_picture(episode, tmp_path / "a.svg", form="work", thread=thread)
    assert "$x^2$ <&>" in texts(path.read_text("utf-8"))


def test_each_subtree_has_a_box_of_its_own():
    view = view_episode(large_episode(120, 500))
    places = layout_boxes(view)
    assert places.keys() == view.threads.keys()
    for thread in view.threads.values():
        assert places[thread.id][1] == thread.depth
        if thread.children:
            xs = [places[child][0] for child in thread.children]
            assert xs == sorted(xs)
            assert min(xs) <= places[thread.id][0] <= max(xs)
    assert len(set(places.values())) == len(places)


def test_the_area_grows_with_the_tokens():
    areas = [radius(part) - SMALL for part in (0, 0.25, 1)]
    assert areas[0] == 0
    assert areas[2] == pytest.approx(2 * areas[1])


def test_actions_in_a_row_that_are_the_same_are_one_line():
    view = view_episode(session().run(progress=False))
    assert list_actions(view.threads[1]) == ["open shed"]


def test_an_edge_marks_what_phi_took_and_what_psi_gave_back(tmp_path):
    episode = gate()
    path = save_edge(episode, 2, tmp_path / "edges" / "edge.svg")
    svg = path.read_text("utf-8")
    assert svg == draw_edge(episode, 2) == draw_edge(episode, 2)
    text = texts(svg)
    for part in ("Thread 1", "Thread 2", "φ  phi_last_line", "ψ  psi_print", "{runs}", "Done."):
        assert part in text
    # Marked in the parent, in the child's context, in its print, and where it came back.
    assert len(re.findall(r'fill="rgba\(230,159,0,0.45\)"', svg)) >= 6
    assert "runs = -(-count // int(command.split()[1]))" in text, "where a value was assigned"


def test_an_edge_takes_any_text_and_a_child_that_gives_nothing_back():
    episode = chain(2)
    episode.add(Spawned(2, 0, 0, span(Provenance.CONTEXT, HOSTILE), ""))
    svg = draw_edge(episode, 2)
    assert "$x^2$ <&> ␛[2J" in texts(svg)
    assert "ψ" not in texts(svg)


def test_an_edge_names_what_made_it_and_nothing_where_a_method_has_no_phi():
    session = tk.Session(tk.ScriptedEngine(["go, now =>", "#END#", "#END#"]), context="go =>")
    session.run(progress=False)
    fork = session.fork(len(session.episode.events) - 1, phi=exchange.phi_full_sequence)
    assert "φ  phi_last_line" in texts(draw_edge(fork.run(progress=False), 1))
    labels = texts(draw_edge(tk.open_episode("prismarine-plan"), 1))
    assert not re.search("[φψ]  |phi_|psi_", labels)


def test_an_edge_of_whole_sequences_stays_a_figure():
    engine = tk.ScriptedEngine(
        ["x = 1\n" * 200 + "Now =>", "print('1')\n" * 100 + "#END#", "#END#"]
    )
    phi, psi = exchange.phi_full_sequence, exchange.psi_full_sequence
    episode = tk.Session(engine, context="go =>", phi=phi, psi=psi, new_tokens=9000).run(
        progress=False
    )
    svg = draw_edge(episode, 1)
    assert "more characters" in texts(svg)
    assert float(ElementTree.fromstring(svg).get("height")) < 20_000


def test_the_main_thread_and_one_that_is_not_have_no_edge(tmp_path):
    with pytest.raises(ValueError, match="thread 0 has no parent"):
        draw_edge(gate(), 0)
    with pytest.raises(KeyError):
        draw_edge(gate(), 99)
    with pytest.raises(ValueError, match=r"is an \.svg"):
        save_edge(gate(), 1, tmp_path / "edge.png")
