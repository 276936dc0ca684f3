"""Comments that switch a detector or a test measurement off."""

import re

from agents.workspace.source_file import SourceFile

_SILENCERS = re.compile(
    r"\bnoqa\b|\bnosec\b|\bnosemgrep\b|type:\s*ignore|pyright:\s*ignore|pyre-ignore|ruff:\s*\w+|flake8:\s*\w+|mypy:\s*\w+"
    r"|pragma:\s*no|pylint:\s*disable|eslint-disable|@ts-(ignore|nocheck|expect-error)|allowlist[ -]secret"
    r"|nolint|codeql\[|lgtm\[|NOSONAR|hadolint\s+ignore|checkov:skip|shellcheck\s+disable|#\[allow\(",
    re.IGNORECASE,
)


def num_silencers(file: SourceFile) -> int:
    """How many there are in a file."""
    return len(_SILENCERS.findall(file.text))
