"""`kept_options`: a project's own `addopts` for pytest without what hinders a run that is read by a program.

Options such as `--import-mode` and `--strict-markers` decide what the tests do, so they are kept. Those for
coverage, parallel runs, reports and stopping early only fail without their plugins or hide outcomes.
"""

import configparser
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agents.project_tests.small_files import text_of, toml_of

_DROPPED = re.compile(
    r"--(no-)?cov\b|--cov-|-n\d|-n$|--numprocesses|--dist\b|--maxprocesses|-x$|--exitfirst|--maxfail|--junit|"
    r"--durations|--html|--self-contained-html|--lf$|--last-failed|--ff$|--failed-first|--sw$|--stepwise|"
    r"--pdb|--trace$|--color|--report-log|--md|--json-report|--benchmark-|--profile|--allure|--reruns|"
    r"--co$|--collect-only|-q+$|--quiet|-v+$|--verbose|-r[a-zA-Z]+$|--tb\b|-s$|--capture\b|--show-capture|"
    r"--instafail|--sugar|--force-sugar|--testmon|--picked|--randomly|-p$|-p\s*no:|--no-header|--no-summary|"
    r"--cache-clear|--nf$|--new-first|--setup-show"
)
_WITH_VALUE = frozenset(
    ["--cov", "-n", "--numprocesses", "--dist", "--maxfail", "--junitxml", "--junit-xml", "--durations",
     "--html", "--tb", "--capture", "--color", "--reruns", "--cov-report", "--cov-config", "--cov-fail-under",
     "--durations-min", "--junit-prefix", "--junitprefix", "--reruns-delay", "--report-log",
     "--maxprocesses", "--show-capture"]
)  # fmt: skip


def kept_options(root: Path) -> str | None:
    """The project's options without those; None if it has none, or all are kept."""
    given = _addopts(root)
    if given is None:
        return None
    words = list(given)
    kept = list(_kept(words))
    return None if kept == words else shlex.join(kept)


def _kept(words: list[str]) -> Iterator[str]:
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word == "-p":
            name = words[index] if index < len(words) else ""
            index += 1
            if not name.startswith("no:") and name not in ("xdist", "pytest_cov", "sugar"):
                yield from (word, name)
            continue
        if _DROPPED.match(word) is None:
            yield word
            continue
        takes = word in _WITH_VALUE and index < len(words)
        if takes and not words[index].startswith("-"):
            index += 1


def _addopts(root: Path) -> list[str] | None:
    """Pytest's own order of files: the first that configures it counts."""
    for name in ("pytest.ini", ".pytest.ini"):
        if (root / name).is_file():
            return _words(_section(root / name, "pytest"))
    table = toml_of(root / "pyproject.toml").get("tool")
    tool = table if isinstance(table, dict) else {}
    table = tool.get("pytest")
    pytest = table if isinstance(table, dict) else {}
    options = pytest.get("ini_options")
    for candidate in (options, pytest):
        if isinstance(candidate, dict) and candidate:
            return _words(candidate.get("addopts"))
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        value = _section(root / name, section)
        if value is not None:
            return _words(value)
    return None


def _words(value: Any) -> list[str] | None:
    if isinstance(value, list):
        return [str(one) for one in value]
    if not isinstance(value, str):
        return None
    try:
        return shlex.split(value)
    except ValueError:
        return None


def _section(path: Path, section: str) -> str | None:
    """`addopts` of a section; an empty text if the section has none, None without the section."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text_of(path))
    except configparser.Error:
        return None
    return parser.get(section, "addopts", fallback="") if parser.has_section(section) else None
