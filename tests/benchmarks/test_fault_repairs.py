"""The figures of repaired faults, and a run that goes on where it was stopped."""

import pytest

from benchmarks import fault_repairs
from benchmarks.fault_corpus import fault_projects
from benchmarks.fault_repairs import WITHOUT, measure_faults, summary


def row(**more):
    return {"set": "tuning", "repaired": False, "wrong": False, "seconds": 2.0, "asked": 0} | more


def test_the_figures_of_a_set():
    rows = {
        "a": row(repaired=True, seconds=1.0),
        "b": row(wrong=True, asked=2),
        "c": row(seconds=9.0),
    }
    assert summary("m", rows) == (
        "m: 1 of 3 repaired (33%), 1 wrong patches accepted, median 2 s, the model was asked in 1"
    )


def test_a_run_goes_on_with_what_its_file_lacks(tmp_path, monkeypatch, capsys):
    names = [one.name for one in fault_projects("tuning")][:3]
    file = tmp_path / "found.json"
    seen = []

    async def stopped(project, model):
        seen.append(project.name)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return row(repaired=True, decisions=["accepted"], notes=[])

    monkeypatch.setattr(fault_repairs, "repaired", stopped)
    with pytest.raises(KeyboardInterrupt):
        measure_faults("tuning", None, names, file)
    found = measure_faults("tuning", None, names, file)
    assert seen == [names[0], names[1], names[1], names[2]]
    assert list(found[WITHOUT]) == names
    assert "3 of 3 repaired (100%), 0 wrong" in capsys.readouterr().out


async def test_one_project_is_repaired_and_judged_by_its_held_back_tests():
    (project,) = (one for one in fault_projects("tuning") if one.name == "recipes")
    found = await fault_repairs.repaired(project, None)
    assert (found["repaired"], found["wrong"], found["asked"]) == (True, False, 0), found
    assert found["decisions"][0].startswith("accepted failing-test recipes/recipe.py")
