"""The example threads that THREAD paper prints in G.1 and G.2, played line by line.

What the print leaves out ("...", the request to Data Commons, the braces of a dictionary) is filled
in. Four things stand otherwise: a slope is rounded to four digits as it is printed (the second is
0.1643 then, for 0.1642), files have other paths, values of a place are taken without the loop over
missing years, and G.2's filter by a column of another name is by the one that was chosen.
"""

from __future__ import annotations

import pytest

from thread_kit.dialect import QA
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.session.session import Session

pytestmark = pytest.mark.jail

VALUES = {
    "geoId/0685684": {"2017": 9.5, "2018": 10.1, "2020": 10.8, "2021": 11.1},
    "geoId/2977092": {"2018": 8.2, "2020": 8.5, "2021": 8.7, "2022": 9.0},
}
IDS = {"Willows": "geoId/0685684", "Villa Ridge": "geoId/2977092"}
DIABETES = "percentage of people with diabetes"


def explore(query):
    """What the request of G.1 answers."""
    variables = ["dc/topic/Diabetes", "Percent_Person_WithDiabetes"]
    return {"variables": variables, "entities": [IDS[query.rpartition(" in ")[2]]]}


def collect_data_commons1(location_ID, variable_ID):
    assert variable_ID == "Percent_Person_WithDiabetes"
    return [{"date": date, "value": value} for date, value in VALUES[location_ID].items()]


def play(question, scripts, functions):
    """An episode whose threads write the segments of the script of their context."""
    opened: dict[str, int] = {}

    def speak(seen):
        head, _, _ = seen.rpartition("#START#\n")
        context = QA.asked(head + "#START#\n")
        opened[context] = opened.get(context, -1) + 1
        return scripts[context][opened[context]]

    with (
        BubblewrapSandbox(functions) as sandbox,
        Session(ScriptedEngine(speak), context=question, dialect=QA, sandbox=sandbox) as session,
    ):
        episode = session.run(progress=False)
    errors = [line.error for t in episode.threads.values() for line in t.executed if line.error]
    assert errors == []
    assert [QA.asked(t.context.text) for t in episode.threads.values()] == list(scripts)
    return episode


def lookup(number, name):
    """The second kind of thread of G.1: it finds the IDs, gets the data, cuts and returns them."""
    data = f"data_location{number}"
    return [
        f"location1 = '{name}'\ntimeframe = '2018 to 2021'\ntime1 = '2018'\ntime2 = '2021'\n"
        f"variable = '{DIABETES}'\nquery = f'{{variable}} in {{location1}}'\n"
        "response = explore(query)\n> print(response['variables']) =>",
        "\nvariable_ID = 'Percent_Person_WithDiabetes'\n> print(response['entities']) =>",
        f"\nlocation_ID = '{IDS[name]}'\n"
        "I will now use the location_ID and variable_ID to get the data.\n"
        f"{data}_all = collect_data_commons1(location_ID, variable_ID)\n"
        f"{data}_in_timeframe = [x for x in {data}_all if (int(x['date'])>=int(time1) and "
        "int(x['date'])<=int(time2))]\n"
        f"> print({data}_in_timeframe) =>",
        f"\nprint('You have retrieved {{{data}_in_timeframe}}.')\n#END#",
    ]


def slope(table_dir, name):
    """The third kind of thread of G.1: a measure of a table."""
    return [
        f"table_dir = '{table_dir}'\nvariable = '{DIABETES}'\nlocation = '{name}'\n"
        "table = pd.read_csv(table_dir, sep='^')\n# > print(table) =>",
        f"\nlocation_col_name = '{name}'\nX = table['date']\ny = table[location_col_name]\n"
        "slope, intercept, r_value, p_value, std_err = stats.linregress(X, y)\n"
        "print(round(slope, 4))\n#END#",
    ]


QUESTION_1 = (
    f"Question: From 2018 to 2021 was the {DIABETES} increasing faster in Willows or Villa Ridge?"
)
TABLE_1 = f"Here is a table showing the {DIABETES} during 2018 to 2021 for Willows and Villa Ridge:"
WHERE = f"The {DIABETES} during 2018 to 2021 for location number"
BASED = f"Based on the data in table.txt from 2018 to 2021 the slope of the {DIABETES}"


def test_the_threads_of_g1_play_as_they_are_printed():
    location = "data_location{}_in_timeframe".format
    scripts = {
        QUESTION_1: [
            f"{TABLE_1}\n\n=>",
            f"\n\nBased on the data in {{table_dir}} from 2018 to 2021 the slope of the {DIABETES} "
            "in Willows was =>",
            " and in Villa Ridge was =>",
            f"\n\nTherefore, the {DIABETES} was increasing faster in Willows.\n\n"
            "Final Answer: Willows\n\n#END#",
        ],
        f"{TABLE_1} =>": [
            "location1 = 'Willows'\nlocation2 = 'Villa Ridge'\ntimeframe = '2018 to 2021'\n"
            f"variable = '{DIABETES}'\n"
            "The {variable} during {timeframe} for location number 1, {location1}, is =>",
            "\nThe {variable} during {timeframe} for location number 2, {location2}, is =>",
            "".join(
                f"\n{location(n)} = [{location(n)}] if not isinstance({location(n)}, list) else "
                f"{location(n)}"
                for n in (1, 2)
            )
            + f"\ntimeframe_dates = np.unique([x['date'] for x in {location(1)}] + [x['date'] for "
            f"x in {location(2)}])\n"
            f"values1 = [x['value'] for x in {location(1)}]\n"
            f"values2 = [x['value'] for x in {location(2)}]\n"
            "table = pd.DataFrame({'date': timeframe_dates, location1: values1, location2: "
            "values2})\n"
            "table_dir = 'table.txt'\ntable.to_csv(table_dir, sep='^', index=False)\n"
            "print('{table_dir}')\n#END#",
        ],
        f"{WHERE} 1, Willows, is =>": lookup(1, "Willows"),
        f"{WHERE} 2, Villa Ridge, is =>": lookup(2, "Villa Ridge"),
        f"{BASED} in Willows was =>": slope("table.txt", "Willows"),
        f"{BASED} in Willows was =>0.3357<= and in Villa Ridge was =>": slope(
            "table.txt", "Villa Ridge"
        ),
    }
    episode = play(
        QUESTION_1,
        scripts,
        {"explore": explore, "collect_data_commons1": collect_data_commons1},
    )
    threads = [thread.sequence.text for thread in episode.threads.values()]
    # What came back, as printed.
    assert f"{TABLE_1}\n\n=>{{table_dir}}<=\n\nBased on" in threads[0]
    assert "in Willows was =>0.3357<= and in Villa Ridge was =>0.1643<=\n\nTherefore" in threads[0]
    assert "=>['geoId/0685684']<=\nlocation_ID" in threads[2]
    assert "# date  Willows  Villa Ridge\n# 0  2018     10.1          8.2\n" in threads[4]
    # The child prints "You have retrieved {...}.", and its parent is printed with the name alone:
    # the two disagree in the paper, and psi gives the first.
    assert "1, {location1}, is =>You have retrieved {data_location1_in_timeframe}.<=" in threads[1]
    # The variables that are handed over, and no others.
    assert episode.threads[0].variables == {"table_dir": "table.txt"}
    inside = [{"date": d, "value": VALUES[IDS["Willows"]][d]} for d in ("2018", "2020", "2021")]
    assert episode.threads[1].variables["data_location1_in_timeframe"] == inside
    assert "location_ID" not in episode.threads[1].variables


QUESTION_2 = (
    "Question: Was the average systolic blood pressure of patient X from hour 10 to 20 of their "
    "ICU stay higher or lower than the average among all patients who expired in the hospital?"
)
TABLE_2 = (
    "Here is a table showing the systolic blood pressure of patient X from hour 10 to 20 of their "
    "ICU stay:"
)
AVERAGE = "the average systolic blood pressure of patient X was"
EXPIRED = (
    "The average systolic blood pressure among all patients who expired in the hospital was =>"
)


def test_the_threads_of_g2_play_as_they_are_printed():
    bound = "patient_ID = 'X'\ntimeframe = 'hour 10 to 20'\n"
    variable = "variable = 'systolic blood pressure'\n"
    scripts = {
        QUESTION_2: [
            f"{TABLE_2} =>",
            f"\n\nBased on the data in {{table_dir}} {AVERAGE} =>",
            f"\n\n{EXPIRED}",
            "\n\nTherefore, the average systolic blood pressure of patient X from hour 10 to 20 "
            "was higher than the average among all patients who expired in the hospital.\n\n"
            "Final Answer: higher\n\n#END#",
        ],
        f"{TABLE_2} =>": [
            f"{bound}{variable}"
            "# The {variable} during {timeframe} for patient {patient_ID} was =>",
            "\ntable = pd.DataFrame({'time': [x['hour'] for x in data_patient_in_timeframe], "
            "variable: [x['value'] for x in data_patient_in_timeframe]})\n"
            "table_dir = 'table.txt'\ntable.to_csv(table_dir, sep='^', index=False)\n"
            "print('{table_dir}')\n#END#",
        ],
        "# The systolic blood pressure during hour 10 to 20 for patient X was =>": [
            f"{bound}time1 = '10'\ntime2 = '20'\n{variable}"
            "data_patient_in_timeframe = [x for x in measure(patient_ID) if int(time1) <= "
            "x['hour'] <= int(time2)]\n"
            "print('You have retrieved {data_patient_in_timeframe}.')\n#END#",
        ],
        f"Based on the data in table.txt {AVERAGE} =>": [
            f"table_dir = 'table.txt'\n{variable}table = pd.read_csv(table_dir, sep='^')\n"
            "# > print(table) =>",
            "\nvariable_col_name = 'systolic blood pressure'\ny = table[variable_col_name]\n"
            "y_mean=np.mean(y)\nprint(y_mean)\n#END#",
        ],
        EXPIRED: [
            f"{variable}table = pd.DataFrame(all_patients())\n# > print(table) =>",
            "\nfilter_col_name = 'MORTALITY_INHOSPITAL'\n"
            "variable_col_name = 'Systolic blood pressure'\n"
            "target_patient_group = table[table[filter_col_name]==1]\n"
            "y = target_patient_group[variable_col_name]\ny_mean=np.mean(y)\nprint(y_mean)\n#END#",
        ],
    }
    rows = [{"hour": 9, "value": 90.0}, {"hour": 12, "value": 138.0}, {"hour": 18, "value": 138.36}]
    everybody = [
        {"MORTALITY_INHOSPITAL": 1, "Systolic blood pressure": 120.81},
        {"MORTALITY_INHOSPITAL": 0, "Systolic blood pressure": 180.0},
    ]
    episode = play(
        QUESTION_2, scripts, {"measure": lambda patient: rows, "all_patients": lambda: everybody}
    )
    main = episode.threads[0].sequence.text
    assert f"{TABLE_2} =>{{table_dir}}<=\n\n" in main
    assert f"{AVERAGE} =>138.18<=\n\n{EXPIRED}120.81<=\n\nTherefore, " in main
    assert episode.threads[0].variables == {"table_dir": "table.txt"}
    assert episode.threads[1].variables["data_patient_in_timeframe"] == rows[1:]


def test_an_error_of_a_look_up_reaches_the_parent_that_can_ask_again():
    """v2, E.4: the error is returned to the parent, which asks for something else."""

    def look_up(name):
        if name not in IDS:
            raise LookupError(f"no place {name}")
        return IDS[name]

    replies = [
        "The data of Wilows are =>",
        "data = look_up('Wilows')\nprint('{data}')\n#END#",
        "\nThe data of Willows are =>",
        "data = look_up('Willows')\nprint('{data}')\n#END#",
        "\n#END#",
    ]
    with BubblewrapSandbox({"look_up": look_up}) as sandbox:
        session = Session(ScriptedEngine(replies), context=QUESTION_1, dialect=QA, sandbox=sandbox)
        episode = session.run(progress=False)
    text = episode.threads[0].sequence.text
    assert "The data of Wilows are =>LookupError: no place Wilows<=" in text
    assert "The data of Willows are =>{data}<=" in text
    assert episode.threads[0].variables == {"data": IDS["Willows"]}
