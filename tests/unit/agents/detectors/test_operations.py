"""The detectors of the agents that audit operations, on anything."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.detectors.detector import DetectorContext
from agents.detectors.security.api import API
from agents.detectors.security.compliance import COMPLIANCE
from agents.detectors.security.dependencies import DEPENDENCIES
from agents.detectors.security.network import NETWORK
from agents.detectors.security.privileges import PRIVILEGES
from agents.workspace.workspace import Workspace

DETECTORS = (API, COMPLIANCE, DEPENDENCIES, NETWORK, PRIVILEGES)
PATHS = (
    "Dockerfile", "a.yaml", "a.service", "a.sh", "sudoers", "a.py", "a.js", "a.go", "nginx.conf", "a.csv",
    "a.sql", "requirements.txt", "pyproject.toml", "Cargo.toml", "package.json", "package-lock.json",
)  # fmt: skip


def lines_of(files: dict[str, str]) -> list[tuple[str, int]]:
    """Rule and line of what all five detectors find; each line must be in its file."""
    workspace = Workspace.of_texts(files)
    found = [one for each in DETECTORS for one in each.detect(workspace, DetectorContext())]
    for one in found:
        file = workspace.get(one.file)
        assert file is not None
        assert 1 <= one.line <= max(1, len(file.lines))
    return [(one.rule, one.line) for one in found]


@pytest.mark.parametrize(
    "text",
    [
        "dependencies = 5",
        "dependencies = true",
        "optional-dependencies = 3",
        "optional-dependencies = { a = 1 }",
    ],
)
def test_dependencies_of_a_wrong_type_are_ignored(text):
    assert lines_of({"pyproject.toml": f'[project]\nlicense = "MIT"\n{text}\n'}) == []


@pytest.mark.parametrize("first", ["services:", "openapi: 3.0.0\ncomponents:"])
def test_yaml_aliases_are_followed_once(first):
    text = f"{first}\n  a: &a [{', '.join(['*a'] * 9)}]\n  b: {{privileged: true, type: string}}\n"
    assert len(lines_of({"a.yaml": text})) == 1


PIECES = st.sampled_from(
    [
        "FROM ", "RUN ", "ENV PASSWORD=", "\\", "services:", "openapi: 3\n", "apiVersion: v1\n",
        "components:", "type: string", "paths:\n  /a:\n    get:", "&a", "*a", ": ", "- ", "[", "]",
        "{", "}", "[Service]\n", "User=root", "chmod 777 a", "[project]\n", "dependencies", " = ", '"',
        "1", "==", "request.json", "requests.get(", ")", "logging.info(", "verify=False", "server.bind(",
        "'", "\n", "  ", "\x00", "²", "4539578763621486", "req.body",
    ]
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(PATHS), st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=200))
def test_no_detector_raises_on_any_text(path, text):
    lines_of({path: text})
