"""Licences that conflict, and personal data in files and logs. Numbers must pass their checksums."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule, is_test_path
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.guardrails.detection import Kind
from agents.guardrails.personal_data import personal_data
from agents.guardrails.recognizer import Recognizer
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
LICENSE_CONFLICT = Rule("license-conflict", _HIGH, "Licences that do not fit", reference="licence")
NO_LICENSE = Rule("no-license", _LOW, "No licence", reference="licence")
CARD = Rule("card-number", _HIGH, "Card number in a file", cwe=359, reference="PCI DSS 3.5")
IBAN = Rule("bank-account", _MEDIUM, "Account number in a file", cwe=359, reference="GDPR Art. 32")
PERSONAL_FILE = Rule(
    "personal-data", _MEDIUM, "Personal data in a file", cwe=359, reference="GDPR Art. 5"
)
PERSONAL_LOG = Rule(
    "personal-data-logged", _MEDIUM, "Personal data in the log", cwe=532, reference="GDPR Art. 5"
)
CARD_STORED = Rule(
    "card-data-stored", _HIGH, "Card check value stored", cwe=312, reference="PCI DSS 3.3"
)
RULES = (LICENSE_CONFLICT, NO_LICENSE, CARD, IBAN, PERSONAL_FILE, PERSONAL_LOG, CARD_STORED)

_SPDX = re.compile(r"SPDX-License-Identifier:\s*([A-Za-z0-9.+-]+)")
_COPYLEFT = re.compile(r"^(A?GPL|SSPL|EUPL|OSL)", re.I)
_PERMISSIVE = re.compile(r"^(MIT|Apache|BSD|ISC|0BSD|Unlicense|Zlib|CC0)", re.I)
_DECLARED = re.compile(
    r"""["']?license["']?\s*[:=]\s*(?:\{\s*text\s*=\s*)?["']([A-Za-z0-9 .+-]+)["']"""
)
_GPL_TEXT = re.compile(r"GNU (AFFERO )?GENERAL PUBLIC LICENSE", re.I)
_TEST_CARDS = re.compile(
    r"^(4242|4111111111111111|4000|5555555555554444|5105105105105100|378282246310005|6011111111111117|4012888888881881)"
)
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]*[A-Za-z]{2,}\b")
_DATA_LANGUAGES = frozenset(["csv", "json", "sql", "yaml", "text", None, "xml"])
_LOGS = re.compile(
    r"\b(log|logger|logging|LOG|LOGGER)\.(debug|info|warning|warn|error|exception|critical|log)$|^print$"
)
_FIELDS = re.compile(
    r"\b(e_?mail(_address)?|phone(_number)?|mobile(_number)?|ssn|social_security(_number)?|national_(id|insurance\w*)|passport(_number|_no)?|"
    r"tax_(id|number|no)|iban|account_number|card_(number|no)|pan|birth_?(date|day)|date_of_birth|dob|born|diagnosis|blood_type|"
    r"medical_record\w*|health_(record|data)\w*|religion|ethnicity|salary|(home_|street_|postal_|mailing_)?address|full_name|first_name|last_name|"
    r"surname|maiden_name|driver_?s?_licen[cs]e\w*|password|passwd|cvv|cvc)\b",
    re.I,
)
_CVV = re.compile(
    r"\b(cvv|cvc|cvv2|security_code)\b\s*(?:=\s*(?:db|models|Column|sa)\.|[A-Z]+\b|:\s*Mapped)|\bcvv\b\s+(TEXT|VARCHAR|INT|CHAR)",
    re.I,
)
_SCRIPT_LOG = re.compile(
    r"\b(console\.(log|info|error|warn|debug)|logger\.\w+|log\.(Print\w*|Info\w*|Debug\w*)|fmt\.Print\w*)\((.*)"
)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    yield from _licenses(workspace)
    for file in workspace:
        context.check_cancelled()
        if not is_test_path(file.path):
            yield from _numbers(file)
            yield from _addresses(file)
            yield from _script_logs(file)
    for module in python_files(workspace, context, tests=False):
        yield from _logs(module)


def _licenses(workspace: Workspace) -> Iterator[Finding]:
    declared: tuple[SourceFile, int, str] | None = None
    for name in ("pyproject.toml", "package.json", "Cargo.toml", "setup.py", "setup.cfg"):
        file = workspace.get(name)
        match = None if file is None else _DECLARED.search(file.text)
        if file is not None and match:
            declared = file, file.text.count("\n", 0, match.start()) + 1, match[1].strip()
            break
    yield from _declared_otherwise(workspace)
    permissive = declared is not None and _PERMISSIVE.match(declared[2])
    for file in workspace:
        head = "\n".join(file.lines[:40])
        name = file.path.rsplit("/", 1)[-1].upper()
        match = _SPDX.search(head)
        if permissive and declared and match and _COPYLEFT.match(match[1]):
            line = head.count("\n", 0, match.start()) + 1
            text = f"{match[1]} does not fit into a project under {declared[2]}."
            yield LICENSE_CONFLICT.at(file, line, text)
        elif permissive and declared and not match and _GPL_TEXT.search(head):
            if (
                name.startswith(("LICENSE", "LICENCE", "COPYING"))
                or "This program is free software" in head
            ):
                line = head.count("\n", 0, _GPL_TEXT.search(head).start()) + 1  # type: ignore[union-attr]
                text = f"The GPL's text does not fit to {declared[2]}, which {declared[0].path} declares."
                yield LICENSE_CONFLICT.at(file, line, text)
    manifest = next(
        (
            workspace.get(one)
            for one in ("pyproject.toml", "package.json", "Cargo.toml")
            if workspace.get(one)
        ),
        None,
    )
    texts = any(
        re.match(r"(LICEN[CS]E|COPYING|UNLICENSE)", one.path.rsplit("/", 1)[-1], re.I)
        for one in workspace
    )
    if manifest is not None and not texts and declared is None and not workspace.skipped:
        yield NO_LICENSE.at(
            manifest, 1, "The project has no licence: nobody may use it.", confidence=0.6
        )


_FAMILIES = (
    ("AGPL", re.compile(r"GNU AFFERO GENERAL PUBLIC LICENSE|^AGPL", re.I)),
    ("LGPL", re.compile(r"GNU LESSER GENERAL PUBLIC LICENSE|^LGPL", re.I)),
    ("GPL", re.compile(r"GNU GENERAL PUBLIC LICENSE|^GPL", re.I)),
    ("Apache", re.compile(r"Apache License,?\s+Version|^Apache", re.I)),
    ("MPL", re.compile(r"Mozilla Public License|^MPL", re.I)),
    (
        "MIT",
        re.compile(r"\bMIT License\b|Permission is hereby granted, free of charge|^MIT$", re.I),
    ),
    ("BSD", re.compile(r"Redistribution and use in source and binary forms|^BSD|^[023]BSD", re.I)),
    ("ISC", re.compile(r"\bISC License\b|^ISC$", re.I)),
    ("Unlicense", re.compile(r"free and unencumbered software|^Unlicense", re.I)),
)


def _family(text: str) -> str:
    """The licence of a text or an SPDX id, without its version; empty if unknown."""
    return next((name for name, pattern in _FAMILIES if pattern.search(text)), "")


def _declared_otherwise(workspace: Workspace) -> Iterator[Finding]:
    """Manifests that declare another licence than the licence file beside them."""
    for file in workspace:
        folder, _, name = file.path.rpartition("/")
        if name not in (
            "pyproject.toml",
            "package.json",
            "Cargo.toml",
            "setup.cfg",
            "setup.py",
            "composer.json",
        ):
            continue
        match = _DECLARED.search(file.text)
        if match is None or re.search(r" (OR|AND|WITH) ", match[1]):
            continue
        beside = [
            one for one in workspace
            if one.path.rpartition("/")[0] == folder and re.match(r"(LICEN[CS]E|COPYING)(\.(md|txt))?$", one.path.rpartition("/")[2], re.I)
        ]  # fmt: skip
        declared = _family(match[1].strip())
        if len(beside) == 1 and declared:
            own = _family(beside[0].text[:3_000])
            if own and own != declared:
                line = file.text.count("\n", 0, match.start()) + 1
                text = f"{name} declares {match[1].strip()}, but {beside[0].path} is the text of {own}."
                yield LICENSE_CONFLICT.at(file, line, text)


@cache
def _recognizers() -> tuple[Recognizer, Recognizer]:
    """Those of the guardrails for card numbers and for account numbers."""
    known = {one.kind: one for one in personal_data(())}
    return known[Kind.CARD], known[Kind.IBAN]


def _numbers(file: SourceFile) -> Iterator[Finding]:
    if file.path.endswith((".pem", ".crt", ".cer", ".lock", ".sum")):
        return
    cards, accounts = _recognizers()
    for number, line in enumerate(file.lines, 1):
        if len(line) > 5_000:
            continue
        for one in cards.find(line):
            digits = re.sub(r"\D", "", one.text)
            if not _TEST_CARDS.match(digits) and len(set(digits)) > 3:
                text = f"A valid card number ({digits[:4]}…{digits[-2:]}) is in the file."
                shown = line.replace(one.text, f"{digits[:4]}…").strip()
                yield CARD.at(file, number, text, evidence=shown)
        for one in accounts.find(line):
            plain = one.text.replace(" ", "")
            if not plain.startswith(("GB82WEST", "DE89370400440532013000")):
                text = f"A valid account number ({plain[:4]}…) is in the file."
                shown = line.replace(one.text, f"{plain[:4]}…").strip()
                yield IBAN.at(file, number, text, evidence=shown)


_CREDITS = re.compile(
    r"(?i)(^|/)(licen[cs]e|copying|notice|authors|contributors|maintainers|credits|codeowners|\.mailmap|owners|thanks|humans)[^/]*$"
    r"|(^|/)(package|composer|bower)\.json$|(^|/)[^/]*\.(lock|cff|opam)$|(^|/)\.git"
)
"""Files that name a project's own people."""


def _addresses(file: SourceFile) -> Iterator[Finding]:
    """Tables of people: several real e-mail addresses in a data file."""
    if (
        file.language not in _DATA_LANGUAGES
        or len(file.data) > 300_000
        or _CREDITS.search(file.path)
    ):
        return
    found: dict[str, int] = {}
    for number, line in enumerate(file.lines, 1):
        for address in _EMAIL.findall(line[:2_000]):
            host = address.rpartition("@")[2].lower()
            if (
                not re.search(
                    r"example|test|invalid|localhost|noreply|users\.noreply", address, re.I
                )
                and "." in host
            ):
                found.setdefault(address.lower(), number)
    if len(found) >= 3:
        first = min(found.values())
        yield PERSONAL_FILE.at(
            file, first, f"{len(found)} e-mail addresses of people are in the file.", evidence="…"
        )


def _logs(module: PythonModule) -> Iterator[Finding]:
    file = module.file
    for call, name in module.calls:
        if not _LOGS.search(name):
            continue
        for one in call.args:
            values = [part.value for part in ast.walk(one) if isinstance(part, ast.FormattedValue)]
            if not isinstance(one, ast.JoinedStr | ast.Constant):
                values.append(one)
            written = " ".join(
                ast.unparse(value) for value in values if not isinstance(value, ast.Constant)
            )
            match = _FIELDS.search(written.replace(".", " "))
            if match and not re.search(r"mask|redact|hash|len\(|bool\(|is None", written):
                yield PERSONAL_LOG.at(
                    file, call.lineno, f"{match[1]} is written to the log: leave it out or mask it."
                )
                break
    for number, line in enumerate(file.lines, 1):
        if _CVV.search(line):
            yield CARD_STORED.at(file, number, "The card's check value may not be stored.")


def _script_logs(file: SourceFile) -> Iterator[Finding]:
    if file.language not in ("javascript", "typescript", "tsx", "go"):
        if file.language == "sql":
            for number, line in enumerate(file.lines, 1):
                if _CVV.search(line):
                    yield CARD_STORED.at(file, number, "The card's check value may not be stored.")
        return
    for number, line in enumerate(file.lines, 1):
        match = _SCRIPT_LOG.search(line[:1_000])
        if match is None or line.lstrip().startswith("//"):
            continue
        values = " ".join(
            re.findall(r"\$\{([^}]*)\}", match[4]) + re.findall(r",\s*([\w.]+)", match[4])
        )
        named = _FIELDS.search(
            re.sub(r"[.A-Z]", lambda one: " " if one[0] == "." else f"_{one[0].lower()}", values)
        )
        if named:
            yield PERSONAL_LOG.at(file, number, f"{named[1]} is written to the log.")


COMPLIANCE = Detector(
    "compliance",
    "Looks for licence conflicts and for personal data in files and logs.",
    _detect,
    RULES,
)
