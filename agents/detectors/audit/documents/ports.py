"""The ports that a workspace's settings and code name."""

import re

from agents.detectors.audit.python_module import is_test_path
from agents.workspace.workspace import Workspace

_SETTING = re.compile(
    r"(?i)\b\w*port\w*[\"']?\s*(?::\s*int\s*)?[:=]\s*[\"']?(\d{2,5})\b|--port[ =\"',]+(\d{2,5})\b|\bEXPOSE\s+(\d{2,5})|\blisten\s+(\d{2,5})\b"
    r"|[\"'\w.]:(\d{4,5})\b|^\s*-\s*[\"']?(\d{2,5}):\d{2,5}|default=(\d{4,5})\b|\.listen\(\s*(\d{2,5})",
    re.MULTILINE,
)


def known_ports(workspace: Workspace) -> set[int]:
    """Numbers that settings, container files and code use as ports."""
    found: set[int] = set()
    for file in workspace:
        if file.language in ("markdown", "rst", "text", "csv", "css", "html") or is_test_path(
            file.path
        ):
            continue
        for match in _SETTING.finditer(file.text[:200_000]):
            found.add(int(next(one for one in match.groups() if one)))
    return {port for port in found if 0 < port < 65_536}
