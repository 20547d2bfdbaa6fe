"""DataCommons QA: sources, generated questions, grading, and whole episodes in the jail."""

from __future__ import annotations

import http.server
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thread_kit.dialect import QA, QA_ASYNC
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.datacommons.benchmark import DATACOMMONS
from thread_kit.envs.datacommons.client import KEY, DataCommons, _file_name
from thread_kit.envs.datacommons.env import QUESTIONS, DataCommonsQA
from thread_kit.envs.datacommons.questions import KINDS, MIDDLE
from thread_kit.envs.datacommons.rules import DataCommonsScript
from thread_kit.envs.datacommons.statistics import OpenStatistics
from thread_kit.envs.qa.grading import is_right
from thread_kit.envs.qa.kinds import correlation, forecast, slope
from thread_kit.requests import Status
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.session.session import Session

open_data = pytest.mark.statistics

FILE = "question\tdc_answer\nWas it higher in Ada or in Bel?\tBel\nDid it rise?\tincreasing\n"


@pytest.fixture
def env(request):
    return DataCommonsQA("test", getattr(request, "param", 0))


# Grading


@pytest.mark.parametrize(
    ("given", "answer", "right"),
    [
        ("Ohio", "ohio", True),
        ("Ohio.", "Ohio", True),
        ("in BUCKS Pennsylvania", "BUCKS Pennsylvania", True),
        ("Texas", "Ohio", False),
        ("", "Ohio", False),
        (" ", "Ohio", False),
        ("12.7", "12.2", True),
        ("13.0", "12.9", False),
        ("10032", "10032", True),
        ("about 12", "12", False),  # as in the released code, which wants a number for one
        ("hour 15.0", "5.0", False),
        ("patient 210013", "10013", False),
        ("112 hours", "12", False),
        ("inf", "12", False),
        ("nan", "higher", False),
        # What nobody would hand in who wants to be understood.
        ("1e999", "1", False),
        ("-inf", "12", False),
        ("9" * 100_000, "9", False),
        ("１２", "12", True),
        ("²", "2", False),
        ("['Ohio']", "Ohio", True),
        ("[12]", "12", False),
        ("Bucks", "BUCKS Pennsylvania", True),
        ("Buck", "BUCKS Pennsylvania", False),
        ("o", "Ohio", False),
        ("hi", "higher", False),
        (".", "12.5", False),
        ("_", "Rate_Murder", False),
        ("(" * 1_000, "Ohio", False),
        ("\ud800", "Ohio", False),
        ("x" * 1_000_000, "Ohio", False),
        ("Ohio or Iowa", "Ohio", True),  # as it is published: the text holds the name
    ],
)
def test_grading_is_the_benchmarks(given, answer, right):
    assert is_right(given, answer) is right


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So.\nFinal Answer: Ohio\n", "Final Answer: Ohio"),
        ("Final Answer: Iowa\n  Final Answer: Ohio", "Final Answer: Ohio"),
        ("Final Answer:\n\n Ohio \nAnd so on.", "Final Answer: Ohio"),
        ("Final Answer:", "Final Answer: "),
        ("Final Answer:\nFinal Answer: 12", "Final Answer: 12"),
        ("The final answer: Ohio", None),
        ("My Final Answer: Ohio", None),
    ],
)
def test_an_answer_is_behind_its_mark_on_its_line_or_the_next(env, text, answer):
    assert env.answer(text) == answer


@given(st.text(), st.text(min_size=1))
def test_any_answer_can_be_graded_and_what_is_right_the_benchmarks_take(answer, expected):
    if is_right(answer, expected):
        low, right = answer.strip().lower(), expected.strip().lower()
        try:
            assert int(float(low)) == int(float(right))
        except (ValueError, OverflowError):
            assert low in right or right in low


# Open statistics


@open_data
def test_look_ups_take_their_arguments_by_name(env):
    functions = env.functions
    (place,) = functions["find_places"](words="Ohio")
    variable, *_ = functions["find_variables"](words="robberies")
    rows = functions["observations"](place_ID=place["ID"], variable_ID=variable["ID"])
    assert rows == functions["observations"](place["ID"], variable["ID"])


@open_data
def test_a_place_is_found_by_its_name_and_not_by_a_part_of_it(env):
    assert [place["name"] for place in env.source.find_places("Arkansas")] == ["Arkansas"]
    both = env.source.find_places("Virginia and West Virginia")
    assert [place["name"] for place in both] == ["Virginia", "West Virginia"]
    assert env.source.find_places("rate in West Virginia") == [
        {"name": "West Virginia", "ID": "geoId/54"}
    ]


@open_data
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.find_places("Virgina"), "Did you mean Virginia"),
        (lambda s: s.find_places("Atlantis on sea"), "Name a US state"),
        (lambda s: s.find_places("USA"), "or the United States"),
        (lambda s: s.find_variables("asthma"), "There are: the income per person"),
        (lambda s: s.observations("geoId/99", "Rate_Polio"), "look it up with find_places"),
        (lambda s: s.observations("geoId/54", "Rate_Colds"), "look it up with find_variables"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence_with_the_remedy(env, call, message):
    with pytest.raises(LookupError, match=message):
        call(env.source)


@open_data
def test_ambiguous_words_give_all_that_fit(env):
    found = env.source.find_variables("crime or murder")
    assert {"Rate_ViolentCrime", "Rate_Murder"} <= {row["ID"] for row in found}


@open_data
def test_the_country_is_the_mean_over_the_states_by_their_people(env):
    table = env.source.table
    states = table[(table["variable"] == "Rate_Murder") & (table["date"] == 1990)]
    country = states[states["place"] == "country/USA"]["value"].item()
    others = states[states["place"] != "country/USA"]["value"]
    assert len(others) == 51
    assert country == pytest.approx(9.4, abs=0.2)  # the FBI's figure for 1990
    assert others.min() < country < others.max()


# Questions


@open_data
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_number_gives_the_same_question_again(split):
    first = [DataCommonsQA(split, n).question for n in range(25)]
    assert [DataCommonsQA(split, n).question for n in range(25)] == first
    assert {question.kind for question in first} == {kind.name for kind in KINDS}


@open_data
def test_the_splits_share_no_place_variable_or_year():
    seen = {}
    for split in ("train", "test"):
        questions = [DataCommonsQA(split, n).question for n in range(120)]
        places = {place for q in questions for place, _ in q.needs} - {"country/USA"}
        variables = {variable for q in questions for _, variable in q.needs}
        # Of a forecast those that it goes by, and not the one that it is for.
        spans = [re.search(r"from (\d{4}) to (\d{4})", q.text, re.I) for q in questions]
        single = [re.search(r"in (\d{4})", q.text, re.I) for q in questions]
        found = [one or other for one, other in zip(spans, single, strict=True)]
        seen[split] = places, variables, [int(year) for one in found for year in one.groups()]
    assert not seen["train"][0] & seen["test"][0]
    assert not seen["train"][1] & seen["test"][1]
    assert max(seen["train"][2]) < MIDDLE <= min(seen["test"][2])


def test_the_programs_compute_what_their_names_say():
    years = [2000, 2001, 2003]
    line = pd.Series([1.0, 3.0, 7.0], index=years)
    assert slope(line) == pytest.approx(2)
    assert forecast(line, 2010) == pytest.approx(21)
    other = pd.Series([5.0, 4.0, 9.0, 3.0], index=[1999, *years])
    expected = np.corrcoef([1, 3, 7], [4, 9, 3])[0, 1]
    assert correlation(line, other) == pytest.approx(expected)


@open_data
def test_the_answer_follows_from_the_figures():
    for number in range(60):
        question = DataCommonsQA("test", number).question
        kind = next(kind for kind in KINDS if kind.name == question.kind)
        assert len(question.needs) == kind.subjects + (kind.group is not None)
        larger = question.figures[0] > (*question.figures, 0.0)[1]
        if question.answer in ("higher", "increasing", "increase", "above", "positive"):
            assert larger
        elif question.answer in ("lower", "decreasing", "decrease", "below", "negative"):
            assert not larger
        else:
            assert question.answer in question.text


# The benchmark's own file


@open_data
def test_the_benchmarks_questions_come_from_a_file(tmp_path):
    path = tmp_path / "questions.txt"
    path.write_text(FILE)
    assert [question.answer for question in QUESTIONS.load(path)] == ["Bel", "increasing"]
    own = {"questions": path, "source": OpenStatistics()}
    env = DataCommonsQA("test", 1, **own)
    assert env.task == {"split": "test", "number": 1, "questions": "questions.txt"}
    assert env.again().question.text == env.question.text == "Did it rise?"
    with pytest.raises(ValueError, match="choose 0 to 1"):
        DataCommonsQA("test", 2, **own)
    with pytest.raises(ValueError, match="all of the split test, not 'train'"):
        DataCommonsQA("train", 0, **own)


@open_data
def test_the_command_takes_the_file_that_the_variable_names(tmp_path, monkeypatch):
    path = tmp_path / "questions.txt"
    path.write_text(FILE)
    monkeypatch.setenv(QUESTIONS.variable, str(path))
    monkeypatch.setenv("THREAD_KIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(KEY, raising=False)
    with pytest.raises(ValueError, match=f"set {KEY} to a key of yours"):
        DATACOMMONS.tasks("test")
    monkeypatch.setenv(KEY, "ours")
    tasks = DATACOMMONS.tasks("test")
    questions = [DATACOMMONS.environment(**task.arguments).question for task in tasks]
    assert [question.answer for question in questions] == ["Bel", "increasing"]
    chosen = DATACOMMONS.choose("1")
    assert DATACOMMONS.environment(split="test", **chosen).question == questions[1]
    assert DATACOMMONS.environment(split="train", **chosen).question not in questions
    row = {"environment": "datacommons"} | DATACOMMONS.environment(**tasks[1].arguments).task
    assert row["questions"] == "questions.txt"
    assert DATACOMMONS.stands_in(row), "it is another file"
    assert not DATACOMMONS.stands_in({**row, "questions": "datacommons_qa_benchmark.txt"})
    assert DATACOMMONS.stands_in({**row, "questions": None})
    assert len(DATACOMMONS.tasks("train")) > 2, "the file has none of them"
    (tmp_path / "cache" / "datacommons").mkdir(parents=True)
    monkeypatch.delenv(KEY)
    assert len(DATACOMMONS.tasks("test")) == 2, "what was fetched needs no key"


def test_a_file_that_is_not_there_or_of_another_form_names_the_remedy(tmp_path):
    with pytest.raises(FileNotFoundError, match="philipmit/thread"):
        QUESTIONS.load(tmp_path / "none.txt")
    (tmp_path / "other.txt").write_text("a\tb\n1\t2\n")
    with pytest.raises(ValueError, match="no columns question and dc_answer"):
        QUESTIONS.load(tmp_path / "other.txt")
    (tmp_path / "short.txt").write_text(FILE + "Who?\n")
    with pytest.raises(ValueError, match="in all rows"):
        QUESTIONS.load(tmp_path / "short.txt")


# The environment


@open_data
def test_an_answer_is_handed_in_once(env):
    assert env.reset() == f"Question: {env.question.text}"
    assert env.step("look").info == {"answer": None, "solved": False}
    right = env.step(f"Final Answer: {env.question.answer}")
    assert (right.reward, right.terminated) == (1.0, True)
    assert env.step("Final Answer: x").reward == 0.0
    assert env.again().step("Final Answer: nowhere").info["solved"] is False


@open_data
@pytest.mark.parametrize("answer", ["", "nan", "1e400", "\ud800", "#END#", "9" * 5_000, "[[" * 999])
def test_whatever_is_handed_in_ends_the_task_with_facts_for_the_trace(env, answer):
    step = env.step(env.answer(f"Final Answer: {answer}\n"))
    assert (step.reward, step.terminated, step.info["solved"]) == (0.0, True, False)
    assert json.loads(json.dumps(step.info))["right"] == env.question.answer


@open_data
@pytest.mark.parametrize("argument", [["geoId/39"], {"a": 1}, None, 10**99, "x" * 10_000])
def test_arguments_of_other_types_are_feedback_and_are_not_kept(env, argument):
    with pytest.raises(LookupError, match="look it up with find_places"):
        env.functions["observations"](argument, argument)
    assert env.step("Final Answer: x").info["asked"] == []


@open_data
def test_a_lookup_is_kept_once(env):
    for _ in range(3):
        env.functions["observations"]("geoId/39", "Rate_Murder")
    assert env.step("Final Answer: x").info["asked"] == [["geoId/39", "Rate_Murder"]]


@open_data
def test_the_last_final_answer_of_a_text_counts(env):
    text = "Final Answer: a\nNo.\nFinal Answer: b "
    assert env.answer(text) == "Final Answer: b"
    assert env.answer("b") is None


@open_data
@pytest.mark.jail
@pytest.mark.parametrize(
    ("number", "dialect"), [(0, QA), (13, QA), (17, QA), (20, QA), (15, QA_ASYNC)]
)
def test_the_threads_of_a_script_answer_from_what_the_jail_computes(number, dialect):
    env = DataCommonsQA("test", number)
    engine = ScriptedEngine(DataCommonsScript(env, dialect))
    episode = Session(engine, env, dialect=dialect).run(progress=False)
    assert (episode.status, episode.reward) == (Status.ENDED, 1.0)
    assert set(env.lookups) == set(env.question.needs)
    assert not [
        line for thread in episode.threads.values() for line in thread.executed if line.error
    ]


@open_data
@pytest.mark.jail
def test_a_place_that_is_not_there_is_feedback_to_the_thread(env):
    replies = ["# > print(find_places('Virgina')) =>", "\nFinal Answer: Ohio\n#END#"]
    with BubblewrapSandbox(env.functions) as sandbox:
        session = Session(ScriptedEngine(replies), env, dialect=QA, sandbox=sandbox)
        text = session.run(progress=False).threads[0].sequence.text
    assert "=>LookupError: No place is known by the words 'Virgina'. Did you mean" in text


@open_data
@pytest.mark.jail
def test_a_fork_of_an_episode_lives_its_past_again_in_a_jail_of_its_own():
    env = DataCommonsQA("test", 14)
    session = Session(ScriptedEngine(DataCommonsScript(env)), env, dialect=QA)
    episode = session.run(progress=False)
    again = session.fork(len(episode.events) - 3, engine=ScriptedEngine(DataCommonsScript(env)))
    assert again.run(progress=False).reward == 1.0


# Data Commons, with its real client and a server of our own


class Served(http.server.BaseHTTPRequestHandler):
    """Answers as Data Commons' API does."""

    asked: list[str] = []  # noqa: RUF012

    def do_GET(self):
        self._reply({"data": {"country/GTM": {}}})

    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(self.path)
        if "resolve" in self.path:
            (node,) = sent["nodes"]
            candidates = [] if "Atlantis" in node else [{"dcid": "geoId/39"}]
            self._reply({"entities": [{"node": node, "candidates": candidates}]})
            return
        (variable,) = sent["variable"]["dcids"]
        (place,) = sent["entity"]["dcids"]
        rows = [{"date": "2019", "value": 2.5}, {"date": "2018", "value": 1.5}, {"date": "2020"}]
        facet = {"facetId": "7", "observations": rows if place == "geoId/39" else []}
        by = {variable: {"byEntity": {place: {"orderedFacets": [facet]}}}}
        facets = {"7": {"importName": "Ours", "provenanceUrl": "here"}}
        self._reply({"byVariable": by, "facets": facets})

    def _reply(self, data):
        text = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    Served.asked.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@open_data
def test_a_series_is_fetched_once_and_says_where_it_is_from(server, tmp_path):
    source = DataCommons(tmp_path, url=server)
    assert source.find_places("Ohio") == [{"name": "Ohio", "ID": "geoId/39"}]
    expected = [{"date": "2018", "value": 1.5}, {"date": "2019", "value": 2.5}]
    assert source.observations("geoId/39", "Rate") == expected
    asked = len(Served.asked)
    assert DataCommons(tmp_path, url=server).observations("geoId/39", "Rate") == expected
    assert len(Served.asked) == asked
    (path,) = tmp_path.glob("observations/*.parquet")
    table = pd.read_parquet(path)
    assert set(table["source"]) == {"Ours"}
    assert table["fetched"].str.len().eq(25).all()


@open_data
def test_the_cache_is_read_while_others_write_it(server, tmp_path):
    with ThreadPoolExecutor(4) as readers:
        for number in range(10):
            folder = tmp_path / str(number)
            sources = [DataCommons(folder, url=server) for _ in range(4)]
            read = readers.map(lambda source: source.observations("geoId/39", "Rate"), sources)
            assert [len(rows) for rows in read] == [2] * 4


@open_data
def test_no_values_and_no_place_are_feedback(server, tmp_path):
    source = DataCommons(tmp_path, url=server)
    with pytest.raises(LookupError, match="no place by the words 'Atlantis'"):
        source.find_places("Atlantis")
    with pytest.raises(LookupError, match="has no values of Rate for geoId/40"):
        source.observations("geoId/40", "Rate")


@open_data
def test_an_episode_without_its_data_says_nothing_of_a_method(tmp_path, monkeypatch):
    path = tmp_path / "questions.txt"
    path.write_text(FILE)
    monkeypatch.setenv(KEY, "ours")
    nowhere = DataCommons(tmp_path, url="http://127.0.0.1:1")
    env = DataCommonsQA("test", 0, questions=path, source=nowhere)
    env.reset()
    with pytest.raises(LookupError, match="cannot be reached"):
        env.functions["observations"]("geoId/39", "Rate")
    with pytest.raises(ConnectionError, match="Play the episode again"):
        env.step("Final Answer: Bel")
    again = env.again()
    again.reset()
    assert again.step("Final Answer: Bel").reward == 1, "it was missing in the other episode"
    with pytest.raises(ConnectionError, match="Play the episode again"):
        env.step("Final Answer: Bel")
    env.reset()
    assert env.step("Final Answer: Bel").reward == 1, "nothing was missing"


@open_data
def test_words_of_any_length_have_a_file_in_the_cache(server, tmp_path):
    source = DataCommons(tmp_path, url=server)
    words = ["ä" * 300, "ä" * 301, "../" * 200, "\ud800"]
    for text in words[:3]:
        assert source.find_places(text) == [{"name": text, "ID": "geoId/39"}]
    names = {_file_name(text) for text in words}
    assert _file_name("a--b", "c") != _file_name("a", "b--c")
    with pytest.raises(TypeError, match="a text"):  # it would be kept as of "Ohio"
        source.find_places(["Oh", "io"])
    assert len(names) == len(words)
    assert not any("/" in name or len(name.encode()) > 240 for name in names)


@open_data
def test_without_key_or_network_the_cache_still_answers(server, tmp_path, monkeypatch):
    DataCommons(tmp_path, url=server).observations("geoId/39", "Rate")
    monkeypatch.delenv(KEY, raising=False)
    offline = DataCommons(tmp_path)
    assert len(offline.observations("geoId/39", "Rate")) == 2
    with pytest.raises(LookupError, match=f"not in the cache, and {KEY} is not set"):
        offline.observations("geoId/39", "Other")
    nowhere = DataCommons(tmp_path, url="http://127.0.0.1:1")
    with pytest.raises(LookupError, match="cannot be reached"):
        nowhere.observations("geoId/39", "Other")


@pytest.mark.statistics
@pytest.mark.parametrize("words", ["Washington, D.C.", "Washington DC", "crime in washington d.c."])
def test_the_capital_is_no_state(words):
    (found,) = OpenStatistics().find_places(words)
    assert found["name"] == "District Of Columbia"
    assert OpenStatistics().find_places("Washington")[0]["name"] == "Washington"
