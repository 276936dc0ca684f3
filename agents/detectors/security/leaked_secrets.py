"""The detector `secrets`: credentials in files and in the recent history of git. Values are redacted."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.guardrails.secret_formats import entropy, formats
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

TOKEN = Rule("leaked-token", Severity.CRITICAL, "credential of a known format", 798)
PRIVATE_KEY = Rule("private-key", Severity.CRITICAL, "private key", 321)
PASSWORD = Rule("hardcoded-password", Severity.HIGH, "password or secret in the text", 798)
CONNECTION = Rule("password-in-url", Severity.HIGH, "address with a password", 798)
HISTORY = Rule("secret-in-history", Severity.HIGH, "credential in the history of git", 798)

_HISTORY_COMMITS = 200
_HISTORY_BYTES = 20 << 20
_MAX_LINE = 4_000

_KEY_HEADER = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----")
_URL = re.compile(
    r"\b([a-z][a-z0-9+.-]{1,20})://[^\s:/@'\"<>{}$%]*:([^\s:/@'\"<>]{3,})@[^\s'\"<>/]+",
    re.IGNORECASE,
)
_NAME = (
    r"[\w.\-]*(?:passw(?:or)?d|passwd|pwd|passphrase|secret|api[_-]?key|apikey|auth[_-]?token|access[_-]?token"
    r"|refresh[_-]?token|private[_-]?key|client[_-]?secret|secret[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?"
    r"|webhook[_-]?key|bearer|token|dsn_pass|pepper|_key)"
)
_QUOTED = re.compile(
    rf"(?i)(?<![\w.-])[\"'`]?({_NAME}[\w\-]*)[\"'`]?\s*(?:\]\s*)?(?::\s*[\w<>\[\]&' |.]+?)?\s*(:=|=>|=|:|==|,)\s*"
    r"(?:(?:\w+[.:]+)*(?:Secret\w*|SecretStr|b64decode|bytes|str|String|string|from|from_str|new|Some|to_owned|fromhex|\[\]byte)\()?(?:[bru]{0,2})([\"'`])((?:(?!\3).){4,200})\3"
)
_BARE = re.compile(
    rf"(?i)^\s*(?:export\s+|ENV\s+|ARG\s+|-\s+|set\s+)?[\"']?({_NAME}\w*)[\"']?\s*[=:]\s*([^\s\"'#]{{6,200}})\s*(?:#.*|;)?$"
)
_FLAG = re.compile(
    r"(?:--password[= ]|:_(?:authToken|auth|password)\s*=\s*|PGPASSWORD=|MYSQL_PWD=|-u\s+[\w.-]+:|\bmysql(?:dump|admin)?\b.*\s-p(?=\S)|\bsshpass\s+-p\s*"
    r"|\bredis-cli\b.*\s-a\s+|Authorization:\s*(?:Bearer|Basic)\s+)['\"]?([^\s'\"$]{6,})"
)
_BARE_LANGUAGES = frozenset(
    ["dotenv", "ini", "yaml", "properties", "dockerfile", "bash", "systemd", "toml", "terraform"]
)
_ENTROPY = re.compile(r"[\"'`]([A-Za-z0-9+/=_-]{32,120})[\"'`]")
_NOT_SECRET_NAME = re.compile(
    r"(?i)(public|_url$|_uri$|_path$|_file$|_name$|_id$|_field$|_header$|_type$|_len(gth)?$|_hash$|_regex$|_pattern$"
    r"|_format$|_label$|_env$|_prompt$|_help$|_min$|_max$|_policy$|_count$|_expiry$|_ttl$|placeholder|primary_key|foreign_key"
    r"|sort_key|cache_key|partition_key|tokenizer|_tokens$|token_type|next_token|_limit$|message|error|title|description"
    r"|keyword|endpoint|_kind$|hotkey|_cookie$|_column$|_class$|_mode$|password_field|shortcut|storage_key|_state$|_var$)"
)
_PLACEHOLDER = re.compile(
    r"(?i)(example|sample|dummy|placeholder|deadbeef|changeme|change[_-]me|your[_\- ]|xxxx|\*\*\*|<[^>]+>|\$\{|\{\{|%\(|%s|\{\w*\}"
    r"|redacted|todo|fixme|not[_-]?a[_-]?real|replace|insert[_ -]|^\.\.\.|notasecret|^none$|^null$|^true$|^false$"
    r"|undefined|process\.env|os\.environ|getenv|secretsmanager|vault:|^env[:.]|^ref\+|^arn:aws|^/|^\./|^https?://[^@]*$"
    r"|^(password|passwd|secret|token|key|test|string|text|bearer|basic|hidden|required|optional|foo|bar|abc|mock\w*)$|^\$)"
)
_HASH = re.compile(
    r"^(sha\d+-|sha\d+:|md5:)|^[0-9a-f]{32}$|^[0-9a-f]{40}$|^[0-9a-f]{64}$|^[0-9a-f]{128}$"
)
_UUID = re.compile(r"(?i)^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$")
_WORDS = re.compile(
    r"^[a-z]+([ _.:/-][a-z]+)*[.:!?]?$|^[A-Z][a-z]+( [\w']+)*[.:!?…]?$|^[A-Z][A-Z_]+$"
)
_LOCK_FILES = re.compile(
    r"(^|/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|Cargo\.lock|go\.sum|Pipfile\.lock|composer\.lock"
    r"|[^/]*\.min\.(js|css)|[^/]*\.svg|[^/]*\.map)$"
)
_EXAMPLE_FILES = re.compile(r"(?i)(^|[/._-])(example|sample|template|dist|tmpl)s?([/._-]|$)")


_LISTED_SECRET = re.compile(r"^(?=.*[a-zA-Z])(?=.*\d)\S+$")
_PATTERN = re.compile(r"\\[bdswDSW.]|\(\?|\[[^\]]*-[^\]]*\]|\)\||\|\w+\||\.\*|\{\d+(,\d*)?\}")
"""Marks of regular expressions."""
_STRONG_NAME = re.compile(
    r"(?i)passw|pwd|passphrase|secret|api[_-]?key|apikey|private[_-]?key|access[_-]?key|signing[_-]?key|encryption[_-]?key|client[_-]?secret|credential"
    r"|auth[_-]?token|access[_-]?token|pepper"
)


def _plain(text: str) -> str:
    return re.sub(r"[\W_]", "", text.lower())


_NAME_HINT = re.compile(
    r"passw|pwd|passphrase|secret|key|token|credential|bearer|pepper|auth|sign|-u\s|-p\S|-a\s|PGPASS"
    r"|://[^\s/@]*:[^\s@]*@",
    re.IGNORECASE,
)


@cache
def _format_hint() -> re.Pattern[str]:
    """What every line with a credential of a known format has somewhere."""
    known = [re.escape(hint) for one in formats() for hint in one.hints if len(hint) > 1]
    return re.compile("|".join([r"\.[\w-]{6}\.", *known]))


def redacted(value: str) -> str:
    """The first four characters and an ellipsis."""
    return f"{value[:4]}…"


def secrets_in_line(line: str, language: str | None) -> Iterator[tuple[Rule, str, str]]:
    """The secrets of one line: rule, what it is, and the value."""
    if len(line) > _MAX_LINE:
        line = line[:_MAX_LINE]
    has_format = _format_hint().search(line)
    if not has_format and not _NAME_HINT.search(line):
        return
    if _KEY_HEADER.search(line) and not re.search(
        r"(startswith|in |contains|match|compile|\\n-----|includes)\W", line
    ):
        yield PRIVATE_KEY, "private key", "-----BEGIN"
        return
    for one in formats() if has_format else ():
        found_value = one.find(line)
        if found_value and not _PLACEHOLDER.search(found_value):
            yield TOKEN, one.title, found_value
            return
    match = _URL.search(line)
    if (
        match
        and not _is_placeholder(match[2])
        and match[2].lower() not in ("pass", "password", "pw", "pwd", "secret")
    ):
        yield CONNECTION, f"password in a {match[1].lower()} address", match[2]
        return
    for found in _QUOTED.finditer(line):
        name, between, quote, value = found.groups()
        if quote == "`" and language not in ("javascript", "typescript", "tsx", "go"):
            continue
        if between == "," and not _LISTED_SECRET.search(value):
            continue  # two members of a list
        if _is_secret(name, value):
            yield PASSWORD, name, value
            return
    if language in _BARE_LANGUAGES:
        bare = _BARE.match(line)
        if (
            bare
            and _is_secret(bare[1], bare[2])
            and not re.match(r"[\w.]+\(|\w+\.\w+\.\w+$|\[|\{|!", bare[2])
        ):
            yield PASSWORD, bare[1], bare[2]
            return
    flag = _FLAG.search(line)
    if flag and not _is_placeholder(flag[1]) and re.search(r"\d", flag[1]) and "{" not in flag[1]:
        yield PASSWORD, "password on a command line", flag[1]
        return
    for found in _ENTROPY.finditer(line):
        value = found[1]
        if (
            entropy(value) > 4.5
            and _mixed(value)
            and not _is_placeholder(value)
            and re.search(r"(?i)key|secret|token|pass|auth|cred|sign", line[: found.start()])
        ):
            yield PASSWORD, "string of high entropy", value
            return


def _mixed(value: str) -> bool:
    return all(re.search(pattern, value) for pattern in ("[a-z]", "[A-Z]", "[0-9]"))


def _is_placeholder(value: str) -> bool:
    return (
        bool(_PLACEHOLDER.search(value))
        or len(set(value)) < 4
        or bool(re.fullmatch(r"[a-z]\w*\.[a-z]\w*(\.\w+)*", value))
    )


def _is_secret(name: str, value: str) -> bool:
    if _NOT_SECRET_NAME.search(name) or _is_placeholder(value) or _UUID.match(value):
        return False
    if _PATTERN.search(value) or _plain(value) in _plain(name) or _plain(name) in _plain(value):
        return False  # a regular expression; a name that stands for itself
    if not _STRONG_NAME.search(name) and not (
        re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
    ):
        return False
    if re.fullmatch(r"[A-Za-z]+([-_./:][A-Za-z]+)+", value) and not re.search(
        r"(?i)passw|pwd|secret", name
    ):
        return False  # words: the name of something
    if _HASH.match(value) and not re.search(r"(?i)secret|token|key|passw", name):
        return False
    if re.search(r"\s", value) and not re.search(r"(?i)passphrase|passw", name):
        return False
    if _WORDS.match(value):  # plain words are secrets only for passwords
        is_password = re.search(r"(?i)passw|pwd|passphrase|secret", name) is not None
        return (
            is_password
            and " " not in value
            and len(value) >= 6
            and re.sub(r"[\W_]", "", value.lower()) not in re.sub(r"[\W_]", "", name.lower())
        )
    if re.search(r"(?i)(_key|token|bearer)$", name) and not re.search(r"\d", value):
        return entropy(value) > 3.8
    return entropy(value) > 2.3


def _in_file(file: SourceFile) -> Iterator[Finding]:
    if _LOCK_FILES.search(file.path):
        return
    lenient = (
        is_test_path(file.path)
        or bool(_EXAMPLE_FILES.search(file.path))
        or file.language in ("markdown", "rst")
    )
    for number, line in enumerate(file.lines, 1):
        for rule, what, value in secrets_in_line(line, file.language):
            if lenient and rule in (PASSWORD, CONNECTION):
                continue  # documentation and tests are full of passwords that open nothing
            if "pragma: allowlist secret" in line or "noqa: S105" in line:
                continue
            evidence = (
                line.strip().replace(value, redacted(value))
                if rule is not PRIVATE_KEY
                else line.strip()[:40]
            )
            yield rule.at(
                file,
                number,
                f"{what[:60]} ({redacted(value)}) can be read here. Revoke it and load it from a secret store.",
                evidence=evidence,
                confidence=0.95 if rule in (TOKEN, PRIVATE_KEY) else 0.75,
                severity=Severity.LOW if rule is PRIVATE_KEY and lenient else None,
            )


def _in_history(root: Path, present: set[str], context: DetectorContext) -> Iterator[Finding]:
    """Secrets of known formats that recent commits removed or changed."""
    if not (root / ".git").exists():
        return
    command = [
        "git",
        "-C",
        str(root),
        "log",
        f"--max-count={_HISTORY_COMMITS}",
        "-p",
        "--unified=0",
    ]
    command += [
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--diff-filter=AM",
        "--format=commit %h",
    ]
    try:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None  # noqa: S101 - asked for above
            data = process.stdout.read(_HISTORY_BYTES)
            process.kill()
    except OSError:
        context.note("git is not installed: the history was not searched for secrets.")
        return
    if len(data) == _HISTORY_BYTES:
        context.note(
            f"Only the newest {_HISTORY_BYTES >> 20} MiB of git's history were searched for secrets."
        )
    commit, path = "", ""
    seen: set[str] = set()
    for line in data.decode("utf-8", "replace").split("\n"):
        if line.startswith("commit "):
            commit = line[7:].strip()
        elif line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else ""
        elif (
            line.startswith("+")
            and path
            and not is_test_path(path)
            and not _LOCK_FILES.search(path)
        ):
            for rule, what, value in secrets_in_line(line[1:], None):
                if rule in (TOKEN, CONNECTION) and value not in seen and value not in present:
                    seen.add(value)
                    yield HISTORY.at(
                        SourceFile(path, b""),
                        0,
                        f"{what} ({redacted(value)}) was committed in {commit} and can still be read there. Revoke it.",
                        evidence=f"{commit} {line[1:].strip().replace(value, redacted(value))}",
                    )


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace:
        context.check_cancelled()
        yield from _in_file(file)
    context.check_cancelled()
    if (workspace.root / ".git").exists():
        present = {value for file in workspace for value in _known_formats(file)}
        yield from _in_history(workspace.root, present, context)


def _known_formats(file: SourceFile) -> Iterator[str]:
    """The values of known formats in a file."""
    for line in file.lines:
        yield from (
            value for rule, _, value in secrets_in_line(line, None) if rule in (TOKEN, CONNECTION)
        )


SECRETS = Detector(
    name="secrets",
    description="Finds credentials in files and recent commits by format, assignment and entropy; values are redacted.",
    detect=_detect,
    rules=(TOKEN, PRIVATE_KEY, PASSWORD, CONNECTION, HISTORY),
)
