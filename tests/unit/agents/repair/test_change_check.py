"""What is refused about a change without running it."""

from dataclasses import replace

import pytest

from agents.api.finding import Severity
from agents.detectors.audit.python_module import module_of
from agents.detectors.detector import Detector, Rule, selected
from agents.repair.change_check import Findings, refusal_of
from agents.repair.kept_code import lost_code
from agents.repair.new_names import new_name
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

BEFORE = '''import os
import yaml
from helpers import clean

LIMIT = 3


def read(text, strict=False):
    """Read a document."""
    text = clean(text)
    if strict:
        check(text)
    return yaml.load(text, Loader=yaml.Loader)


def check(text):
    assert text


class Store:
    def get(self, key):
        return self.items[key]
'''
GOOD = BEFORE.replace("yaml.load(text, Loader=yaml.Loader)", "yaml.safe_load(text)")
LINE = 13


def module(text):
    found = module_of(SourceFile("a.py", text.encode()))
    assert found is not None
    return found


KEPT = {
    "the fix": GOOD,
    "a guard": GOOD.replace(
        "    if strict", '    if text is None:\n        raise ValueError("nothing")\n    if strict'
    ),
    "an import": "import json\n" + GOOD,
    "another layout": GOOD.replace("    return yaml", "    return \\\n        yaml"),
}
LOST = {
    "another function": (GOOD.replace("    assert text", "    pass"), "touches other code"),
    "a method": (GOOD.replace("self.items[key]", "None"), "touches other code"),
    "a constant": (GOOD.replace("LIMIT = 3", "LIMIT = 4"), "touches other code"),
    "code at the top": (GOOD + "print(1)\n", "adds code elsewhere"),
    "a statement": (GOOD.replace("    text = clean(text)\n", ""), "no longer uses clean"),
    "a condition": (GOOD.replace("    if strict:\n        check(text)\n", ""), "removes other statements"),
    "the name": (GOOD.replace("def read", "def load"), "adds code elsewhere"),
    "the signature": (GOOD.replace("strict=False", "strict"), "alters the parameters"),
    "a decorator": (GOOD.replace("def read", "@clean\ndef read"), "alters the parameters"),
    "every error": (
        GOOD.replace("    return yaml.safe_load(text)", "    try:\n        return yaml.safe_load(text)\n    except Exception:\n        return 0"),
        "catches every exception",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_changes_that_keep_the_program(name):
    assert lost_code(module(BEFORE), module(KEPT[name]), LINE, LINE) == ""
    assert new_name(module(BEFORE), module(KEPT[name]), {"helpers"}) == ""


@pytest.mark.parametrize("name", LOST)
def test_changes_that_lose_something(name):
    text, reason = LOST[name]
    assert reason in lost_code(module(BEFORE), module(text), LINE, LINE)


def test_a_parameter_must_still_be_used():
    before = module("def f(values):\n    return sum(values) / len(values)\n")
    after = module("def f(values):\n    return 0\n")
    assert "no longer uses the parameter values" in lost_code(before, after, 2, 2)


def test_a_function_of_the_program_must_still_be_called():
    before = module("def g(x):\n    return x\n\n\ndef f(x):\n    return g(x) / x\n")
    after = module("def g(x):\n    return x\n\n\ndef f(x):\n    return x / x if x else 0\n")
    assert lost_code(before, after, 6, 6) == "f no longer uses g."


BROUGHT = {
    "import": ("import subprocess\n", "import subprocess"),
    "from import": ("from os import system\n", "os.system"),
    "star": ("from helpers import *\n", None),
    "builtin": ("exec('1')\n", "builtins.exec"),
    "getattr": ("x = getattr(yaml, 'lo' + 'ad')\n", "builtins.getattr"),
    "environment": ("x = os.environ\n", "os.environ"),
    "known module, other function": ("x = os.system('ls')\n", "os.system"),
    "special attribute": ("x = clean.__globals__\n", "attribute.__globals__"),
    "replaced function": ("yaml.load = clean\n", "assignment.yaml.load"),
    "shadowed builtin": ("len = clean\n", "a new meaning of len"),
    "shadowed import": ("yaml = clean\n", "a new meaning of yaml"),
    "shadowing import": ("from helpers import other as yaml\n", "a new meaning of yaml"),
    "pytest": ("import pytest\n", "import pytest"),
    "another use of a dangerous name": ("x = yaml.load\n", "yaml.load"),
}


@pytest.mark.parametrize("name", BROUGHT)
def test_names_that_a_change_may_not_bring(name):
    code, brought = BROUGHT[name]
    found = new_name(module(BEFORE), module(BEFORE + code), {"helpers"})
    assert found == ("" if brought is None else brought)


YAML = Rule("unsafe-yaml", Severity.HIGH, "unsafe loader", 502)
EVAL = Rule("eval", Severity.HIGH, "eval", 95)


def find(workspace, context):
    for file in workspace.of("python"):
        for number, line in enumerate(file.lines, 1):
            if "yaml.load(" in line:
                yield YAML.at(file, number, "m")
            if "eval(" in line:
                yield EVAL.at(file, number, "m")


FOUND = Findings([Detector("d", "D.", find, (YAML, EVAL))])


def refusal(changes, *, known=False, before=None):
    texts = {"a.py": BEFORE, "tests/test_a.py": "def test_a():\n    assert 1 + 1 == 2\n"} | (
        before or {}
    )
    old = Workspace.of_texts(texts)
    new = Workspace.of_texts({k: v for k, v in {**texts, **changes}.items() if v is not None})
    finding = next(one for one in FOUND.of(old) if one.rule == "unsafe-yaml")
    return refusal_of(finding, old, new, FOUND, known=known)


REFUSED = {
    "nothing": ({}, "changes nothing"),
    "the finding stays": ({"a.py": BEFORE + "\n"}, "still reported"),
    "a second file": ({"a.py": GOOD, "b.py": "x = 1\n"}, "which the finding is not in"),
    "the file goes": ({"a.py": None}, "which the finding is not in|removes"),
    "a renamed file": ({"a.py": None, "b.py": BEFORE}, "which the finding is not in|removes"),
    "broken syntax": ({"a.py": GOOD + "def (:\n"}, "does not parse"),
    "a silencer": ({"a.py": GOOD.replace("(text)\n\n", "(text)  # NOSEC\n\n", 1)}, "silences"),
    "a new defect": ({"a.py": GOOD.replace("safe_load(text)", "safe_load(eval(text))")}, "builtins.eval|new finding"),
    "a weakened test": ({"a.py": GOOD, "tests/test_a.py": "def test_a():\n    assert True\n"}, "weakened"),
    "a changed test": ({"a.py": GOOD, "tests/test_a.py": "def test_a():\n    assert 1 + 1 == 2\n# x\n"}, "no tests"),
    "conftest.py": ({"a.py": GOOD, "conftest.py": ""}, "no tests and no configuration"),
    "pyproject.toml": ({"a.py": GOOD, "pyproject.toml": ""}, "no tests and no configuration"),
    "another name": (
        {"a.py": BEFORE.replace("yaml.load(text,", "later(text,") + "\n\nlater = yaml.load\n"}, "adds code elsewhere"),
    "getattr": ({"a.py": BEFORE.replace("yaml.load(", 'getattr(yaml, "lo" + "ad")(')}, "builtins.getattr"),
}  # fmt: skip


def test_the_fix_is_not_refused():
    assert refusal({"a.py": GOOD}) == ""
    assert refusal({"a.py": GOOD}, known=True) == ""


@pytest.mark.parametrize("name", REFUSED)
def test_refused_changes(name):
    changes, reason = REFUSED[name]
    said = refusal(changes)
    assert any(part in said for part in reason.split("|")), said


def test_known_rewrites_are_checked_for_new_findings_too():
    text = GOOD.replace("safe_load(text)", "safe_load(eval(text))")
    assert "new finding: eval" in refusal({"a.py": text}, known=True)


def test_a_finding_that_is_not_there_any_more_is_not_repaired():
    text = "x = 1\n"
    finding = replace(FOUND.of(Workspace.of_texts({"a.py": BEFORE}))[0], detector="d")
    workspaces = [Workspace.of_texts({"a.py": one}) for one in (text, text + "y = 2\n")]
    said = refusal_of(finding, *workspaces, FOUND, known=True)
    assert said == "d does not report unsafe-yaml in this state of the files."


def test_a_selection_reports_under_the_names_of_its_parts():
    part = Detector("d", "D.", find, (YAML, EVAL))
    found = Findings([selected("s", "S.", ["eval"], part), part])
    names = [one.detector for one in found.of(Workspace.of_texts({"a.py": BEFORE}))]
    assert names == ["d"]


def test_findings_at_the_top_of_a_module_with_classes():
    before = module("KEY = 'a'\n\n\nclass Box:\n    size = 1\n")
    after = module("import os\nKEY = os.environ['KEY']\n\n\nclass Box:\n    size = 1\n")
    assert lost_code(before, after, 1, 1) == ""
    other = module("KEY = 'b'\n\n\nclass Box:\n    size = 2\n")
    assert "touches other code" in lost_code(before, other, 1, 1)
