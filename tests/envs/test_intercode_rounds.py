"""InterCode's ten rounds and its submission, as the methods of the kit meet them."""

from __future__ import annotations

from functools import partial

import pytest

from thread_kit.dialect import COMMANDS
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env
from thread_kit.envs.intercode_bash.env import InterCodeBash
from thread_kit.envs.intercode_sql.env import InterCodeSql
from thread_kit.experiments.job import Job, _key
from thread_kit.experiments.method import Method, PerTaskMethod
from thread_kit.experiments.method_registry import load_method
from thread_kit.experiments.suite import Suite
from thread_kit.methods.common import say_no_action
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Acted, Restarted

FAIL = "think: I try something else.\nTask failed!\n#END#"
TWO_STEPS = "Step 1: list the tables.\nStep 2: count.\nExecution Order: (Step 1 AND Step 2)\n#END#"
COMMAND = {"sql": "> SELECT 1 =>", "bash": "> touch /tmp/a =>"}
ENVS: dict[str, type[Env]] = {"sql": InterCodeSql, "bash": InterCodeBash}


def fail_after(commands: int, command: str):
    """A model whose planners plan, and whose executors give so many commands and fail."""

    def reply(text: str) -> str:
        question, _, written = text.rpartition("Response:")
        if "Step 1" in question.rpartition("#END#")[0][-2000:]:
            return TWO_STEPS
        return command if written.count("=>") < commands else FAIL

    return reply


def play(tmp_path, name: str, benchmark: str, reply, **options) -> tuple[dict, Episode]:
    method: Method = load_method(name, benchmark)
    suite = Suite(
        tmp_path / "r.jsonl",
        methods=[method],
        models={"scripted": ScriptedEngine(reply)},
        environment=partial(ENVS[benchmark], "train"),
        tasks=[{"number": 0}],
        traces=True,
        options=options,
    )
    (row,) = suite.run(progress=False).rows
    assert not row["error"]
    return row, Episode.load(tmp_path / row["trace"])


def count_commands(episode: Episode) -> list[int]:
    """Commands that the environment has executed, by trial."""
    trials = [0]
    for event in episode.events:
        if isinstance(event, Restarted):
            trials.append(0)
        trials[-1] += isinstance(event, Acted) and event.observation != "The task is over."
    return trials


@pytest.mark.parametrize("benchmark", ["sql", "bash"])
@pytest.mark.parametrize("name", ["adapt", "adapt-d2", "react", "react-hybrid", "thread"])
def test_no_method_has_more_than_ten_rounds_and_the_row_has_them_all(tmp_path, name, benchmark):
    row, episode = play(tmp_path, name, benchmark, fail_after(4, COMMAND[benchmark]), calls=60)
    assert count_commands(episode) == [row["turns"]]
    assert 0 < row["turns"] <= 10
    if name == "adapt":
        assert row["turns"] == 10


@pytest.mark.parametrize(
    ("name", "benchmark"), [("react", "sql"), ("react, refined", "sql"), ("react", "bash")]
)
def test_react_is_not_asked_for_a_verdict_behind_its_last_round(tmp_path, name, benchmark):
    row, _ = play(tmp_path, name, benchmark, lambda text: f"> {COMMAND[benchmark]} =>", calls=60)
    assert row["calls"] == row["turns"] == 10
    assert row["out_of_actions"]


SELECT = "SELECT count(*)\nFROM ship"
LOOP = "for i in 1 2\ndo echo $i\ndone"


@pytest.mark.parametrize(
    "name",
    [
        *("react", "react-hybrid", "thread", "adapt", "reflexion", "stateflow", "sf_chat"),
        *("plan-and-solve", "try again, visible reward"),
    ],
)
@pytest.mark.parametrize(("benchmark", "command"), [("sql", SELECT), ("bash", LOOP)])
def test_a_command_of_several_lines_is_one_command(tmp_path, name, benchmark, command):
    """As in InterCode's scripts, whose parsers take all lines between the brackets."""

    def reply(text: str) -> str:
        is_new = not text.rpartition("#START#")[2].strip()
        if is_new and "Step 1" in text:  # a planner's examples
            return "Step 1: count.\nExecution Order: Step 1\n#END#"
        return f"> {command} =>"

    _, episode = play(tmp_path, name, benchmark, reply, calls=12)
    acted = [event.action for event in episode.events if isinstance(event, Acted)]
    assert command in acted
    assert {*acted} <= {command, "SHOW TABLES", "submit"}


def test_what_an_executor_hands_on_is_the_whole_command(tmp_path):
    """ADaPT paper, appendix A, of the household: the next one reads the last step."""
    two = "Step 1: count.\nStep 2: say it.\nExecution Order: (Step 1 AND Step 2)\n#END#"

    def reply(text: str) -> str:
        written = text.rpartition("#START#")[2].strip()
        if not written:
            return two if "Step 1" in text else f"> {SELECT} =>"
        first = "Question: count." in text.rpartition("Prompt:")[2]
        return "Task completed!\n#END#" if first else "Task failed!\n#END#"

    _, episode = play(tmp_path, "adapt", "sql", reply, calls=12)
    known = f"> {SELECT} =>[(6,)]<=\n"
    assert any(one.sequence.text.startswith(known) for one in list(episode.threads.values())[2:])


def test_rows_of_commands_of_one_line_are_others(tmp_path):
    """What was played before is not taken for what would be played now."""
    row, _ = play(tmp_path, "plan-and-solve", "sql", lambda text: "Step 1: a\n#END#")
    method = load_method("plan-and-solve", "sql")
    keys = set()
    wrapped = PerTaskMethod(method.name, partial(load_method, method.name))  # the command line's
    header = Episode.load(tmp_path / row["trace"]).header
    for dialect in (header["dialect"], {**header["dialect"], "several_lines": False}):
        for known in (method, wrapped):
            job = Job(known, "m", Env, {}, 0, {})
            keys.add(_key(job, {**header, "dialect": dialect}).settings)
    assert len(keys) == 2


@pytest.mark.parametrize("name", ["try again", "reflexion"])
def test_each_trial_has_its_ten_rounds_until_the_model_submits(tmp_path, name):
    row, episode = play(tmp_path, name, "sql", fail_after(12, COMMAND["sql"]))
    assert count_commands(episode) == [10] * row["trials"]
    assert (row["trials"], row["turns"]) == (3, 10)


@pytest.mark.parametrize("benchmark", ["sql", "bash"])
@pytest.mark.parametrize("name", ["try again", "reflexion"])
def test_what_was_submitted_is_not_tried_again(tmp_path, name, benchmark):
    def submit(text: str) -> str:
        asked = text.rpartition("Response:")[2]
        if "submit" in asked:
            return "Task completed!\n#END#"
        return "> submit =>" if COMMAND[benchmark] in asked else COMMAND[benchmark]

    row, episode = play(tmp_path, name, benchmark, submit)
    assert (row["trials"], row["turns"], row["solved"]) == (1, 2, False)
    assert row["claimed"], "the executor's own verdict, and a wrong one"
    assert count_commands(episode) == [2]


@pytest.mark.parametrize("benchmark", ["sql", "bash"])
def test_the_rounds_are_those_that_were_chosen(tmp_path, benchmark):
    row, episode = play(tmp_path, "react", benchmark, fail_after(9, COMMAND[benchmark]), actions=4)
    assert (row["turns"], row["out_of_actions"], row["limits"]["actions"]) == (4, True, 4)
    assert count_commands(episode) == [4]


def spoken(name: str, env: Env, *replies: str) -> Episode:
    method: Method = load_method(name, env.name)
    return method(ScriptedEngine(replies), env, seed=0, path=None).run(progress=False)


def test_only_the_full_reward_or_ten_rounds_end_a_try_again_that_sees_it():
    """StateFlow paper, A.3: "when the task is solved correctly or reaches max turns"."""
    words = [
        "> SHOW TABLES =>",
        "#END#",
        " SELECT 1\nWHERE 2\n>= 1 =>",
        "think: Task completed! =>",
    ]
    right = f"> {InterCodeSql('dev', 0).oracle()[0]} =>"
    episode = spoken("try again, visible reward", InterCodeSql("dev", 0), *words, right)
    assert (episode.reward, episode.status, episode.usage.calls) == (1, "ended", 5)
    text = episode.threads[0].sequence.text
    assert "#END#\n> SELECT 1\nWHERE 2\n>= 1 =>\n[(1,)]" in text  # behind an end mark a command
    assert f"\nthink: Task completed! =>{say_no_action(COMMANDS)}<=\n" in text
    env = InterCodeSql("dev", 0)
    episode = spoken("try again, visible reward", env, "> SHOW TABLES =>", *["#END#"] * 12)
    assert (episode.reward, episode.status, episode.usage.calls) == (0, "out of calls", 10)
    assert (env.measures["turns"], env.measures["error_rate"]) == (10, 0.9)


@pytest.mark.parametrize(
    "form", ["{}", "```sql\n{}\n```", "```\n{}```", "```{}```", "```SQL {}\n```\nThat counts."]
)
@pytest.mark.parametrize("end", [" =>", "\n#END#", ""])
def test_a_command_may_end_its_reply_and_stand_in_a_fence(form, end):
    """InterCode's parsers: the message is the command, without its fence."""
    gold = InterCodeSql("dev", 0).oracle()[0]
    said = f"> {form.format(gold)}{end}"
    assert spoken("try again, visible reward", InterCodeSql("dev", 0), said).reward == 1
    plan = "Step 1: look.\nExecution order: Step 1#END#"
    episode = spoken("plan-and-solve", InterCodeSql("dev", 0), plan, said)
    acted = [event.action for event in episode.events if isinstance(event, Acted)]
    assert (acted, episode.reward) == ([gold], 1)


def test_a_submission_that_ends_its_reply_is_one(tmp_path):
    said = iter(["> SHOW TABLES\n#END#", "> submit\n#END#", FAIL])
    row, _ = play(tmp_path, "reflexion", "sql", lambda text: next(said))
    assert (row["trials"], row["turns"], row["solved"]) == (1, 2, False)


def test_a_plan_may_go_on_into_its_first_step():
    gold = InterCodeSql("dev", 0).oracle()[0]
    plan = "Step 1: look.\nStep 2: count.\nStep 1: look.\n> SHOW TABLES =>"
    episode = spoken("plan-and-solve", InterCodeSql("dev", 0), plan, f"> {gold} =>")
    acted = [event.action for event in episode.events if isinstance(event, Acted)]
    assert (acted, episode.reward) == (["SHOW TABLES", gold], 1)
    shown = "Step 1: look.\n> SHOW TABLES\nStep 2: count.\n"
    for more in ("> SELECT 1\n#END#", "Execution order: Step 1 AND Step 2\n#END#"):
        said = [shown + more, "> SHOW TABLES =>", f"> {gold} =>"]  # a plan that shows commands
        episode = spoken("plan-and-solve", InterCodeSql("dev", 0), *said)
        acted = [event.action for event in episode.events if isinstance(event, Acted)]
        assert (acted, episode.reward) == (["SHOW TABLES", gold], 1)
    quoted = "> Step 1: count.\n> Execution order: Step 1 =>"
    assert spoken("plan-and-solve", InterCodeSql("dev", 0), quoted, f"> {gold} =>").reward == 1


def test_a_thought_behind_the_mark_of_a_command_is_none_and_its_agent_is_asked_for_one():
    gold = InterCodeSql("dev", 0).oracle()[0]
    said = ["> think: I count. =>", f" {gold} =>", "> submit =>"]
    episode = spoken("stateflow, no_observe", InterCodeSql("dev", 0), *said)
    acted = [event.action for event in episode.events if isinstance(event, Acted)]
    assert (acted, episode.reward) == (["SHOW TABLES", gold, "submit"], 1)


def test_a_plan_is_carried_out_to_its_last_step():
    plan = "Step 1: look.\nStep 2: count.\nExecution order: (Step 1 AND Step 2)\n =>"
    right = f"> {InterCodeSql('dev', 0).oracle()[0]} =>"
    episode = spoken("plan-and-solve", InterCodeSql("dev", 0), plan, "#END#", right)
    assert (episode.reward, episode.usage.calls) == (1, 3)
    assert (
        f"#END# =>{say_no_action(COMMANDS)}<=\nStep 2: count.\n" in episode.threads[0].sequence.text
    )


def test_a_plan_with_more_steps_than_are_carried_out_is_cut():
    steps = "".join(f"Step {n}: look.\n" for n in range(1, 13))
    plan = f"{steps}Execution order: Step 1#END#"
    env = InterCodeSql("dev", 0, turns=20)
    episode = spoken("plan-and-solve", env, plan, *["> SELECT 1 =>"] * 10)
    assert (episode.status, env.measures["turns"]) == ("out of calls", 10)


def test_the_first_step_stands_on_a_line_of_its_own_behind_a_plan_that_ended():
    plan = "Step 1: look.\nExecution order: Step 1#END#"
    right = f"> {InterCodeSql('dev', 0).oracle()[0]} =>"
    episode = spoken("plan-and-solve", InterCodeSql("dev", 0), plan, right)
    assert "#END#\nStep 1: look.\n> " in episode.threads[0].sequence.text


@pytest.mark.parametrize("benchmark", ["sql", pytest.param("bash", marks=pytest.mark.jail)])
def test_without_a_command_the_task_is_submitted_as_it_is(benchmark):
    """InterCode grades a fresh root, and the question as its last output."""
    rewards = [ENVS[benchmark]("train", 0).step("submit").reward]
    rewards += [spoken("react", ENVS[benchmark]("train", 0), "#END#").reward]
    assert rewards == ([0.0] * 2 if benchmark == "sql" else [0.67] * 2)


@pytest.mark.jail
def test_a_reply_without_a_command_has_no_reward_that_could_be_the_best():
    """StateFlow paper, A.3: "the max reward from all the executions"."""
    played = [
        spoken("try again, visible reward", InterCodeBash("train", 0), *replies).reward
        for replies in (["> cd / =>"], ["#END#", "> cd / =>"], ["#END#"] * 10, ["> submit =>"])
    ]
    assert played[0] == played[1] > 0
    assert played[2:] == [0, 0]
