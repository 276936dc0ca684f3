"""The detector `settings`: application settings in YAML, JSON, TOML, INI, properties and environment files.

Keys are compared by their words, whatever their spelling: `allow_origins`, `allowOrigins` and `ALLOW-ORIGINS`
are one key.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from agents.api.data_file import Entry
from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.detectors.security.configuration.yaml_paths import entries
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace


class SettingPattern(Entry):
    """A key and a value that switch a protection off.

    Attributes:
        key: pattern of the key, its words joined by `_`, with the key above it.
        value: pattern of the value.
        message: in place of the rule's.
        bad: lines of YAML with such a setting.
        good: lines with the setting as it should be.
    """

    key: re.Pattern[str]
    value: re.Pattern[str]
    message: str = ""
    bad: str
    good: str


class SettingRule(RuleEntry):
    """A rule with its settings."""

    settings: tuple[SettingPattern, ...]


RULES = RuleFile(__file__, "settings", entry=SettingRule)

_NEED_PARENT = frozenset(
    ["verify", "enabled", "required", "secure", "http_only", "httponly", "origins", "origin"]
)
_BARE_HOST = re.compile(r"(^|_)(db|database|redis|smtp|mail|upstream|target|remote|peer|client)_")
_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][\w.\- ]*?)\s*[=:]\s*(.*?)\s*$")
_NOT_SETTINGS = re.compile(
    r"(^|/)(package(-lock)?\.json|tsconfig[^/]*\.json|composer\.json|pnpm-lock\.yaml|[^/]*\.schema\.json|openapi[^/]*|swagger[^/]*"
    r"|\.eslintrc[^/]*|\.prettierrc[^/]*|pyproject\.toml|Cargo\.(toml|lock)|mkdocs\.ya?ml)$|(^|/)(node_modules|locales?|i18n|\.github)/"
)
_LANGUAGES = ("yaml", "json", "toml", "ini", "properties", "dotenv")


def words_of(name: str) -> str:
    """A key in lower case, its words joined by `_`."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace.of(*_LANGUAGES):
        context.check_cancelled()
        if is_test_path(file.path) or _NOT_SETTINGS.search(file.path):
            continue
        local = bool(
            re.search(
                r"(?i)(^|[./_-])(dev|development|local|test|example|sample)([./_-]|$)",
                PurePosixPath(file.path).name,
            )
        )
        for path, value, line in _pairs(file):
            yield from _judge(file, path, value, line, local=local)


def _judge(
    file: SourceFile, path: tuple[str, ...], value: str, line: int, *, local: bool
) -> Iterator[Finding]:
    keys = [words_of(one) for one in path[-3:] if one]
    if not keys:
        return
    own = keys[-1]
    whole = "_".join(keys[-2:]) if len(keys) > 1 else own
    if file.language == "properties":
        own = words_of(path[-1].rpartition(".")[2])
    for entry, setting in ((one, two) for one in RULES.entries.values() for two in one.settings):
        matched = setting.key.search(whole) or (own not in _NEED_PARENT and setting.key.search(own))
        if not matched or not setting.value.search(value):
            continue
        if entry.id == "wide-bind" and _BARE_HOST.search(whole):
            continue
        text = f"{path[-1]}: {setting.message or entry.message}"
        severity = Severity.LOW if local else None
        yield entry.rule.at(file, line, text, severity=severity, confidence=0.8)
        return


def _pairs(file: SourceFile) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """Key paths, values and lines; a list counts once for each member."""
    if file.language in ("yaml", "json"):
        if file.language == "yaml" and re.search(
            r"(?m)^(openapi|swagger|apiVersion|on|jobs):", file.text
        ):
            return  # other detectors know these
        yield from ((entry.path, entry.value, entry.line) for entry in entries(file))
        return
    section = ""
    for number, line in enumerate(file.lines, 1):
        stripped = line.strip()
        if len(line) > 2_000 or stripped.startswith(("#", ";", "//")):
            continue
        if head := re.match(r"\[+\s*([\w.\- ]+?)\s*\]+$", stripped):
            section = head[1]
            continue
        if match := _LINE.match(line):
            value = re.sub(r"\s+#.*$", "", match[2]).strip().strip("[]").strip().strip("\"'")
            yield (section, match[1]) if section else (match[1],), value, number


SETTINGS = Detector(
    "settings", "Reads application settings for protections that are switched off.", _detect, RULES
)
