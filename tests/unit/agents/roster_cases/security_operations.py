"""Seeded inputs of the agents that audit operations: `CASES` has one for each, `SCENARIOS` further ones."""

from collections.abc import Callable, Mapping

from agents.runs.result import RunResult
from tests.unit.agents.roster_cases.case import Case


def places(result: RunResult) -> set[tuple[str, int, str]]:
    """File, line and rule of every finding."""
    return {(one.file, one.line, one.rule) for one in result.findings}


def finds(*expected: tuple[str, int, str]) -> Callable[[RunResult], None]:
    """A check that all of these are among the findings."""

    def check(result: RunResult) -> None:
        assert set(expected) <= places(result), places(result)

    return check


def nothing(result: RunResult) -> None:
    """A check that there is no finding."""
    assert not places(result), places(result)


def _case(files: Mapping[str, str], *expected: tuple[str, int, str]) -> Case:
    return Case(finds(*expected) if expected else nothing, files)


CASES = {
    "dependency_audit": _case(
        {"requirements.txt": "reqeusts==2.31.0\npyyaml==5.1\nflask\npycrypto==2.6.1\n"},
        ("requirements.txt", 1, "typosquat"),
        ("requirements.txt", 2, "known-vulnerable"),
        ("requirements.txt", 3, "unpinned-dependency"),
        ("requirements.txt", 4, "abandoned-package"),
    ),
    "network_security": _case(
        {"client.py": "import requests as r\n\nr.get(URL, verify=False, timeout=5)\nr.get(URL)\n"},
        ("client.py", 3, "tls-verification"),
        ("client.py", 4, "no-timeout"),
    ),
    "privilege_audit": _case(
        {
            "Dockerfile": "FROM python:latest\nENV API_TOKEN=abc123\nRUN curl https://x.io/i | sh\n",
            "pod.yaml": "apiVersion: v1\nspec:\n  containers:\n    - securityContext:\n        privileged: true\n",
        },
        ("Dockerfile", 1, "unpinned-image"),
        ("Dockerfile", 1, "root-user"),
        ("Dockerfile", 2, "secret-in-image"),
        ("Dockerfile", 3, "unverified-download"),
        ("pod.yaml", 5, "excess-privilege"),
    ),
    "api_security": _case(
        {
            "openapi.yaml": "openapi: 3.0.0\nservers:\n  - url: http://shop.io\npaths:\n  /orders:\n    post: {}\n",
            "views.py": "def create(request):\n    return User(**request.json)\n",
        },
        ("openapi.yaml", 3, "plain-server"),
        ("openapi.yaml", 6, "operation-without-security"),
        ("views.py", 2, "mass-assignment"),
    ),
    "compliance": _case(
        {
            "app.py": "import logging\n\nlogging.info(user.email)\n",
            "core.py": "# SPDX-License-Identifier: GPL-3.0-only\n",
            "pyproject.toml": '[project]\nname = "x"\nlicense = "MIT"\n',
        },
        ("app.py", 3, "personal-data-logged"),
        ("core.py", 1, "license-conflict"),
    ),
}
SCENARIOS = (
    ("dependency_audit", _case({"requirements.txt": "requests==2.32.3\nflask==3.0.3\n"})),
    ("dependency_audit", _case({"package.json": '{"dependencies": {\n "react": "*"}}\n'},
                               ("package.json", 2, "wildcard-version"))),
    ("network_security", _case({"a.py": "import requests\n\nrequests.get(URL, timeout=5)\n"})),
    ("network_security", _case({"main.go": "package main\n\nvar c = tls.Config{InsecureSkipVerify: true}\n"},
                               ("main.go", 3, "tls-verification"))),
    ("privilege_audit", _case({"Dockerfile": "FROM python:3.12-slim\nUSER app\nRUN chmod 640 a\n"})),
    ("privilege_audit", _case({"app.service": "[Service]\nUser=root\nNoNewPrivileges=yes\n"},
                              ("app.service", 2, "root-user"))),
    ("api_security", _case({"views.py": "def create(form):\n    return User(name=form.name)\n"})),
    ("api_security", _case({"a.js": "app.put('/u', (req) => {\n  Object.assign(user, req.body)\n})\n"},
                           ("a.js", 2, "mass-assignment"))),
    ("compliance", _case({"app.py": "import logging\n\nlogging.info('email sent')\n"})),
    ("compliance", _case({"people.csv": "name,card\nAda,4539578763621486\n"},
                         ("people.csv", 2, "card-number"))),
)  # fmt: skip
