"""Each injected fault fails some tests of its project; the right version passes all, held-back ones too."""

from pathlib import Path

import pytest

from benchmarks.fault_corpus import FaultProject, fault_projects
from tests.fakes.forked_pytest import outcomes

PROJECTS = fault_projects()
Outcomes = dict[str, dict[str, bool]]


def written(folder: Path) -> dict[str, Path]:
    """Each project as it should be, with its fault, and with the patch that only `oracle` refutes."""
    found = {}
    for one in PROJECTS:
        versions = {"right": one.right, "wrong": one.wrong}
        if one.refuted:
            versions["refuted"] = one.refuted
        for version, text in versions.items():
            found[f"{one.name} {version}"] = root = folder / version / one.name
            one.write(root, text)
            one.add_oracle(root)
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    roots = written(tmp_path_factory.mktemp("faults"))
    found = outcomes(list(roots.values()))
    return {name: found[root] for name, root in roots.items()}


def passed(results: Outcomes, name: str, folder: str) -> list[bool]:
    found = [one for test, one in results[name].items() if test.startswith(folder)]
    assert found, name
    return found


def test_each_half_has_fifteen_projects_with_different_names() -> None:
    assert len({one.name for one in PROJECTS}) == 30
    assert sum(one.half == "tuning" for one in PROJECTS) == 15


@pytest.mark.parametrize("project", PROJECTS, ids=lambda one: one.name)
def test_sizes(project: FaultProject) -> None:
    sources = [
        one.read_text()
        for one in project.folder.rglob("*.py")
        if not {"tests", "oracle"} & set(one.relative_to(project.folder).parts)
    ]
    assert 2 <= sum(bool(text) for text in sources) <= 5
    assert 50 <= sum(len(text.splitlines()) for text in sources) <= 400


@pytest.mark.parametrize("project", PROJECTS, ids=lambda one: one.name)
def test_the_right_version_passes_everything(results: Outcomes, project: FaultProject) -> None:
    wrong = [name for name, one in results[f"{project.name} right"].items() if not one]
    assert wrong == []
    assert passed(results, f"{project.name} right", "tests/")
    assert passed(results, f"{project.name} right", "oracle/")


@pytest.mark.parametrize("project", PROJECTS, ids=lambda one: one.name)
def test_the_fault_fails_some_tests_of_both_kinds(results: Outcomes, project: FaultProject) -> None:
    visible = passed(results, f"{project.name} wrong", "tests/")
    assert any(visible)
    assert not all(visible)
    assert not all(passed(results, f"{project.name} wrong", "oracle/"))


@pytest.mark.parametrize(
    "project", [one for one in PROJECTS if one.refuted], ids=lambda one: one.name
)
def test_a_patch_made_for_the_visible_tests_is_refuted(
    results: Outcomes, project: FaultProject
) -> None:
    assert all(passed(results, f"{project.name} refuted", "tests/"))
    assert not all(passed(results, f"{project.name} refuted", "oracle/"))
