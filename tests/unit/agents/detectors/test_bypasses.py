"""Ways around a check of rights, as programs have them: each is found at its line without a model.

`bypasses.txt` has a program for each; a comment with the rule's name stands at the end of the line of the defect.
"""

import re
from pathlib import Path

import pytest

from agents.plugins.registry import load_registry
from agents.roster.roster import load_roster
from agents.workspace.workspace import Workspace
from tests.unit.agents.detectors.seeded import findings, rules_at

_PARTS = re.split(
    r"^=== ([^\n]+)\n",
    Path(__file__).with_name("bypasses.txt").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)
PROGRAMS = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))
_MARK = re.compile(r"  # ([a-z-]+)$")


def detectors_of(*agents):
    registry = load_registry()
    roster = load_roster(registry)
    names = {name for key in agents for name in roster.get(key).detectors}
    return [registry.detector(name) for name in sorted(names) if not name.startswith("ruff")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_way_around_is_found_at_its_line(name):
    lines = PROGRAMS[name].split("\n")
    ((number, rule),) = [
        (number, mark[1])
        for number, line in enumerate(lines, 1)
        if (mark := _MARK.search(line)) is not None
    ]
    text = "\n".join(_MARK.sub("", line) for line in lines)
    found = findings(
        detectors_of("auth_audit", "logic_flaw"), Workspace.of_texts({"app/a.py": text})
    )
    assert (rule, number) in [(one.rule, one.line) for one in found]


@pytest.mark.parametrize(
    "text",
    [
        "def create(self, **fields):\n    fields.setdefault('is_staff', True)\n",
        "def has(user):\n    return getattr(user, 'is_authenticated', True)\n",
        "def view(request):\n    assert request.user.is_authenticated  # nosec\n",
        "def login(name, given):\n    if find(name) is None:\n        check_password_hash('pbkdf2:x', given)\n",
        "def can_retry(error):\n    try:\n        return error.code == 3\n    except AttributeError:\n        return False\n",
        "@app.before_request\ndef measure():\n    if request.path.startswith('/static'):\n        return\n    start()\n",
        "def check_age(user):\n    if user.age > 3:\n        return True\n    return False\n",
        "def is_valid(token):\n    return token.expires > now()\n",
    ],
)
def test_what_is_in_order_is_not_reported(text):
    (detector,) = [one for one in detectors_of("auth_audit") if one.name == "bypasses"]
    assert rules_at(detector, "app/a.py", text) == []
