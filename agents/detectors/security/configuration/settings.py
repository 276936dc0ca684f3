"""The detector `settings`: application settings in YAML, JSON, TOML, INI, properties and environment files.

Keys are compared by their words, whatever their spelling: `allow_origins`, `allowOrigins` and `ALLOW-ORIGINS`
are one key.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.security.configuration.yaml_paths import entries
from agents.detectors.security.python_files import is_test_path
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
TLS_OFF = Rule("tls-verification", _HIGH, "Certificate not checked", cwe=295)
CORS = Rule("cors", _MEDIUM, "Every site may read answers", cwe=942)
DEBUG = Rule("debug-mode", _MEDIUM, "Debug mode on", cwe=489)
COOKIE = Rule("cookie-flags", _MEDIUM, "Session cookie without protection", cwe=614)
CSRF = Rule("csrf-off", _HIGH, "Protection against forged requests off", cwe=352)
ALGORITHM = Rule("token-algorithms", _HIGH, "Token without a signature", cwe=347)
WIDE_BIND = Rule("wide-bind", _MEDIUM, "Listens on every interface", cwe=668)
PLAIN = Rule("plain-protocol", _MEDIUM, "Unencrypted protocol", cwe=319)
NO_AUTH = Rule("authentication-off", _HIGH, "Authentication switched off", cwe=306)
UNENCRYPTED = Rule("encryption-off", _MEDIUM, "Encryption switched off", cwe=311)
RULES = (TLS_OFF, CORS, DEBUG, COOKIE, CSRF, ALGORITHM, WIDE_BIND, PLAIN, NO_AUTH, UNENCRYPTED)

_OFF = r"(?i)^(false|no|off|0|none|disabled?)$"
_ON = r"(?i)^(true|yes|on|1|enabled?)$"


@dataclass(frozen=True, slots=True)
class _Setting:
    """A key (its words joined by `_`, with the key above it), a value, and what they mean together."""

    key: re.Pattern[str]
    value: re.Pattern[str]
    rule: Rule
    message: str


def _setting(key: str, value: str, rule: Rule, message: str) -> _Setting:
    return _Setting(re.compile(key), re.compile(value), rule, message)


_SETTINGS = (
    _setting(r"(^|_)(tls|ssl|https?|cert\w*|certificate|verify|client|ldap|smtp|registry)_?(\w*_)?(verify|verification|check_hostname|validate|strict)$|^(verify_(ssl|tls|certs?|peer)|ssl_verify|tls_verify|reject_unauthorized|strict_ssl|verify_hostname)$|_reject_unauthorized$|_(verify_ssl|ssl_verify|verify_certs?)$|(^|_)validate_certs?$", _OFF, TLS_OFF, "Certificates of the other side are not checked."),
    _setting(r"(^|_)(insecure(_skip_verify|_skip_tls_verify)?|skip_tls_verify|skip_verify|allow_insecure(_tls|_ssl)?|tls_insecure|ssl_insecure|trust_all(_certs?|_certificates)?|accept_invalid_certs|trust_server_certificate)$", _ON, TLS_OFF, "Certificates of the other side are not checked."),
    _setting(r"^node_tls_reject_unauthorized$|^pythonhttpsverify$|^git_ssl_no_verify_off$", r"^0$", TLS_OFF, "Certificates of the other side are not checked."),
    _setting(r"(^|_)ssl_?mode$", r"(?i)^(disable|allow|none|off)$", PLAIN, "The connection to the database is not encrypted."),
    _setting(r"(^|_)cors(_\w+)?$|(^|_)(allow|allowed)_origins?(_patterns?)?$|access_control_allow_origin$|^cors_origin\w*$", r"^\s*(\*|\.\*|true)\s*$", CORS, "Every site may read the answers."),
    _setting(r"^cors_(allow_all|allow_all_origins|origin_allow_all)$|(^|_)allow_all_origins$", _ON, CORS, "Every site may read the answers."),
    _setting(r"^(\w+_)?debug(_mode|_enabled)?$|^flask_debug$|^app_debug$|^django_debug$", _ON, DEBUG, "Debug mode shows visitors how the program works, or runs their code."),
    _setting(r"^(flask|app|node|rails|django)_env(ironment)?$", r"(?i)^(development|dev|debug)$", DEBUG, "The program runs in development mode."),
    _setting(r"(cookie|session)_?(\w*_)?(secure|http_?only)$", _OFF, COOKIE, "The cookie is sent without TLS or readable by scripts."),
    _setting(r"(^|_)csrf(_\w+)?_?(enabled|protection|check)?$|^wtf_csrf_enabled$", r"(?i)^(false|no|off|0|disabled?)$", CSRF, "Forged requests are accepted."),
    _setting(r"(^|_)(jwt|token|auth|signing)\w*_(alg|algorithms?)$|^algorithms?$", r"(?i)^none$", ALGORITHM, "The algorithm none accepts any token."),
    _setting(r"(^|_)(host|bind|listen|address|bind_address|bind_host|listen_address|http_host|server_host|host_ip|bind_ip|listen_addresses|server_address|bind_to)$", r"^(0\.0\.0\.0|\[?::\]?|\*)(:\d+)?$", WIDE_BIND, "The service listens on every interface."),
    _setting(r"(^|_)(auth|authentication|authorization|security|require_auth|require_login|authentication_enabled|xpack_security)(_enabled|_required)?$", r"(?i)^(false|no|off|disabled?|none)$", NO_AUTH, "Everybody may use the service."),
    _setting(r"(^|_)(allow_anonymous|anonymous_access|anonymous_enabled|auth_disabled|disable_auth(entication)?|no_auth|allow_empty_password|skip_auth)$", _ON, NO_AUTH, "Everybody may use the service."),
    _setting(r"(^|_)endpoints_web_exposure_include$|^exposure_include$", r"^\*$", DEBUG, "Every endpoint of the management interface is open."),
    _setting(r"(^|_)(encrypt|encrypted|encryption|encryption_enabled|storage_encrypted|encrypt_at_rest|tls_enabled|ssl_enabled|use_tls|use_ssl|require_tls|require_ssl)$", r"(?i)^(false|no|off|disabled?)$", UNENCRYPTED, "Data travels or lies unencrypted."),
)  # fmt: skip
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
    for setting in _SETTINGS:
        matched = setting.key.search(whole) or (own not in _NEED_PARENT and setting.key.search(own))
        if not matched or not setting.value.search(value):
            continue
        if setting.rule is WIDE_BIND and _BARE_HOST.search(whole):
            continue
        severity = _LOW if local else setting.rule.severity
        yield setting.rule.at(
            file, line, f"{path[-1]}: {setting.message}", severity=severity, confidence=0.8
        )
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
    "settings",
    "Reads application settings for protections that are switched off.",
    _detect,
    RULES,
)
