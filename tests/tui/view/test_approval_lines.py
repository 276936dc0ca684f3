"""What a person reads before allowing a call."""

from agents.runs.approvals import ApprovalRequest
from agents.tools.tool import Effect
from app.tui.glyphs import UNICODE
from app.tui.view.approval_lines import build_approval, build_approval_keys, build_approvals
from app.tui.view.spans import plain, width


def request(arguments='{"command": "rm -rf \\u001b build"}', target="rm -rf build", **more):
    return ApprovalRequest(
        "a", "r", "coder", "shell", arguments, target, frozenset({Effect.EXECUTE}), "/home/me",
        "the run has read untrusted and private data", **more,
    )  # fmt: skip


def test_an_approval_shows_everything_that_would_happen():
    text = plain(build_approval(request(), 60))
    for words in ("coder", "shell", "runs programs", "/home/me", "untrusted and private", "rm -rf"):
        assert words in text
    assert "\x1b" not in text


def test_a_value_cannot_look_like_another_argument():
    lines = build_approval(request('{"content": "x\\npath: /etc/passwd' + "y" * 90 + '"}'), 40)
    rows = plain(lines).split("\n")
    assert all(row.startswith("  | ") for row in rows[rows.index("content") + 1 :])
    assert all(width(line) <= 40 for line in lines)


def test_a_change_of_files_is_shown_as_its_diff():
    diff = "--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-x = 1\n+x = \x1b[2J2\n"
    for one in (request('{"path": "f.py"}', diff=diff), request(diff, diff=diff)):
        rows = plain(build_approval(one, 60)).split("\n")
        assert rows[-2:] == ["-x = 1", "+x = 2"]
        assert "--- a/f.py" in rows


def test_what_a_repair_says_stands_above_its_diff():
    diff = "--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    rows = plain(build_approval(request(f"eval is used\n\n{diff}", diff=diff), 60)).split("\n")
    assert rows.index("  | eval is used") < rows.index("--- a/f.py")
    assert rows.count("-x = 1") == 1


def test_a_removed_line_does_not_look_like_the_name_of_a_file():
    diff = "--- a/f.sql\n+++ b/f.sql\n@@ -1,2 +1 @@\n--- a comment\n x\n"
    lines = build_approval(request(diff=diff), 60)[-5:]
    assert [line[0].style for line in lines] == [
        "bold $muted", "bold $muted", "$accent", "$error", "$foreground",
    ]  # fmt: skip


def test_a_long_reason_is_not_cut():
    lines = build_approval(request(), 40)
    rows = plain(lines).split("\n")
    assert "asked because the run has read untrusted" in rows
    assert "and private data" in rows


def test_the_key_for_always_names_its_exact_pattern():
    keys = plain(build_approval_keys(request(), 76))
    assert "allow in this conversation: shell rm -rf build" in keys
    without_target = plain(build_approval_keys(request('{"n": 1}', ""), 76))
    assert 'shell {"n": 1}' in without_target


def test_a_row_says_when_it_will_be_denied():
    rows = plain(build_approvals([request(expires_at=400.0)], 0, UNICODE, 90, "", now=128.4))
    assert "denied in 4:32" in rows
    assert "denied in 0:00" in plain(
        build_approvals([request(expires_at=1.0)], 0, UNICODE, 90, "", now=128.4)
    )
    assert "no call waits" in plain(build_approvals([], 0, UNICODE, 90, "", now=0.0))
