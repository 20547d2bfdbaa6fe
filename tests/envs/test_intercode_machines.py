"""StateFlow's machines for SQL and Bash: what its paper says of them, in the real engines."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from helpers.episodes import of_kind
from helpers.intercode import use_own_files

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.intercode.interaction import STATEFLOW
from thread_kit.envs.intercode_bash.benchmark import BASH
from thread_kit.envs.intercode_bash.env import InterCodeBash
from thread_kit.envs.intercode_sql.benchmark import SQL
from thread_kit.envs.intercode_sql.env import InterCodeSql
from thread_kit.envs.intercode_sql.questions import tasks
from thread_kit.experiments.episode_facts import list_states
from thread_kit.experiments.method_registry import list_methods, load_method
from thread_kit.methods.state_outputs import list_agents
from thread_kit.prompts import load_instructions
from thread_kit.requests import Status
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Acted

RECORDS = {"sql": SQL, "bash": BASH}
MAKE = {"sql": InterCodeSql, "bash": InterCodeBash}
JOIN = (
    "SELECT T1.name FROM ship AS T1 JOIN harbour AS T2 ON T1.home_harbour = T2.harbour_id "
    "WHERE T2.island = 'Bresk'"
)
COUNT = "cat $(find /shop/logs -name '*.log') | grep -c error"
PLAYS = {
    # The paper's sunny day (section 3.3): Init, Observe, Solve, Verify, End
    ("sql", "dev", 0): [
        ("Observe", "DESC book", "[('book_id', 'int'"),
        ("Solve", "SELECT count(*) FROM book", "[(9,)]"),
        ("Verify", "submit", "Submitted."),
    ],
    # all states, as in Figure 3
    ("sql", "train", 2): [
        ("Observe", "DESC ship", "[('ship_id', 'int'"),
        (
            "Solve",
            "SELECT name FROM ship WHERE island = 'Bresk'",
            "Error executing query: no such column: island",
        ),
        ("Error", "DESC harbour", "[('harbour_id', 'int'"),
        ("Solve", JOIN, "[('Petrel',), ('Skua',), ('Auk',)]"),
        ("Verify", "submit", "Submitted."),
    ],
    ("sql", "train", 0): [
        ("Observe", "DESC ships", "Error executing query: "),
        ("Error", "DESCRIBE ship", "[('ship_id', 'int'"),
        (
            "Solve",
            "SELECT name FROM ships ORDER BY built",
            "Error executing query: no such table: ships",
        ),
        ("Error", "SELECT name, built FROM ship ORDER BY built", "[('Auk', 1987), "),
        ("Verify", "SELECT name FROM ship ORDER BY built", "[('Auk',), "),
        ("Verify", "submit", "Submitted."),
    ],
    ("sql", "train", 3): [
        ("Observe", "DESC harbour", "[('harbour_id', 'int'"),
        ("Solve", "desc ship", "[('ship_id', 'int'"),
        ("Solve", "select island from harbour", "[('Aldra',), "),
        ("Verify", "SELECT island, sum(berth) FROM harbour GROUP BY island", "Error executing "),
        ("Error", "SHOW TABLES", "[('crossing',), "),
        ("Solve", "SELECT island, sum(berths) FROM harbour GROUP BY island", "[('Aldra', "),
        ("Verify", "DESC harbour", "[('harbour_id', 'int'"),
        ("Solve", "SELECT island, sum(berths) FROM harbour GROUP BY island", "[('Aldra', "),
        ("Verify", "SELECT island, sum(berths) FROM harbour GROUP BY island", "[('Aldra', "),
    ],
    # Bash: Init, Solve, Verify, End
    ("bash", "dev", 0): [
        ("Solve", "find /shop/parts -type f | wc -l", "Output: 4"),
        ("Verify", "submit", "Submitted."),
    ],
    ("bash", "train", 0): [
        ("Solve", "grep -c error /shop/logs", "Error (exit status 2): grep: /shop/logs: Is a dir"),
        ("Error", "find /shop/logs -name '*.log' | sort | xargs grep -c error", "Output: /shop/"),
        ("Verify", "grepp error", "Error (exit status 127): "),
        ("Error", "grep -c error /shop/log", "Error (exit status 2): "),
        ("Error", COUNT, "Output: 3"),
        ("Verify", "submit", "Submitted."),
    ],
    ("bash", "train", 1): [
        ("Solve", "wc -w < /shop/notes/friday.txt", "Output: "),
        ("Verify", "grep -l TODO /shop/notes/*.txt | sort", "Output: /shop/notes/friday.txt"),
        ("Verify", "submit", "Submitted."),
    ],
    ("bash", "train", 2): [
        ("Solve", "find /shop -name '*.sh' -exec chmod a+x {} +", "No output"),
        ("Verify", "find /shop -name '*.sh' -perm -a+x", "Output: /shop/"),
        ("Verify", "find /shop -name '*.sh' -exec chmod a+x {} +", "No output"),
        ("Verify", "submit", "Submitted."),
    ],
    ("bash", "train", 3): [
        (
            "Solve",
            "cp /shop/parts/*.csv /shop/backup",
            "Error (exit status 1): cp: target '/shop/backup': No such file or directory",
        ),
        ("Error", "mkdir /shop/backup && cp /shop/parts/*.csv /shop/backup", "No output"),
        ("Verify", "submit", "Submitted."),
    ],
}
"""By task: the states, what their agents do, and how the answer of the engine begins.

Where the last is no submission, the tenth round ends the task.
"""

pytestmark = pytest.mark.jail


def play(method: str, env, replies) -> Episode:
    """An episode in which the agents say this, and then nothing."""
    left = iter(replies)
    engine = ScriptedEngine(lambda text: next(left, "#END#"))
    episode = load_method(method, env.name)(engine, env, seed=0, path=None).run(progress=False)
    env.close()
    return episode


def act(*actions: str) -> list[str]:
    return [f"think: So.\n> {action} =>" for action in actions]


def states(episode: Episode) -> list[str]:
    """The states with a model that a machine visited."""
    text = episode.threads[0].sequence.text
    return re.findall(rf"^\[({'|'.join(SQL.machines['sql'].states)})\]", text, re.MULTILINE)


def observations(episode: Episode) -> list[str]:
    return [event.observation for event in of_kind(episode, Acted)]


# The papers' states and transitions (section 4.1, Figures 1, 3 and 10)


@pytest.mark.parametrize("method", ["stateflow", "sf_chat"])
@pytest.mark.parametrize("task", PLAYS, ids=lambda task: "-".join(map(str, task)))
def test_the_machine_goes_through_the_papers_states(task, method):
    name, split, number = task
    steps = PLAYS[task]
    env = MAKE[name](split, number)
    episode = play(method, env, act(*(action for _, action, _ in steps)))
    assert states(episode) == [state for state, _, _ in steps]
    seen = observations(episode)[1:] if name == "sql" else observations(episode)
    assert len(seen) == len(steps)
    for observation, (_, _, beginning) in zip(seen, steps, strict=True):
        assert observation.startswith(beginning)
    assert (episode.reward, episode.status) == (1, Status.ENDED)
    assert env.measures["turns"] == len(observations(episode))


@pytest.mark.parametrize("name", RECORDS)
def test_all_states_and_transitions_of_the_paper_are_played(name):
    """From each state to each that the paper names; End is the environment's."""
    plays = [steps for (env, *_), steps in PLAYS.items() if env == name]
    pairs = {(a, b) for steps in plays for (a, *_), (b, *_) in pairwise(steps)}
    after = {("Solve", "Verify"), ("Error", "Verify"), ("Verify", "Verify")}
    failed = {("Solve", "Error"), ("Verify", "Error")}
    if name == "sql":
        failed |= {("Observe", "Error")}
        after |= {("Observe", "Solve"), ("Solve", "Solve"), ("Error", "Solve"), ("Verify", "Solve")}
    assert after | failed <= pairs <= after | failed | {("Error", "Error")}


def test_sql_begins_with_the_tables_and_bash_with_the_question():
    sql = play("stateflow", InterCodeSql("dev", 0), act("DESC book", "submit"))
    assert [event.action for event in of_kind(sql, Acted)] == ["SHOW TABLES", "DESC book", "submit"]
    bash = play("stateflow", InterCodeBash("dev", 0), act("submit"))
    assert [event.action for event in of_kind(bash, Acted)] == ["submit"]


@pytest.mark.parametrize("name", RECORDS)
def test_an_agent_reads_its_own_instruction_and_what_happened_and_no_other_agents(name):
    seen: list[str] = []
    task = (name, "train", 0)
    left = iter(act(*(action for _, action, _ in PLAYS[task])))

    def speak(text: str) -> str:
        seen.append(text)
        return next(left)

    env = MAKE[name](*task[1:])
    load_method("stateflow", name)(ScriptedEngine(speak), env, seed=0, path=None).run(
        progress=False
    )
    env.close()
    sections = load_instructions(f"stateflow/{name}")
    for text, (state, _, _) in zip(seen, PLAYS[task], strict=True):
        assert text.startswith(sections[state].text)
        assert not any(f"[{other}]" in text for other in sections)
        assert text.count("## Instructions") == 1


# Left-out states (section 4.1, Figures 4 and 9, Table 7)


@pytest.mark.parametrize(
    ("left_out", "visited"),
    [
        ("", ["Observe", "Error", "Solve", "Error", "Verify", "Verify"]),
        (", no_observe", ["Solve", "Error", "Solve", "Error", "Verify", "Verify"]),
        # "rely on the verify state to correct mistakes"
        (", no_error", ["Observe", "Verify", "Solve", "Verify", "Verify", "Verify"]),
        (", no_verify", ["Observe", "Error", "Solve", "Error", "Solve", "Solve"]),
        (", no_error, no_verify", ["Observe", *["Solve"] * 5]),
        (", no_observe, no_error, no_verify", ["Solve"] * 6),
    ],
)
def test_sql_without_a_state_goes_where_the_paper_says(left_out, visited):
    actions = [action for _, action, _ in PLAYS["sql", "train", 0]]
    episode = play(f"stateflow{left_out}", InterCodeSql("train", 0), act(*actions))
    assert states(episode) == visited
    assert (episode.reward, episode.status) == (1, Status.ENDED)


@pytest.mark.parametrize(
    ("left_out", "visited"),
    [
        (", no_error", ["Solve", "Verify", "Verify", "Verify", "Verify", "Verify"]),
        (", no_verify", ["Solve", "Error", "Solve", "Error", "Error", "Solve"]),
        (", no_error, no_verify", ["Solve"] * 6),
    ],
)
def test_bash_without_a_state_goes_on(left_out, visited):
    actions = [action for _, action, _ in PLAYS["bash", "train", 0]]
    episode = play(f"stateflow{left_out}", InterCodeBash("train", 0), act(*actions))
    assert states(episode) == visited
    assert (episode.reward, episode.status) == (1, Status.ENDED)


@pytest.mark.parametrize(("name", "known"), [("sql", "Observe, Error, Verify"), ("bash", "Error,")])
def test_solve_is_always_needed(name, known):
    with pytest.raises(ValueError, match=f"cannot be left out; those that can: {known}"):
        load_method("stateflow, no_solve", name)


def test_the_rows_of_table_7_are_methods():
    assert {f"stateflow, no_{state}" for state in ("observe", "error", "verify")} < set(
        list_methods()
    )


@pytest.mark.parametrize("name", RECORDS)
def test_without_verify_solve_has_a_sentence_more_and_is_told_to_submit(name):
    sections = load_instructions(f"stateflow/{name}")
    whole, without = (sections[key].text for key in ("Solve", "Solve without Verify"))
    added = [line for line in without.splitlines() if line not in whole.splitlines()]
    assert len(added) == 1
    assert '"submit"' in added[0]
    assert without.replace(f"{added[0]}\n", "") == whole
    method = load_method("stateflow, no_verify", name)
    assert without in [prompt.text for prompt in method.fixed["prompts"]]


# Ten rounds, then what there is is submitted


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("method", ["stateflow", "sf_chat"])
def test_the_tenth_round_ends_the_task_with_the_last_output(name, method):
    gold = {"sql": "SELECT count(*) FROM book", "bash": "find /shop/parts -type f | wc -l"}[name]
    env = MAKE[name]("dev", 0)
    episode = play(method, env, act(gold) * 20)
    assert env.measures["turns"] == len(of_kind(episode, Acted)) == 10
    assert (episode.reward, episode.status) == (1, Status.ENDED)
    assert list_states(episode)[-1] == "Verify"


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("said", ["think: That is it. =>", "think: That is it.\n> #END#", "#END#"])
@pytest.mark.parametrize("then", [" submit =>", "> submit =>", "submit#END#"])
def test_an_agent_that_gives_no_action_is_asked_once_more(name, said, then):
    """As in the paper's released code, behind what it has said and the mark of an action."""
    opening = {"sql": "DESC book", "bash": "ls /shop"}[name]
    env = MAKE[name]("dev", 0)
    episode = play("stateflow", env, [*act(opening), said, then, "not read =>"])
    assert [event.action for event in of_kind(episode, Acted)][-2:] == [opening, "submit"]
    assert states(episode) == {"sql": ["Observe", "Solve"], "bash": ["Solve", "Verify"]}[name]
    text = episode.threads[0].sequence.text
    assert re.search(r"\n> submit =>Submitted\.", text)
    assert not re.search(r"^> *$", text, re.MULTILINE)
    asked, again = list(episode.threads.values())[-2:]
    assert (again.context, again.prompt) == (asked.context, asked.prompt)
    thought = "think: That is it." if "think" in said else ""
    assert again.sequence.text == f"{thought}\n>{then}"


@pytest.mark.parametrize("name", RECORDS)
def test_a_reply_that_is_no_action_is_a_round_and_an_error(name):
    gold = {"sql": "SELECT count(*) FROM book", "bash": "find /shop/parts -type f | wc -l"}[name]
    opening = ["DESC book", gold] if name == "sql" else [gold]
    env = MAKE[name]("dev", 0)
    episode = play("sf_chat", env, [*act(*opening), *["I am sure that it is right. =>"] * 20])
    rounds = 10 - (name == "sql")
    assert len(states(episode)) == rounds
    assert states(episode)[len(opening) :] == [
        "Verify",
        *["Error"] * (rounds - len(opening) - 1),
    ]
    assert (episode.status, episode.reward) == (Status.ENDED, 1)
    # In the script of the released code such a round is a turn, and none of the error rate.
    assert (env.measures["turns"], env.measures["error_rate"]) == (10, 0)


@pytest.mark.parametrize("name", RECORDS)
def test_of_several_actions_in_a_reply_the_first_is_done_and_the_rest_is_gone(name):
    opening = {"sql": "DESC book", "bash": "ls /shop"}[name]
    several = f"think: I look.\n> {opening}\nthink: That is it.\n> submit =>"
    env = MAKE[name]("dev", 0)
    episode = play("stateflow", env, [several, *act("submit")])
    assert [event.action for event in of_kind(episode, Acted)][-2:] == [opening, "submit"]
    assert f"think: I look.\n> {opening} =>" in episode.threads[0].sequence.text
    assert "That is it" not in list(episode.threads.values())[-1].context.text


@pytest.mark.parametrize("end", ["", "\n>", "\n> "])
def test_a_mark_on_a_line_of_its_own_begins_an_action(end):
    said = [f"think: I look.\n>\nDESC book{end} =>", *act("submit")]
    episode = play("stateflow", InterCodeSql("dev", 0), said)
    assert [event.action for event in of_kind(episode, Acted)][-2:] == ["DESC book", "submit"]


@pytest.mark.parametrize("thought", ["> think: I look.", ">think: I look.", "> > Think: I look."])
def test_a_thought_behind_the_mark_of_an_action_is_none(thought):
    said = ["I look. =>", f"{thought}\n> DESC book\n# > submit =>", *act("submit")]
    episode = play("stateflow", InterCodeSql("dev", 0), said)
    assert [event.action for event in of_kind(episode, Acted)][-2:] == ["DESC book", "submit"]


def test_reflexion_on_a_machine_is_counted_by_the_same_script():
    for name in ("stateflow", "stateflow, no_verify", "sf_chat", "stateflow+reflexion"):
        assert load_method(name, "sql").script is STATEFLOW


def test_an_action_of_several_lines_is_one():
    query = "SELECT count(*)\nFROM book\nWHERE book_id\n>= 0"
    episode = play("stateflow", InterCodeSql("dev", 0), act("DESC book", query, "submit"))
    assert [event.action for event in of_kind(episode, Acted)][-2:] == [query, "submit"]


@pytest.mark.parametrize("name", RECORDS)
def test_an_empty_round_is_a_turn_and_none_of_the_error_rate(name):
    wrong = {"sql": "SELECT nothing", "bash": "cd /nowhere"}[name]
    env = MAKE[name]("dev", 0)
    play("stateflow", env, ["think: So. =>", " =>", *act(wrong, "submit")])
    turns = 3 + (name == "sql")
    measured = env.measures["turns"], env.measures["error_rate"]
    assert measured == (turns, round(1 / (turns - 1), 4))


@pytest.mark.parametrize("name", RECORDS)
def test_an_empty_command_is_an_error_for_the_machine_too(name):
    env = MAKE[name]("train", 0)
    episode = play("stateflow", env, act("", ""))
    assert observations(episode)[-2:] == ["Error: this is no command."] * 2
    assert states(episode)[-1] == "Error"
    assert "Verify" not in states(episode)


def test_what_an_agent_says_moves_no_machine():
    replies = ["think: Error executing query, SELECT, submit.\n> DESC book =>", *act("submit")]
    episode = play("stateflow", InterCodeSql("dev", 0), replies)
    assert states(episode) == ["Observe", "Solve"]
    rows = [*act("DESC book", "SELECT 'Error executing query: no'", "submit")]
    assert states(play("stateflow", InterCodeSql("dev", 0), rows)) == ["Observe", "Solve", "Verify"]
    rows = [*act("echo 'Error: no'", "submit")]
    assert states(play("stateflow", InterCodeBash("dev", 0), rows)) == ["Solve", "Verify"]


HOSTILE = [
    "#END#",
    "> =>",
    ">",
    "> ; =>",
    "> submit; =>",
    "> SUBMIT =>",
    "[End] =>",
    "[Verify] > submit\n[End]\n =>",
    "> {question} {} {0} {x =>",
    "> SELECT '\0' =>",
    "> SELECT '<=\n[End] #END#' =>",
    "> SELECT '\ud7ff\u2028\u0085' =>",
    "> DROP TABLE book =>",
    "> kill -9 -1; rm -rf /shop; exit 3 =>",
    "> cd /nowhere =>",
    "think: x => > SELECT 1 =>",
    "> > > submit =>",
    "(?i)^Error|.* =>",
    f"> {'(' * 500} =>",
    f"> {'SELECT ' * 5_000} =>",  # is cut by the limit of new tokens
]


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("method", ["stateflow", "sf_chat", "stateflow, no_verify"])
@pytest.mark.parametrize("first", [0, 7, 14])
def test_hostile_replies_do_not_break_the_machine(name, method, first):
    env = MAKE[name]("dev", 0)
    episode = play(method, env, [*HOSTILE[first:], *HOSTILE[:first]])
    assert episode.status in (Status.ENDED, Status.OUT_OF_CALLS, Status.TRUNCATED)
    assert env.measures["turns"] <= 10
    assert len(states(episode)) <= 11
    assert list_states(episode)[-1] in RECORDS[name].machines[name].states


# The prompts


@pytest.mark.parametrize("name", RECORDS)
def test_every_command_that_an_instruction_shows_was_done_in_a_play_of_train(name):
    train = [steps for (env, split, _), steps in PLAYS.items() if (env, split) == (name, "train")]
    done = {action for steps in train for _, action, _ in steps}
    sections = load_instructions(f"stateflow/{name}")
    assert set(list_agents(RECORDS[name].machines[name])) == set(sections) - {
        "Solve without Verify"
    }
    for section, prompt in sections.items():
        shown = re.findall(r"^> (.+) =>$", prompt.text, re.MULTILINE)
        assert set(shown) <= done
        # Error and Verify of SQL show thoughts alone (StateFlow paper, Tables 14 and 15).
        thoughts = {("sql", "Error"): 4, ("sql", "Verify"): 2}.get((name, section))
        if thoughts or (name, section) == ("bash", "Error"):  # one error, with its command
            assert len(shown) == (0 if thoughts else 1)
        else:
            assert len(shown) >= 2, section
        assert not thoughts or prompt.text.count("\nthink: ") == thoughts


@pytest.mark.parametrize("name", RECORDS)
def test_what_the_error_agent_is_shown_is_what_the_engine_says(name):
    """As in Tables 14 and 16: an error on Bash, none on SQL."""
    train = [steps for (env, split, _), steps in PLAYS.items() if (env, split) == (name, "train")]
    answers = {answer for steps in train for _, _, answer in steps}
    text = load_instructions(f"stateflow/{name}")["Error"].text
    shown = re.findall(r"^Error.+$", text, re.MULTILINE)
    assert len(shown) == {"sql": 0, "bash": 1}[name]
    assert all(any(line.startswith(answer) for answer in answers) for line in shown)


# The official questions


def test_every_official_gold_query_goes_to_verify(monkeypatch):
    use_own_files(monkeypatch)
    pattern, *_ = SQL.machines["sql"].states["Solve"].next.actions
    assert [task.number for task in tasks("test") if not re.search(pattern, task.gold)] == []


@pytest.mark.parametrize("number", range(0, 1034, 100))
def test_official_questions_are_played(monkeypatch, number):
    use_own_files(monkeypatch)
    env = InterCodeSql("test", number)
    replies = act("SHOW TABLES", "SELECT nothing FROM nowhere", *env.oracle())
    episode = play("stateflow", env, replies)
    assert states(episode) == ["Observe", "Solve", "Error", "Verify"]
    assert (episode.reward, episode.status) == (1, Status.ENDED)
