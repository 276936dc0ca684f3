"""The manifests of the seeded-defect corpus name real files, lines and agents."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.api.finding import Severity
from agents.specs.packaged import packaged_files

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
HALVES = ("tuning", "held_out")
AGENTS = packaged_files().keys()
REQUIRED = {"id", "project", "file", "line", "agents", "category", "severity", "difficulty", "why"}


@cache
def manifest(half: str) -> dict[str, Any]:
    return yaml.safe_load((CORPUS / half / "defects.yaml").read_text(encoding="utf-8"))


def files_of(half: str) -> Iterator[str]:
    for path in (CORPUS / half).rglob("*"):
        name = path.relative_to(CORPUS / half)
        made_by_tools = any(part.startswith((".", "__")) for part in name.parts[:-1])
        if path.is_file() and not made_by_tools and path.name != "defects.yaml":
            yield name.as_posix()


@pytest.mark.parametrize("half", HALVES)
def test_each_defect_is_at_lines_that_exist(half: str) -> None:
    for defect in manifest(half)["defects"]:
        lines = (CORPUS / half / defect["project"] / defect["file"]).read_text().splitlines()
        first, last = defect["line"], defect.get("end_line", defect["line"])
        assert 1 <= first <= last <= len(lines), defect["id"]
        assert any(line.strip() for line in lines[first - 1 : last]), defect["id"]


@pytest.mark.parametrize("half", HALVES)
def test_each_defect_has_known_agents_a_severity_and_a_reason(half: str) -> None:
    for defect in manifest(half)["defects"]:
        assert defect.keys() - {"end_line"} == REQUIRED, defect["id"]
        assert defect["agents"], defect["id"]
        assert set(defect["agents"]) <= AGENTS, defect["id"]
        assert len(set(defect["agents"])) == len(defect["agents"]), defect["id"]
        assert Severity(defect["severity"]) is not Severity.INFO, defect["id"]
        assert defect["difficulty"] in {"easy", "medium", "hard"}, defect["id"]
        assert defect["why"].endswith("."), defect["id"]


def test_ids_are_unique() -> None:
    ids = [defect["id"] for half in HALVES for defect in manifest(half)["defects"]]
    assert len(ids) == len(set(ids))


def test_every_file_of_the_held_out_half_is_listed_as_seeded_or_clean() -> None:
    half = manifest("held_out")
    seeded = {f"{defect['project']}/{defect['file']}" for defect in half["defects"]}
    clean = set(half["clean"])
    assert not seeded & clean
    assert seeded | clean == set(files_of("held_out"))


@pytest.mark.parametrize("half", HALVES)
def test_clean_files_and_inputs_of_cases_exist(half: str) -> None:
    root = CORPUS / half
    assert all((root / name).is_file() for name in manifest(half)["clean"])
    for case in manifest(half)["cases"]:
        assert set(case["agents"]) <= AGENTS
        assert all((root / case["project"] / name).exists() for name in case["inputs"].values())


def test_the_corpus_is_as_large_as_its_figures_say() -> None:
    both = [defect for half in HALVES for defect in manifest(half)["defects"]]
    held_out = manifest("held_out")["defects"]
    assert len(both) >= 200
    assert len(held_out) >= 150
    assert len({key for defect in held_out for key in defect["agents"]}) >= 25


def test_the_halves_share_no_file() -> None:
    tuning, held_out = (
        {(CORPUS / half / name).read_bytes() for name in files_of(half)} for half in HALVES
    )
    assert not tuning & held_out
