"""Usability problems that show in a page's source, by Nielsen's ten heuristics (1994)."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.design.page import DYNAMIC, Element, all_elements
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_LOW, _MEDIUM = Severity.LOW, Severity.MEDIUM
NO_ERROR_STATE = Rule("no-error-state", _MEDIUM, "Form without a place for errors", reference="H9")
NO_CONFIRMATION = Rule(
    "no-confirmation", _MEDIUM, "Destructive action without a question", reference="H5"
)
VAGUE_ERROR = Rule("vague-error", _LOW, "Error message without a reason", reference="H9")
DEAD_END = Rule("dead-end", _MEDIUM, "Page without a way on", reference="H3")
LONG_FORM = Rule("long-form", _LOW, "Form with many fields", reference="H8")
NO_HINT = Rule("no-format-hint", _LOW, "Format of a field not said", reference="H5")
NO_LOADING = Rule("no-loading-state", _LOW, "Request without a loading state", reference="H1")
UNHANDLED = Rule("request-failure", _MEDIUM, "Failed request not shown", reference="H9")
NO_CANCEL = Rule("no-cancel", _LOW, "Dialog without a way out", reference="H3")
WRONG_TYPE = Rule("input-type", _LOW, "Field type does not fit", reference="H5")
NO_SUBMIT = Rule("no-submit", _MEDIUM, "Form without a submit button", reference="H7")
DEAD_LINK = Rule("dead-link", _LOW, "Link that leads nowhere", reference="H3")
JARGON = Rule("jargon", _LOW, "Technical words shown to people", reference="H2")
RULES = (
    NO_ERROR_STATE, NO_CONFIRMATION, VAGUE_ERROR, DEAD_END, LONG_FORM, NO_HINT, NO_LOADING, UNHANDLED,
    NO_CANCEL, WRONG_TYPE, NO_SUBMIT, JARGON, DEAD_LINK,
)  # fmt: skip
MANY_FIELDS = 12

_DESTRUCTIVE = re.compile(
    r"\b(delete|remove|erase|destroy|reset all|clear all|wipe|purge|deactivate)\b", re.I
)
_CONFIRMS = re.compile(r"confirm|undo|are you sure|data-bs-toggle|dialog|modal", re.I)
_VAGUE = re.compile(
    r"\b(something went wrong|an error (has )?occurred|unknown error|operation failed|oops|invalid input|"
    r"error!|failed\.?)\s*[.!]?\s*\Z",
    re.I,
)
_JARGON = re.compile(
    r"\b(null ?pointer|exception|stack ?trace|undefined|NaN|errno|segfault|0x[0-9a-f]{4,}|HTTP \d{3}|"
    r"status code|foreign key|regex|uuid)\b",
    re.I,
)
_ERROR_PLACE = re.compile(r"error|alert|invalid|feedback|message|warning|status|help", re.I)
_FORMATTED = re.compile(r"date|phone|tel\b|zip|postal|iban|card|password|vat|plate", re.I)
_BY_NAME = (
    ("email", "email"),
    ("e-mail", "email"),
    ("phone", "tel"),
    ("tel", "tel"),
    ("website", "url"),
)


def detect_usability(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    """All rules over pages and JSX; requests in scripts."""
    for file in workspace.of("html", "javascript", "tsx", "typescript"):
        context.check_cancelled()
        elements = all_elements(file)
        if elements:
            yield from _forms(file, elements)
            yield from _actions(file, elements)
            yield from _texts(file, elements)
            yield from _ways(file, elements)
        if file.language != "html":
            yield from _requests(file)


def _forms(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    for form in (one for one in elements if one.tag == "form"):
        inner = list(form.walk())
        fields = [
            one
            for one in inner
            if one.tag in ("input", "select", "textarea")
            and (one.get("type") or "text") not in ("hidden", "submit", "button", "reset", "search")
        ]
        components = any(one.tag[:1].isupper() for one in inner)
        places = any(
            _ERROR_PLACE.search(
                f"{one.get('class') or ''} {one.get('id') or ''} {one.get('role') or ''}"
            )
            or one.get("aria-live")
            for one in (*inner, *(form.parent.children if form.parent else ()))
            if one.tag not in ("input", "form", "button")
        )
        checked = [one for one in fields if one.get("required") is not None or one.get("pattern")]
        if len(fields) >= 2 and not places and not components and not form.is_dynamic() and checked:
            yield NO_ERROR_STATE.at(
                file,
                form.line,
                "The form has required fields and no place that says what is wrong.",
            )
        if len(fields) > MANY_FIELDS and not any(one.tag == "fieldset" for one in inner):
            text = f"The form has {len(fields)} fields in one group: divide it or ask for less."
            yield LONG_FORM.at(file, form.line, text)
        submits = any(
            (one.tag == "button" and (one.get("type") or "submit") in ("submit", DYNAMIC))
            or (one.tag == "input" and one.get("type") in ("submit", "image"))
            for one in inner
        )
        if len(fields) > 1 and not submits and not components:
            yield NO_SUBMIT.at(file, form.line, "The form has no button that sends it.")
        for one in fields:
            yield from _field(file, one)


def _field(file: SourceFile, one: Element) -> Iterator[Finding]:
    name = f"{one.get('name') or ''} {one.get('id') or ''}".lower()
    kind = (one.get("type") or "text").lower()
    if one.tag == "input" and kind == "text":
        for part, wanted in _BY_NAME:
            if re.search(rf"\b{part}", name.replace("_", " ").replace("-", " ")):
                yield WRONG_TYPE.at(
                    file,
                    one.line,
                    f"A field for {part} has type text: type={wanted} helps on phones.",
                )
                break
    hinted = any(one.get(key) for key in ("placeholder", "aria-describedby", "title", "pattern"))
    if kind in ("text", "password") and _FORMATTED.search(name) and one.get("pattern"):
        if not any(one.get(key) for key in ("placeholder", "aria-describedby", "title")):
            yield NO_HINT.at(file, one.line, "The field has a pattern and does not say which.")
    elif kind == "password" and one.get("minlength") and not hinted:
        yield NO_HINT.at(file, one.line, "The field has a least length and does not say it.")


def _actions(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    for one in elements:
        if one.tag not in ("button", "a", "input"):
            continue
        words = f"{one.all_text()} {one.get('value') or ''} {one.get('aria-label') or ''}"
        if not _DESTRUCTIVE.search(words) or one.get("disabled") is not None:
            continue
        around = " ".join(
            f"{key}={value}"
            for part in (one, *one.ancestors())
            for key, value in part.attributes.items()
        )
        handler = one.get("onclick") or one.get("@click") or ""
        if _CONFIRMS.search(f"{around} {handler}") or handler == DYNAMIC:
            continue
        if any(
            outer.tag in ("dialog",) or outer.get("role") == "dialog" for outer in one.ancestors()
        ):
            continue
        if handler or one.tag == "a" or any(outer.tag == "form" for outer in one.ancestors()):
            yield NO_CONFIRMATION.at(
                file,
                one.line,
                f"“{' '.join(words.split()):.60}” acts at once: ask first, or offer undo.",
            )


def _texts(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    for one in elements:
        text = " ".join(one.text.split())
        if not text or one.tag in ("script", "style", "code", "pre", "title", "kbd"):
            continue
        marks = f"{one.get('class') or ''} {one.get('role') or ''} {one.get('id') or ''}"
        error = re.search(r"error|alert|danger|invalid", marks, re.I)
        if error and _VAGUE.search(text):
            yield VAGUE_ERROR.at(file, one.line, f"“{text:.60}” does not say what to do.")
        elif error and _JARGON.search(text):
            yield JARGON.at(file, one.line, f"“{text:.60}” means nothing to most people.")


def _ways(file: SourceFile, elements: list[Element]) -> Iterator[Finding]:
    for one in elements:
        target = one.get("href")
        acts = any(
            key.startswith(("on", "@", "data-", "v-", "ng-")) for key in one.attributes
        ) or one.get("role")
        if one.tag == "a" and target is not None and not acts:
            if (
                target.strip() in ("#", "", "javascript:void(0)", "javascript:;")
                and one.get("id") is None
            ):
                yield DEAD_LINK.at(file, one.line, "The link leads nowhere.")
        if one.tag == "dialog" or one.get("role") in ("dialog", "alertdialog"):
            inner = list(one.walk())
            if any(part.tag[:1].isupper() for part in inner):
                continue
            if not any(
                part.tag in ("button", "a") or part.get("role") == "button" for part in inner
            ):
                yield NO_CANCEL.at(file, one.line, "The dialog has no button that closes it.")
    body = next((one for one in elements if one.tag == "body"), None)
    if body is None or body.is_dynamic():
        return
    inner = list(body.walk())
    ways = ("a", "button", "form", "input", "select", "iframe", "summary")
    if not any(part.tag in ways or part.get("onclick") for part in inner):
        if not any(part.tag == "script" for part in inner) and len(inner) > 1:
            yield DEAD_END.at(
                file, body.line, "The page has no link, button or form.", severity=_LOW
            )


_FETCH = re.compile(r"\bfetch\(|\baxios\.(?:get|post|put|delete|patch)\(|\$\.(?:ajax|get|post)\(")
_CATCHES = re.compile(
    r"\.catch\(|catch\s*[({]|\.fail\(|onError|isError|error:|setError|\.then\([^,]+,"
)
_WAITS = re.compile(r"loading|spinner|pending|skeleton|disabled|busy|isFetching|aria-busy", re.I)


def _requests(file: SourceFile) -> Iterator[Finding]:
    if file.language == "typescript" or not all_elements(file):
        return  # no screen in this file
    for match in _FETCH.finditer(file.text):
        line = file.text.count("\n", 0, match.start()) + 1
        if not _CATCHES.search(file.text):
            yield UNHANDLED.at(file, line, "Nothing is shown if this request fails.")
        if not _WAITS.search(file.text):
            yield NO_LOADING.at(file, line, "Nothing is shown while this request runs.")
        return  # one finding a file: the states are the screen's


USABILITY = Detector(
    "usability",
    "Looks for dead ends, missing states and unconfirmed actions in pages and JSX.",
    detect_usability,
    RULES,
)
