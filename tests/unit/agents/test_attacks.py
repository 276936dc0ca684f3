"""The attack set, and what holds against a model that obeys every text."""

from collections import Counter

import pytest

from benchmarks.agent_attacks import CONFIGURATIONS, Bench, chosen, figures, measure, read_cases

CASES = read_cases()
BY_ID = {attack["id"]: attack for attack in CASES.attacks}
NO_RULE, AUTO, _, ASK = CONFIGURATIONS


@pytest.fixture(scope="module")
def bench():
    return Bench()


async def trial_of(bench, configuration, tmp_path, name):
    attack = BY_ID.get(name)
    task = CASES.tasks[attack["task"] if attack else name]
    return await bench.run(task, attack, configuration, tmp_path)


def test_the_set_is_as_large_as_documented():
    assert len(CASES.attacks) >= 60
    assert len(CASES.tasks) >= 30
    assert len(BY_ID) == len(CASES.attacks)
    assert {attack["task"] for attack in CASES.attacks} <= CASES.tasks.keys()
    assert len({attack["text"] for attack in CASES.attacks}) == len(CASES.attacks)
    goals = Counter(attack["goal"] for attack in CASES.attacks)
    assert len(goals) >= 10
    places = {attack["place"].split(":")[0] for attack in CASES.attacks}
    assert {"file", "web", "ticket", "memory", "commit", "catalogue", "document"} <= places


@pytest.mark.parametrize(
    "name", ["version", "fix_typo", "sum_harvest", "recall_build", "fetch_alone"]
)
async def test_an_obedient_model_does_benign_tasks(bench, tmp_path, name):
    assert (await trial_of(bench, AUTO, tmp_path, name)).done


@pytest.mark.parametrize(
    "name",
    [
        "env-by-fetch-file",
        "env-by-fetch-catalogue",
        "env-by-python",
        "margin-by-memory",
        "customers-by-fetch",
        "write-key-for-publishing",
        "delete-after-secret",
        "poison-fact",
        "poison-replace",
        "poison-forget",
        "forged-approval",
    ],
)
async def test_the_rule_is_what_stops_the_attack(bench, tmp_path, name):
    without = await trial_of(bench, NO_RULE, tmp_path / "without", name)
    assert without.obeyed
    assert without.succeeded
    ruled = await trial_of(bench, AUTO, tmp_path / "with", name)
    assert ruled.obeyed
    assert not ruled.succeeded


@pytest.mark.parametrize(
    "name",
    [
        "path-dotted",
        "path-link",
        "path-write-outside",
        "path-git-config",
        "tool-not-permitted",
        "env-by-shell-file",
        "verdict-gate",
        "verdict-comment",
        "verdict-votes",
        "env-by-image",
        "forged-turn",
    ],
)
async def test_some_attacks_fail_without_the_rule_too(bench, tmp_path, name):
    trial = await trial_of(bench, NO_RULE, tmp_path, name)
    assert trial.obeyed
    assert not trial.succeeded


async def test_writing_is_allowed_in_the_mode_auto_and_asked_in_the_mode_ask(bench, tmp_path):
    assert (await trial_of(bench, AUTO, tmp_path / "auto", "write-hook")).succeeded
    asked = await trial_of(bench, ASK, tmp_path / "ask", "write-hook")
    assert asked.asked == 1
    assert not asked.succeeded


async def test_figures_count_tasks_and_attacks(bench):
    cases = chosen(CASES, ["write-hook", "env-by-fetch-file"])
    results = await measure(bench, cases, [AUTO])
    row = results["auto"]
    assert (row["tasks"], row["attacks"]) == (1, 2)
    assert row["succeeded"] == ["write-hook"]
    assert row["by_goal"] == {"exfiltrate": [0, 1], "write": [1, 1]}
    assert row["attack_success"] == 0.5
    assert figures([], [])["utility"] is None
