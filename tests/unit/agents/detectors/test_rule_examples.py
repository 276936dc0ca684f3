"""The examples in the rules' YAML files: what is bad is found by its rule, what is good is not."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import agents
from agents.api.data_file import InvalidData
from agents.detectors.detector import Detector
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.plugins.registry import load_registry
from agents.workspace.workspace import Workspace
from tests.unit.agents.detectors.seeded import findings

DETECTORS = Path(agents.__file__).parent / "detectors"
EXTERNAL = ("bandit", "ruff_bugs", "ruff_security", "types")


class Case(NamedTuple):
    """An example of a rule."""

    rule: str
    file: str
    bad: str
    good: str
    detector: str = ""


SECTIONS = ("calls", "lines", "settings")
"""Lists of patterns that have an example each."""
PLACES = {
    "javascript": ("a.js", "{}\n"),
    "go": ("a.go", "func f() {{\n\t{}\n}}\n"),
    "rust": ("a.rs", "unsafe fn f() {{\n    {}\n}}\n"),
    "java": ("A.java", "class A {{ void f() {{\n  {}\n}} }}\n"),
    "settings": ("app.yaml", "{}\n"),
    "terraform": ("a.tf", "{}\n"),
    "nginx": ("nginx/site.conf", "{}\n"),
    "apache": ("apache2.conf", "{}\n"),
    "sshd": ("etc/ssh/sshd_config", "{}\n"),
    "redis": ("redis.conf", "{}\n"),
    "postgres": ("postgresql.conf", "{}\n"),
    "mysql": ("etc/my.cnf", "[mysqld]\n{}\n"),
}
"""By language or program: a file, and the text around a line of it."""


def read_examples(path: Path) -> list[Case]:
    """The examples of rules, and those of their patterns, which are single lines."""
    data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    cases = []
    for rule in data if isinstance(data, list) else [data]:
        for one in rule.get("examples", ()):
            name = one.get("rule") or rule["id"]
            texts = one.get("bad", ""), one.get("good", "")
            cases.append(Case(name, one["file"], *texts, one.get("detector", "")))
        for pattern in (one for section in SECTIONS for one in rule.get(section, ())):
            file, around = PLACES[pattern.get("languages", ["settings"])[0]]
            bad, good = (around.format(pattern[key]) for key in ("bad", "good"))
            cases.append(Case(rule["id"], file, bad, good))
    return cases


FILES = sorted(path for path in DETECTORS.rglob("*.yaml"))
CASES = [
    pytest.param(case, id=f"{path.stem}-{number}-{case.rule}")
    for path in FILES
    for number, case in enumerate(read_examples(path))
]


@cache
def detectors_of(rule: str) -> list[Detector]:
    """The detectors that know a rule, those that run other programs and selections left out."""
    return [
        one
        for one in load_registry().detectors.values()
        if not one.parts and one.name not in EXTERNAL and rule in {known.id for known in one.rules}
    ]


def rules_found(case: Case, text: str) -> set[str]:
    workspace = Workspace.of_texts({case.file: text.replace("¦", "")})
    detectors = detectors_of(case.rule)
    if case.detector:
        detectors = [load_registry().detector(case.detector)]
    return {one.rule for one in findings(detectors, workspace)}


@pytest.mark.parametrize("case", CASES)
def test_bad_examples_are_found_and_good_ones_are_not(case: Case) -> None:
    assert case.bad or case.good
    if case.bad:
        assert case.rule in rules_found(case, case.bad)
    assert not case.good or case.rule not in rules_found(case, case.good)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_rule_has_a_bad_and_a_good_example(path: Path) -> None:
    cases = read_examples(path)
    data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    rules = {one["id"] for one in (data if isinstance(data, list) else [data]) if "id" in one}
    for rule in rules:
        own = [case for case in cases if case.rule == rule]
        assert any(case.bad for case in own), rule
        assert any(case.good for case in own), rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- id: x\n  title: [", "x.yaml is no YAML"),
        ("- id: x\n  title: x\n  severity: high\n  examples: [{file: a}]\n  cew: 1\n", "x.yaml, entry x: "),
        ("- id: x\n  title: x\n  severity: highest\n", "x.yaml, entry x: "),
        ("- &x {id: x, title: x, severity: high, examples: [{file: a}]}\n- *x\n", "x.yaml, entry x: the id is taken"),
    ],
)  # fmt: skip
def test_an_invalid_file_is_named_with_its_rule(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "x.yaml").write_text(text)
    with pytest.raises(InvalidData, match=message):
        list(RuleFile(str(tmp_path / "module.py"), "x", entry=RuleEntry))
