"""Routes without a check, rights that clients claim, records of others."""

import pytest

from agents.api.finding import Severity
from agents.detectors.security.access import ACCESS
from agents.workspace.workspace import Workspace
from tests.unit.agents.detectors.seeded import findings, rules_at

FLASK = "from flask import Flask, request, session\napp = Flask(__name__)\n\n\n"


def test_a_deleting_route_without_a_check_is_reported_from_its_decorator():
    text = FLASK + '@app.delete("/items/<int:key>")\ndef remove(key):\n    items.pop(key)\n'
    (found,) = findings([ACCESS], Workspace.of_texts({"a.py": text}))
    assert (found.rule, found.line, found.end_line, found.severity) == (
        "missing-authentication", 5, 6, Severity.HIGH,
    )  # fmt: skip


@pytest.mark.parametrize(
    "checked",
    [
        '@app.delete("/items/<int:key>")\n@login_required\ndef remove(key):\n    pass\n',
        '@app.delete("/items/<int:key>")\n@requires("admin")\ndef remove(key):\n    pass\n',
        '@app.delete("/items/{key}")\ndef remove(key: int, user: User = Depends(current_user)):\n    pass\n',
        '@app.delete("/items/<int:key>")\ndef remove(key):\n    check_token(request)\n',
    ],
)
def test_a_checked_route_is_not(checked):
    assert rules_at(ACCESS, "a.py", FLASK + checked) == []


def test_an_ordinary_route_of_a_program_without_logins_is_a_note():
    text = FLASK + '@app.post("/echo")\ndef echo():\n    return request.data\n'
    (found,) = findings([ACCESS], Workspace.of_texts({"a.py": text}))
    assert found.severity is Severity.LOW


def test_express_routes_need_a_middleware_or_a_look_at_the_user():
    text = (
        'app.delete("/a/:id", (req, res) => res.end());\n'
        'app.delete("/b/:id", requireLogin, (req, res) => res.end());\n'
        'app.delete("/c/:id", (req, res) => { if (!req.user) return; res.end(); });\n'
    )
    assert rules_at(ACCESS, "a.js", text) == [("missing-authentication", 1)]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", 'def f():\n    if request.args.get("role") == "admin":\n        pass\n'),
        ("a.py", 'def f():\n    if request.json["is_admin"]:\n        pass\n'),
        ("a.js", '\nif (req.body.role === "admin") { go(); }\n'),
        ("a.go", '\nfunc f(r *http.Request) bool { return r.Header.Get("X-Role") == "admin" }\n'),
    ],
)
def test_a_right_that_the_client_claims_is_reported(path, line):
    assert rules_at(ACCESS, path, line) == [("client-supplied-role", 2)]


def test_a_record_is_compared_with_its_owner_like_its_neighbours():
    text = FLASK + (
        '@app.get("/notes/<int:note_id>")\n'
        "def read(note_id):\n"
        '    return Note.query.filter_by(id=note_id, owner_id=session["user"]).first()\n\n\n'
        '@app.get("/notes/<int:note_id>/text")\n'
        "def text(note_id):\n"
        "    return db.session.get(Note, note_id).text\n"
    )
    assert ("foreign-record", 12) in rules_at(ACCESS, "a.py", text)
    assert ("foreign-record", 7) not in rules_at(ACCESS, "a.py", text)
