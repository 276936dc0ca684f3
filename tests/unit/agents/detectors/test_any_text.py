"""The detectors of the audit and security agents on anything."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.detectors.audit import DETECTORS as AUDIT
from agents.detectors.detector import DetectorContext
from agents.detectors.security import DETECTORS as SECURITY
from agents.workspace.workspace import Workspace

SLOW = frozenset(["bandit", "types", "ruff_bugs"])
"""Detectors that start a process: not for hundreds of examples."""


WORDS = st.sampled_from(
    ["FROM x", "USER ", "ENV A=", "services:", "- 5432:5432", "[Service]", "User=root", "def f(x):", "    return x",
     "import os", "from x import", "class A:", "@app.route('/a')", "requests.get(", "verify=False", "{", "}", "\n",
     "'", '"', "`", "openapi: 3", "paths:", "eval(", "SELECT * FROM ", "%s", "f'{x}'", "<?xml", "\0", "é", "&a *a",
     "---", "[project]", "version = ", '{"dependencies": {"a": ', "async def g():", "await ", "if x == x:", ":"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=20).map("\n".join) | st.text(max_size=100))
@settings(max_examples=60, deadline=None)
def test_no_detector_raises_on_any_text(text):
    names = ("a.py", "a.js", "a.ts", "a.go", "a.rs", "Dockerfile", "compose.yaml", "a.service", "a.sh",
             "requirements.txt", "package.json", "pyproject.toml", "Cargo.toml", "openapi.json", "a.md", "a.sql",
             "a.csv", "nginx.conf", ".env", "A.java")  # fmt: skip
    workspace = Workspace.of_texts(dict.fromkeys(names, text))
    for detector in (*AUDIT, *SECURITY):
        if detector.name in SLOW:
            continue
        for finding in detector.detect(workspace, DetectorContext()):
            assert 0 <= finding.line <= len(workspace.get(finding.file).lines) + 1, detector.name
