"""Seeded inputs of the audit and security agents: what each must report without a model."""

from agents.runs.result import RunResult
from tests.unit.agents.roster_cases.case import Case

SOURCE = """import os
import jwt
import hashlib
import requests
import sqlite3
import logging
from flask import Flask, request

app = Flask(__name__)
log = logging.getLogger(__name__)
API_TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


@app.route("/users/<name>", methods=["DELETE"])
def remove_user(name):
    db = sqlite3.connect("app.db")
    db.execute("DELETE FROM users WHERE name = '" + request.args["name"] + "'")
    log.info("removed %s", request.form["email"])
    return {"gone": name}


@app.route("/items", methods=["POST"])
def create_item():
    return Item(**request.json)


def read(token):
    return jwt.decode(token, options={"verify_signature": False})


def digest(password):
    return hashlib.md5(password.encode()).hexdigest()


def fetch(url):
    return requests.get(url, verify=False, timeout=3)


def open_up(path):
    os.chmod(path, 0o777)
"""
CODE = '''import json_tools_that_do_not_exist
import re


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def port() -> int:
    return "8080"


def check(x):
    if x == x:
        return True
    return False
    print("never")


def slow(names):
    seen = []
    for name in names:
        if name in seen:
            continue
        seen.append(name)
    return seen


def greet(name, greeting):
    """Greet.

    Args:
        person: whom.
    """
    return f"{greeting} {name}"


greet("Ada")
'''
FILES = {"app/server.py": SOURCE}
REQUIREMENTS = "requsets==2.31.0\npyyaml\ndjango==1.11\n"
DOCKERFILE = "FROM python:latest\nENV DB_PASSWORD=hunter22\nRUN curl https://x.io/i.sh | sh\n"
BEFORE = {"before/shop.py": "def price(item, tax):\n    return item * tax\n", "before/test_shop.py":
          "from shop import price\n\ndef test_price():\n    assert price(2, 3) == 6\n"}  # fmt: skip
AFTER = {"after/shop.py": "def price(item):\n    return item\n", "after/test_shop.py":
         "from shop import price\n\ndef test_price():\n    assert True\n"}  # fmt: skip
SAME = {path.replace("before/", "after/"): text for path, text in BEFORE.items()}


def reports(*expected: tuple[str, int]):
    """A check that rules are reported at lines."""

    def check(result: RunResult) -> None:
        found = {(one.rule, one.line) for one in result.findings}
        missing = set(expected) - found
        assert not missing, (missing, found)

    return check


def rejects(result: RunResult) -> None:
    assert not result.output.passed
    assert result.output.reasons


def fixes_the_division(result: RunResult) -> None:
    assert not result.output.cannot_do
    assert "+++ b/app/code.py" in result.output.diff


def writes_a_failing_test(result: RunResult) -> None:
    assert "def test_" in result.output.code


def draws_a_lesson(result: RunResult) -> None:
    assert result.output.model_dump()


def passes(result: RunResult) -> None:
    assert result.output.passed
    assert result.findings == []


def is_unjudged(result: RunResult) -> None:
    assert result.output.passed is None
    assert result.output.not_judged.startswith("the tests did not run.")
    assert result.findings == []


def refuses(result: RunResult) -> None:
    assert result.output.cannot_do


CASES: dict[str, Case] = {
    "syntax_audit": Case(reports(("syntax-error", 1)), files={"a.py": "def f(:\n    pass\n"}),
    "type_safety": Case(reports(("wrong-return-type", 10)), files={"app/code.py": CODE}),
    "logic_flaw": Case(reports(("self-comparison", 14)), files={"app/code.py": CODE}),
    "consistency_guard": Case(
        reports(("wrong-call", 38), ("docstring-parameter", 33)), files={"app/code.py": CODE}
    ),
    "hallucination_hunter": Case(reports(("unknown-import", 1)), files={"app/code.py": CODE}),
    "edge_case_hunter": Case(reports(("unguarded-division", 6)), files={"app/code.py": CODE}),
    "performance_profiler": Case(reports(("list-membership", 23)), files={"app/code.py": CODE}),
    "output_verifier": Case(
        rejects, inputs={"tests": {"passed": 3, "failed": 1}}, files={"a.py": "x = 1\n"}
    ),
    "patch_applier": Case(fixes_the_division, files={"app/code.py": CODE.split("def port")[0]}),
    "self_reflection": Case(
        draws_a_lesson,
        document='{"sequence": 0, "time": 0, "run": "r", "type": "tool_finished", "data": {"failed": true}}\n',
    ),
    "test_generator": Case(writes_a_failing_test, files={"app/code.py": CODE.split("def port")[0]}),
    "regression_guard": Case(rejects, files=BEFORE | AFTER),
    "security_audit": Case(reports(("sql-injection", 17), ("leaked-token", 11)), files=FILES),
    "injection_scanner": Case(reports(("sql-injection", 17)), files=FILES),
    "auth_audit": Case(
        reports(("missing-authentication", 14), ("unverified-token", 28)), files=FILES
    ),
    "crypto_audit": Case(reports(("fast-password-hash", 32)), files=FILES),
    "dependency_audit": Case(
        reports(("typosquat", 1), ("unpinned-dependency", 2), ("known-vulnerable", 3)),
        files={"requirements.txt": REQUIREMENTS},
    ),
    "secrets_scanner": Case(reports(("leaked-token", 11)), files=FILES),
    "network_security": Case(reports(("tls-verification", 36)), files=FILES),
    "privilege_audit": Case(
        reports(
            ("file-mode", 40),
            ("unpinned-image", 1),
            ("secret-in-image", 2),
            ("unverified-download", 3),
        ),
        files=FILES | {"Dockerfile": DOCKERFILE},
    ),
    "api_security": Case(reports(("mass-assignment", 24)), files=FILES),
    "compliance": Case(reports(("personal-data-logged", 18)), files=FILES),
}

CLEAN = '''import hashlib
import hmac
import sqlite3

import requests


def find(db: sqlite3.Connection, name: str) -> list[tuple[str, ...]]:
    """Find users."""
    return db.execute("SELECT * FROM users WHERE name = ?", (name,)).fetchall()


def same(token: str, other: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(token, other)


def digest(data: bytes) -> str:
    """Hash data."""
    return hashlib.sha256(data).hexdigest()


def fetch(url: str) -> bytes:
    """Fetch a page."""
    return requests.get("https://example.org/page", timeout=5).content


def first(values: list[str]) -> list[str] | None:
    """Take the first, if there is one."""
    return values[:1] if values else None


def nothing() -> list[int] | None:
    """Return nothing."""
    return None


def mean(values: list[float]) -> float:
    """Compute the mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0
'''


def is_clean(result: RunResult) -> None:
    assert [one for one in result.findings if one.severity.rank >= 2] == []


REVIEWERS = [key for key in CASES if key not in (
    "output_verifier", "patch_applier", "self_reflection", "test_generator", "regression_guard")]  # fmt: skip
SCENARIOS: list[tuple[str, Case]] = [
    (key, Case(is_clean, files={"app/clean.py": CLEAN, "requirements.txt": "requests==2.32.3\n"}))
    for key in REVIEWERS
]
SCENARIOS += [
    ("output_verifier", Case(refuses)),
    ("patch_applier", Case(refuses, files={"a.py": "x = 1\n"})),
    ("test_generator", Case(refuses, files={"a.py": "x = 1\n"})),
    ("self_reflection", Case(refuses)),
    ("regression_guard", Case(is_unjudged, files=BEFORE | SAME)),
    ("regression_guard", Case(passes, files=BEFORE | SAME, inputs={"tests": {"passed": 1}})),
]
