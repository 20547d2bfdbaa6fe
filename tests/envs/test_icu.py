"""ICU QA: the folder layout, the open stays' format, generated questions, episodes in the jail."""

from __future__ import annotations

import csv
import tarfile

import pandas as pd
import pytest

from thread_kit.dialect import QA, QA_ASYNC
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.icu.benchmark import ICU
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.questions import KINDS, kinds_of
from thread_kit.envs.icu.rules import IcuScript
from thread_kit.envs.icu.stays import (
    COLUMNS,
    VARIABLES,
    Mimic3Stays,
    PhysioNet2012,
    write_synthetic_stays,
)
from thread_kit.requests import Status
from thread_kit.sandbox.namespace import PythonNamespace
from thread_kit.session.session import Session


@pytest.fixture(scope="module")
def stays(tmp_path_factory):
    return write_synthetic_stays(tmp_path_factory.mktemp("stays"))


# Stays


def test_synthetic_stays_have_the_exact_layout(stays):
    (first, *_) = sorted(stays.folder.glob("train/*_episode1_timeseries.csv"))
    lines = first.read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert all(line.count(",") == len(COLUMNS) - 1 for line in lines)
    assert (stays.folder / "test" / "listfile.csv").read_text().startswith("stay,y_true\n")


def test_synthetic_stays_are_the_same_for_the_same_seed(tmp_path, stays):
    again = write_synthetic_stays(tmp_path / "again")
    assert again.table("10003").equals(stays.table("10003"))
    assert (
        not write_synthetic_stays(tmp_path / "other", seed=1)
        .table("10003")
        .equals(stays.table("10003"))
    )


def test_a_folder_is_read_as_it_lies_and_nothing_is_written(stays):
    before = {path: path.stat().st_mtime_ns for path in stays.folder.parent.rglob("*")}
    read = Mimic3Stays(stays.folder.parent)
    IcuQA(read, 8)
    assert {path: path.stat().st_mtime_ns for path in stays.folder.parent.rglob("*")} == before


def test_only_first_stays_count_and_both_lists_are_read(tmp_path):
    for split, names in (("train", ["7_episode1", "7_episode2"]), ("test", ["9_episode1"])):
        folder = tmp_path / "in-hospital-mortality" / split
        folder.mkdir(parents=True)
        rows = "".join(f"{name}_timeseries.csv,1\n" for name in names)
        (folder / "listfile.csv").write_text("stay,y_true\n" + rows)
    assert Mimic3Stays(tmp_path).expired == {"7": 1, "9": 1}


def test_values_are_those_that_were_measured(stays):
    table = stays.table("10003")
    values = stays.values("10003", "heart rate")
    measured = table[["Hours", "Heart Rate"]].dropna()
    assert list(values.index) == list(measured["Hours"])
    assert list(values) == list(measured["Heart Rate"])


def test_a_group_mean_is_over_the_means_of_its_patients(stays):
    survived = [who for who, died in stays.expired.items() if not died]
    means = stays.group_means("survived", "temperature")
    assert sorted(means.index) == sorted(survived)
    who = survived[0]
    assert means[who] == pytest.approx(stays.table(who)["Temperature"].mean())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.values("1", "pH"), "no patient '1' among the 20"),
        (lambda s: s.values("10003", "pulse"), "no variable 'pulse'. There are: diastolic"),
        (lambda s: s.group_means("all", "pH"), "no group 'all'. There are: survived, expired"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(stays, call, message):
    with pytest.raises(LookupError, match=message):
        call(stays)


def test_missing_data_names_where_to_get_them(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"physionet\.org/content/mimiciii"):
        Mimic3Stays(tmp_path)
    with pytest.raises(FileNotFoundError, match="challenge-2012"):
        PhysioNet2012(tmp_path / "set-a")


@pytest.fixture(params=["folder", "tar"])
def open_stays(request, tmp_path):
    """Stays of nobody, in the form of PhysioNet/CinC Challenge 2012."""
    folder = tmp_path / "set-a"
    folder.mkdir()
    head = "Time,Parameter,Value\n00:00,RecordID,{n}\n00:00,Weight,-1\n00:00,Age,50\n"
    for n in (1, 2):
        rows = "".join(
            f"{h:02}:30,HR,{60 + h * n}\n{h:02}:30,NISysABP,{100 + h}\n" for h in range(9)
        )
        (folder / f"{n}.txt").write_text(head.format(n=n) + rows)
    (tmp_path / "Outcomes-a.txt").write_text(
        "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n1,6,1,5,-1,0\n2,6,1,5,3,1\n"
    )
    if request.param == "folder":
        return PhysioNet2012(folder)
    with tarfile.open(tmp_path / "set-a.tar.xz", "w:xz") as tar:
        tar.add(folder, "set-a")
    return PhysioNet2012(tmp_path / "set-a.tar.xz")


def test_open_stays_have_the_same_columns(open_stays):
    table = open_stays.table("2")
    assert tuple(table.columns) == COLUMNS
    assert list(table["Hours"][:2]) == [0.5, 1.5]
    assert open_stays.expired == {"1": 0, "2": 1}
    assert open_stays.values("2", "heart rate")[1.5] == 62
    assert open_stays.values("2", "systolic blood pressure")[0.5] == 100
    assert open_stays.values("2", "weight").empty  # -1 is: not known


# Questions


def test_a_number_gives_the_same_question_again_and_all_kinds_come(stays):
    first = [IcuQA(stays, n).question for n in range(16)]
    assert [IcuQA(stays, n).question for n in range(16)] == first
    assert [question.kind for question in first] == [kind.name for kind in KINDS]


def hours_of(question):
    low, high = (int(w) for w in question.text.split() if w.isdecimal() and len(w) < 3)
    return low, high


def own_answer(stays, question):
    """The answer by means of plain Python, for three kinds that are easy to compute so."""
    values = [stays.values(patient, variable) for patient, variable in question.needs[:2]]
    if question.kind == "maximum lower":
        return min(zip(values, question.needs, strict=True), key=lambda v: max(v[0]))[1][0]
    if question.kind == "average higher":
        return max(zip(values, question.needs, strict=True), key=lambda v: sum(v[0]) / len(v[0]))[
            1
        ][0]
    low, high = hours_of(question)
    inside = [(v, -h) for h, v in values[0].items() if low <= h <= high]
    return str(round(-max(inside)[1], 2))


def test_the_largest_change_is_asked_for_where_there_is_one(tmp_path):
    stays = write_synthetic_stays(tmp_path, 30, 3)
    kinds = [place for place, kind in enumerate(KINDS) if "largest" in kind.measure]
    assert len(kinds) == 2
    for split in ("train", "test"):
        for number in (16 * turn + place for turn in range(10) for place in kinds):
            question = IcuQA(stays, number, split=split).question
            changes = stays.values(*question.needs[0]).loc[slice(*hours_of(question))].diff()
            assert (changes if "increase" in question.kind else -changes).max() > 0, question.text


@pytest.mark.parametrize("number", [1, 4, 10, 17, 20, 26])
def test_the_programs_agree_with_plain_python(stays, number):
    question = IcuQA(stays, number).question
    assert question.answer == own_answer(stays, question)


def test_too_few_stays_say_so(tmp_path):
    with pytest.raises(ValueError, match="too few values"):
        IcuQA(write_synthetic_stays(tmp_path, patients=1), 0)


# Phenotypes


@pytest.fixture(scope="module")
def with_phenotypes(tmp_path_factory):
    return write_synthetic_stays(tmp_path_factory.mktemp("phenotypes"), phenotypes=True)


def test_labels_belong_to_stays_in_the_order_of_their_numbers(stays, with_phenotypes):
    assert stays.phenotypes == {}
    root = with_phenotypes.folder.parent
    rows = sorted(
        (number, patient)
        for patient, _, number in csv.reader((root / "all_stays.csv").read_text().splitlines())
        if patient != "SUBJECT_ID"
    )
    first, *labels = csv.reader((root / "phenotype_labels.csv").read_text().splitlines())
    assert [int(number) for number, _ in rows] != sorted(
        (int(number) for number, _ in rows), reverse=True
    )
    shock = {
        who for (_, who), row in zip(rows, labels, strict=True) if row[first.index("Shock")] == "1"
    }
    assert with_phenotypes.phenotypes["shock"] == shock != set(with_phenotypes.expired)
    means = with_phenotypes.group_means("shock", "heart rate")
    assert set(means.index) <= shock
    assert with_phenotypes.groups[:2] == ("survived", "expired")


def test_of_several_stays_the_first_one_says_what_a_patient_had(tmp_path):
    write_synthetic_stays(tmp_path, patients=2)
    (tmp_path / "all_stays.csv").write_text(
        "SUBJECT_ID,ICUSTAY_ID,INTIME\n10000,9,2101-01-01\n10000,5,2102-01-01\n10001,7,2101-01-01\n"
    )
    (tmp_path / "phenotype_labels.csv").write_text("Shock,Pneumonia\n0,1\n1,0\n1,0\n")
    phenotypes = Mimic3Stays(tmp_path).phenotypes
    assert phenotypes == {"shock": {"10001", "10000"}, "pneumonia": set()}
    (tmp_path / "phenotype_labels.csv").write_text("Shock\n0\n")
    with pytest.raises(ValueError, match=r"3 stays and phenotype_labels.csv has 1"):
        Mimic3Stays(tmp_path).phenotypes  # noqa: B018


def test_with_phenotypes_all_fifteen_kinds_of_the_benchmark_come(stays, with_phenotypes):
    assert kinds_of(stays) == KINDS
    kinds = kinds_of(with_phenotypes)
    asked = [IcuQA(with_phenotypes, n).question for n in range(len(kinds))]
    assert [question.kind for question in asked] == [kind.name for kind in kinds]


@pytest.mark.parametrize(("place", "outermost"), [(-2, max), (-1, min)])
def test_the_highest_and_the_lowest_average_are_those_of_a_phenotypes_patients(
    with_phenotypes, place, outermost
):
    """Templates 14 and 15 of the released program."""
    question = IcuQA(with_phenotypes, len(kinds_of(with_phenotypes)) + place).question
    (_, variable), (group, _) = question.needs
    means = with_phenotypes.group_means(group, variable)
    assert group in with_phenotypes.phenotypes
    assert f"est average among all patients with {group} at hour" in question.text
    assert question.figures[1] == pytest.approx(outermost(means)) != means.mean()
    assert question.answer == ("above" if question.figures[0] > outermost(means) else "below")


# The released program's file

FILE = "\tquestion\tmimic_answer\n0\tWhich?\t10003\n1\tIs it above?\tabove\n"


def test_the_released_programs_questions_come_from_a_file(tmp_path, stays, monkeypatch):
    path = tmp_path / "mimiciii_icu_qa_benchmark.txt"
    path.write_text(FILE)
    env = IcuQA(stays, 1, questions=path)
    assert (env.again().question.text, env.question.answer) == ("Is it above?", "above")
    with pytest.raises(ValueError, match="choose 0 to 1"):
        IcuQA(stays, 2, questions=path)
    with pytest.raises(ValueError, match="all of the split test, not 'train'"):
        IcuQA(stays, 0, split="train", questions=path)
    with pytest.raises(FileNotFoundError, match="philipmit/thread"):
        IcuQA(stays, 0, questions=tmp_path / "none.txt")
    path.with_name("other.txt").write_text(FILE.replace("mimic_answer", "answer"))
    with pytest.raises(ValueError, match="no columns question and mimic_answer"):
        IcuQA(stays, 0, questions=path.with_name("other.txt"))
    monkeypatch.setenv("THREAD_KIT_ICU_QUESTIONS", str(path))
    made = [ICU.environment(**task.arguments) for task in ICU.tasks("test")]
    assert [one.question.answer for one in made] == ["10003", "above"]
    assert ICU.environment(split="test", **ICU.choose("1")).question == env.question
    assert ICU.environment(split="train", **ICU.choose("1")).question.kind
    assert len(ICU.tasks("train")) > 2, "the file has none of them"


def test_of_mimic_iii_one_variable_more_can_be_looked_up(tmp_path):
    write_synthetic_stays(tmp_path)
    own = Mimic3Stays(tmp_path)
    assert set(own.variables) - set(VARIABLES) == {"capillary refill rate"}
    assert own.values("10003", "capillary refill rate").empty
    assert IcuQA(own, 3).question.text == IcuQA(write_synthetic_stays(tmp_path), 3).question.text


# Episodes


@pytest.mark.jail
@pytest.mark.parametrize("number", [16, 17, 18, 19])
def test_questions_about_phenotypes_are_answered_by_independent_children(with_phenotypes, number):
    env = IcuQA(with_phenotypes, number)
    assert set(env.functions["groups"]()) == set(with_phenotypes.groups)
    session = Session(ScriptedEngine(IcuScript(env, QA_ASYNC)), env, dialect=QA_ASYNC)
    episode = session.run(progress=False)
    assert (episode.status, episode.reward) == (Status.ENDED, 1.0)
    assert set(env.lookups) == set(env.question.needs)
    looked_up = 3  # the table, its values, the measure of the patient
    assert len(episode.threads) == looked_up + len(env.question.needs)


@pytest.mark.jail
@pytest.mark.parametrize(("number", "dialect"), [(6, QA), (9, QA), (12, QA), (15, QA_ASYNC)])
def test_the_threads_of_a_script_answer_from_what_the_jail_computes(stays, number, dialect):
    env = IcuQA(stays, number)
    session = Session(ScriptedEngine(IcuScript(env, dialect)), env, dialect=dialect)
    episode = session.run(progress=False)
    assert (episode.status, episode.reward) == (Status.ENDED, 1.0)
    assert set(env.lookups) == set(env.question.needs)


@pytest.mark.jail
def test_what_was_not_measured_is_feedback(stays, tmp_path):
    env = IcuQA(stays, 0)
    functions = env.functions
    assert functions["variables"]() == list(VARIABLES)
    with pytest.raises(LookupError, match="There is no patient"):
        functions["measurements"](77, "pH")
    assert functions["measurements"](10003, "pH")[0].keys() == {"hour", "value"}


@pytest.mark.parametrize("argument", [["10003"], {"a": 1}, None, 10**99, "x" * 10_000])
def test_arguments_of_other_types_are_feedback_and_are_not_kept(stays, argument):
    env = IcuQA(stays, 0)
    for name in ("measurements", "group_means"):
        with pytest.raises(LookupError, match="There is no"):
            env.functions[name](argument, argument)
    assert env.step("Final Answer: x").info["asked"] == []


def test_of_an_hour_the_figure_is_the_hour(stays):
    asked = [IcuQA(stays, n).question for n in range(32)]
    hours = [q for q in asked if len(q.figures) == 1]
    assert len({question.kind for question in hours}) == 4
    assert all(float(q.answer) == pytest.approx(q.figures[0], abs=0.01) for q in hours)


def test_figures_are_plain_numbers(stays):
    for n in range(16):
        assert all(type(figure) is float for figure in IcuQA(stays, n).question.figures)
    assert isinstance(stays.table("10003"), pd.DataFrame)


@pytest.mark.jail
def test_a_figure_of_each_patient_of_mimic_fits_into_a_variable(stays):
    """mimic3-benchmarks has 21,139 stays; of a longer list no line is lost."""
    namespace = PythonNamespace(IcuQA(stays, 0).sandbox(), blocks=True)
    assert namespace.run("means = [60 + n / 7 for n in range(21_139)]").error is None
    assert namespace.run("print(len(means))").printed == "21139"
