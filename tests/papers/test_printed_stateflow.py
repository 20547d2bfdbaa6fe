"""The trajectories that StateFlow paper prints for SQL (Tables 18 and 19), played line by line.

ReAct's first example begins with a query that fails, the refined one with SHOW TABLES; the workflow
of section 3.3 is abstracted from it, so the machine goes through its states with the same actions.
Thoughts and answers are quoted in short. ALFWorld's states and transitions (Figures 5 and 8,
appendix B.1, Tables 11 to 13) are played in tests/envs/test_alfworld_machine.py.
"""

from __future__ import annotations

import re

import pytest
from helpers.printed import Printed
from helpers.programs import EXECUTOR

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.experiments.episode_facts import list_states
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.react import react
from thread_kit.requests import Status
from thread_kit.session.session import Session

Turn = tuple[str, str, str]
"""Thought, action, observation."""

GRADES = "Question: What are the names and grades for each high schooler?"
TABLES = ("Find out what tables are available.", "SHOW TABLES", "[('friend',), ('highschooler',)]")
LOOK = (
    "I should check what information this table contains.",
    "DESC highschooler",
    "[('ID', 'int', 'NO', 'PRI', None, 'auto_increment'), ('name', 'text', 'YES', '', None, '')]",
)
SOLVE = (
    "The highschooler table contains the name and grade columns.",
    "SELECT name, grade FROM highschooler",
    "[('John', 12), ('Haley', 10)]",
)
SUBMIT = ("The output contains the name and grade for each high schooler.", "submit", "Submitted.")
MISSING = (
    "I should select the name and grade fields from a table about high schoolers.",
    "SELECT name, grade FROM high_schoolers",
    "Error executing query: Table 'network_1.high_schoolers' doesn't exist",
)
CONTESTANTS = (
    (
        "I need to find out what columns are available.",
        "DESCRIBE contestants",
        "[('contestant_number', 'int', 'NO'), ('contestant_name', 'varchar(50)', 'NO')]",
    ),
    (
        "I can now write a SQL query.",
        "SELECT contestant_name FROM contestants WHERE contestant_name != 'Jessie Alloway'",
        "[('Edwina Burnam',), ('Tabatha Gehling',)]",
    ),
    ("I am finished with this query.", "submit", "Submitted."),
)
"""How both end in Table 19, which prints it once."""

TRAJECTORIES = {
    "ReAct, Table 18": [MISSING, TABLES, LOOK, SOLVE, SUBMIT],
    "ReAct_Refined, Table 18": [TABLES, LOOK, SOLVE, SUBMIT],
    "ReAct, Table 19": [
        (
            "I should write a SQL query that excludes the name of 'Jessie Alloway'",
            "SELECT name FROM contestants WHERE name != 'Jessie Alloway'",
            "Error executing query: Unknown column 'name' in 'field list'",
        ),
        *CONTESTANTS,
    ],
    "ReAct_Refined, Table 19": [
        (
            "I should first find out what tables are available.",
            "SHOW TABLES",
            "[('contestants')]",
        ),
        *CONTESTANTS,
    ],
}


def make_env(turns: list[Turn]) -> Printed:
    return Printed(GRADES, [(action, answer) for _, action, answer in turns], wins=True)


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_the_printed_trajectories_of_react(name):
    turns = TRAJECTORIES[name]
    env = make_env(turns)
    engine = ScriptedEngine([f"think: {thought}\n> {action} =>" for thought, action, _ in turns])
    episode = Session(engine, env, program=react, prompt=EXECUTOR).run(progress=False)
    lines = [f"think: {thought}\n> {act} =>{seen}<=\n" for thought, act, seen in turns]
    assert episode.threads[0].sequence.text == "".join(lines)
    assert (episode.reward, env.left) == (1, [])


@pytest.mark.parametrize(
    ("turns", "states"),
    [
        ([TABLES, LOOK, SOLVE, SUBMIT], ["Observe", "Solve", "Verify"]),
        ([TABLES, LOOK, MISSING, SOLVE, SUBMIT], ["Observe", "Solve", "Error", "Verify"]),
    ],
)
def test_the_workflow_of_section_3_3(turns, states):
    """Init -> Observe -> Solve -> Verify -> End, and Error where a query fails."""
    env = make_env(turns)
    replies = [f"think: {thought}\n> {action} =>" for thought, action, _ in turns[1:]]
    session = load_method("stateflow", "sql")(ScriptedEngine(replies), env, seed=0, path=None)
    episode = session.run(progress=False)
    visited = re.findall(r"^\[(\w+)\] think", episode.threads[0].sequence.text, re.MULTILINE)
    assert visited == states
    assert (list_states(episode)[-1], episode.status) == ("Verify", Status.ENDED)
    # No agent reads the instruction of another one: the task, and what was replied and seen.
    history = f"{GRADES}\n> {turns[0][1]} =>{turns[0][2]}<="
    agents = list(episode.threads.values())[1:]
    for agent, (thought, action, answer) in zip(agents, turns[1:], strict=True):
        assert episode.dialect.asked(agent.context.text) == history
        history += f"\nthink: {thought}\n> {action} =>{answer}<="
