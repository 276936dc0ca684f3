"""The detector `browser`: messages between windows, stored tokens, polluted prototypes, links and scripts of pages."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.rule_file import JAVASCRIPT, RuleEntry, RuleFile
from agents.detectors.security.taint.tree_values import STRINGS
from agents.detectors.security.taint.value import Trust
from agents.detectors.security.tree_code import TreeCall, TreeCode, tree_code, tree_files
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

RULES = RuleFile(__file__, "browser", entry=RuleEntry)

_SECRET = re.compile(r"(?i)token|jwt|secret|passw|session|credential|api_?key|bearer")
_MERGES = re.compile(r"(^|\.)(merge|mergeWith|defaultsDeep|set|setWith|zipObjectDeep)$")
_MERGE_OWNERS = re.compile(r"^(_|lodash|merge|deepmerge|\$|jQuery)\b")
_CLIENT = re.compile(r"\b(req|request|ctx)\.(body|query|params)\b|\bJSON\.parse\(|\bevent\.data\b")
_PROTO_GUARD = re.compile(
    r"__proto__|hasOwn|Object\.create\(null\)|new Map\(|\bprototype\b|isPlainObject|structuredClone"
)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in tree_files(workspace, context, JAVASCRIPT):
        code = tree_code(file)
        for call in code.calls:
            yield from _call(code, call)
        yield from _assignments(code)
    for file in workspace.of("html"):
        context.check_cancelled()
        yield from _page(file)


def _call(code: TreeCode, call: TreeCall) -> Iterator[Finding]:
    file, name = code.file, call.name
    texts = [code.text(one) for one in call.arguments]
    if name.endswith("addEventListener") and len(texts) > 1 and texts[0].strip("'\"`") == "message":
        window = name in ("addEventListener", "window.addEventListener", "self.addEventListener")
        handler = texts[1]
        if re.fullmatch(r"[\w$]+", handler):
            body = re.search(rf"function\s+{re.escape(handler)}\b[\s\S]{{0,1500}}", file.text)
            handler = body.group() if body else "origin"
        if window and not re.search(r"\b(origin|source|ports)\b", handler):
            yield RULES["message-origin"].at(file, call.line, end_line=call.line)
    elif name.endswith("postMessage") and len(texts) == 2 and texts[1].strip("'\"`") == "*":
        if call.arguments[0].type not in STRINGS:
            yield RULES["message-target"].at(file, call.line)
    elif re.search(r"\b(localStorage|sessionStorage)\.setItem$", name) and texts:
        if _SECRET.search(texts[0]) and not re.search(r"(?i)csrf_?seen|timeout", texts[0]):
            yield RULES["token-in-storage"].at(file, call.line)
    elif (_MERGES.search(name) and _MERGE_OWNERS.search(name)) or name in (
        "$.extend",
        "jQuery.extend",
    ):
        if any(
            _CLIENT.search(text) or code.value(node).trust is Trust.USER
            for text, node in zip(texts, call.arguments, strict=True)
        ):
            yield RULES["prototype-pollution"].at(
                file,
                call.line,
                "A key __proto__ of a client changes all objects: take named fields.",
            )
    elif name.endswith("window.open") and len(texts) > 1 and "_blank" in texts[1]:
        if "noopener" not in " ".join(texts):
            yield RULES["opener"].at(file, call.line)


def _assignments(code: TreeCode) -> Iterator[Finding]:
    """`target[key] = merge(target[key], source[key])`, and `object[parts[i]] = value` along a dotted path."""
    for node in code.of_type("assignment_expression"):
        left = node.child_by_field_name("left")
        if left is None or left.type != "subscript_expression":
            continue
        key = code.text(left.child_by_field_name("index"))
        if not re.fullmatch(r"[A-Za-z_$][\w$]*(\[[^\]]*\])?(\.shift\(\)|\.pop\(\))?", key):
            continue
        function = code.text_of_function(node)
        if (
            len(function) > 6_000
            or _PROTO_GUARD.search(function)
            or re.search(rf"{re.escape(key)}\s*===?\s*['\"]constructor", function)
        ):
            continue
        right = code.text(node.child_by_field_name("right"))
        name = code.function_name(node)
        recursive = (
            bool(name)
            and re.search(rf"\b{re.escape(name)}\s*\(", right)
            and re.search(rf"\[\s*{re.escape(key)}\s*\]", right)
        )
        if recursive and re.search(r"\bfor\s*\(|forEach|Object\.(keys|entries)", function):
            yield RULES["prototype-pollution"].at(
                code.file,
                code.line(node),
                "A key __proto__ reaches the prototype of all objects: skip it.",
            )
        elif re.search(r"\.split\(\s*['\"`][./]['\"`]\s*\)", function) and re.search(
            rf"=\s*\w+\[\s*{re.escape(key)}|\w+\s*=\s*\w+\[", function
        ):
            yield RULES["prototype-pollution"].at(
                code.file,
                code.line(node),
                "A path with __proto__ reaches the prototype of all objects.",
                confidence=0.6,
            )


_TAG = re.compile(r"<(form|script|iframe|link|input)\b([^>]*)>", re.I)
_SECRET_FIELD = re.compile(
    r"(?i)\btype\s*=\s*[\"']?password|\bname\s*=\s*[\"']?(\w*(passw|pin|secret|token|card|cvv|ssn|iban)\w*)"
)


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf"\b{name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", tag, re.I)
    return next((one for one in found.groups() if one is not None), "") if found else ""


def _page(file: SourceFile) -> Iterator[Finding]:
    text = file.text
    for match in _TAG.finditer(text):
        tag, inner = match[1].lower(), match[2]
        line = text.count("\n", 0, match.start()) + 1
        address = _attribute(
            inner, "src" if tag in ("script", "iframe") else "href" if tag == "link" else "action"
        )
        plain = address.startswith("http://") and not re.match(r"http://(localhost|127\.)", address)
        if tag == "script" and plain:
            yield RULES["plain-script"].at(file, line)
        elif (
            tag in ("script", "link")
            and re.match(r"(https:)?//", address)
            and not _attribute(inner, "integrity")
        ):
            if tag == "script" or "stylesheet" in inner:
                yield RULES["no-integrity"].at(file, line)
        elif tag == "form":
            if plain:
                yield RULES["plain-form"].at(file, line)
            end = text.find("</form", match.end())
            body = text[match.end() : end if end >= 0 else match.end() + 5_000]
            if _attribute(inner, "method").lower() in ("", "get") and _SECRET_FIELD.search(body):
                yield RULES["sensitive-get"].at(file, line)


BROWSER = Detector(
    "browser",
    "Looks for unchecked messages, tokens in storage, polluted prototypes, and pages with plain scripts and forms.",
    _detect,
    RULES,
)
