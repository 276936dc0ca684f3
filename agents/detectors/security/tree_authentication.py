"""Comparisons of secrets, cookies and tokens in JavaScript, TypeScript, Go, Rust and Java."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.detector import DetectorContext
from agents.detectors.rule_file import JAVASCRIPT, RuleFile
from agents.detectors.security.pattern_rules import PatternRule
from agents.detectors.security.secret_names import compares_secrets
from agents.detectors.security.tree_code import TreeCall, TreeCode, tree_code, tree_files
from agents.workspace.workspace import Workspace

_LITERAL = re.compile(
    r"^(['\"`\d]|-\d|nil$|null$|undefined$|true$|false$|None\b|Some\(|\[\]byte\(\"|&?\"|typeof\b|this$)"
)
_SESSION = re.compile(r"(?i)sess|auth|token|sid\b|jwt")
_OFF = r"\b{}\s*[:=]\s*false\b"


def tree_findings(
    rules: RuleFile[PatternRule], workspace: Workspace, context: DetectorContext
) -> Iterator[Finding]:
    """The findings in all files outside of tests."""
    for file in tree_files(workspace, context):
        code = tree_code(file)
        yield from _comparisons(code, rules)
        for call in code.calls:
            yield from _signing_key(code, call, rules)
        yield from _cookies(code, rules)


def _comparisons(code: TreeCode, rules: RuleFile[PatternRule]) -> Iterator[Finding]:
    for node in code.of_type("binary_expression"):
        operator = node.child_by_field_name("operator")
        if operator is None or code.text(operator) not in ("==", "!=", "===", "!=="):
            continue
        left, right = (
            code.text(node.child_by_field_name("left")),
            code.text(node.child_by_field_name("right")),
        )
        if _LITERAL.search(left) or _LITERAL.search(right) or max(len(left), len(right)) > 200:
            continue
        if "len(" in left + right or ".length" in left + right or right.isupper() or left.isupper():
            continue
        if compares_secrets(left, right, code.file.text):
            yield rules["timing-comparison"].at(
                code.file,
                code.line(node),
                "The time of the comparison tells how much was right: use a constant-time comparison.",
                confidence=0.6,
            )
    if code.file.language == "java":
        for call in code.calls:
            if (
                call.name.endswith(".equals")
                and len(call.arguments) == 1
                and not call.name.startswith(('"', "Objects", "Arrays"))
            ):
                other = code.text(call.arguments[0])
                if not _LITERAL.search(other) and compares_secrets(
                    call.name.removesuffix(".equals"), other, code.file.text
                ):
                    yield rules["timing-comparison"].at(
                        code.file, call.line, "Use MessageDigest.isEqual.", confidence=0.5
                    )


def _signing_key(code: TreeCode, call: TreeCall, rules: RuleFile[PatternRule]) -> Iterator[Finding]:
    """`jwt.sign(claims, "text")`, `session({secret: "text"})`, `token.SignedString([]byte("text"))`."""
    file = code.file
    text = ""
    if file.language in JAVASCRIPT and re.search(
        r"\b(jwt|jsonwebtoken|jws)\.(sign|verify)$", call.name
    ):
        text = code.text(call.arguments[1]) if len(call.arguments) > 1 else ""
    elif file.language in JAVASCRIPT and re.search(
        r"(^|\.)(session|cookieSession|expressjwt|cookieParser)$", call.name
    ):
        found = re.search(
            r"\bsecret\s*:\s*(['\"`][^'\"`]{4,}['\"`])",
            " ".join(code.text(one) for one in call.arguments),
        )
        text = (
            found[1]
            if found
            else code.text(call.arguments[0])
            if call.name.endswith("cookieParser") and call.arguments
            else ""
        )
    elif file.language == "go" and call.name.endswith(".SignedString") and call.arguments:
        found = re.fullmatch(r"\[\]byte\((\"[^\"]*\"|\w+)\)", code.text(call.arguments[0]))
        text = found[1] if found else ""
    elif (
        file.language == "rust"
        and re.search(r"(EncodingKey|DecodingKey)::from_secret$", call.name)
        and call.arguments
    ):
        found = re.search(r"b?(\"[^\"]+\")", code.text(call.arguments[0]))
        text = found[1] if found else ""
    line = call.line
    if re.fullmatch(r"[A-Za-z_]\w*", text) and (assigned := code.literal(text)) is not None:
        text, line = assigned
    if len(text) > 4 and text[0] in "'\"`" and "${" not in text and "-----BEGIN PUBLIC" not in text:
        yield rules["hardcoded-signing-key"].at(
            file, line,
            evidence=f"{call.name}(… {text[:3]}…)",
        )  # fmt: skip


def _cookies(code: TreeCode, rules: RuleFile[PatternRule]) -> Iterator[Finding]:
    file = code.file
    if file.language in JAVASCRIPT:
        for call in code.calls:
            if (
                re.search(r"(^|\.)(cookie|session|setCookie|cookieSession)$", call.name)
                and call.arguments
            ):
                text = ", ".join(code.text(one) for one in call.arguments)
                name = code.text(call.arguments[0])
                weak = re.search(_OFF.format("(httpOnly|secure)"), text)
                bare = (
                    call.name.startswith(("res.", "reply.", "response."))
                    and _SESSION.search(name)
                    and "httpOnly" not in text
                    and "..." not in text
                )
                if weak or (
                    bare
                    and len(call.arguments) <= 3
                    and not re.search(r",\s*\w+$", text.split("\n")[-1])
                ):
                    yield rules["cookie-flags"].at(
                        file,
                        call.line,
                        "The cookie is readable by scripts or sent without TLS.",
                        end_line=call.end_line,
                    )
    elif file.language == "go":
        for match in re.finditer(r"http\.Cookie\s*\{([^{}]*)\}", file.text):
            inner = match[1]
            session = re.search(r"Name:\s*\"([^\"]*)\"", inner)
            weak = re.search(r"\b(HttpOnly|Secure):\s*false", inner)
            missing = (
                session
                and _SESSION.search(session[1])
                and not ("HttpOnly" in inner and "Secure" in inner)
            )
            if weak or missing:
                at = match.start() + (
                    inner.find(weak.group()) + match.group().find("{") + 1 if weak else 0
                )
                yield rules["cookie-flags"].at(
                    file,
                    file.text.count("\n", 0, at) + 1,
                    "The cookie is readable by scripts or sent without TLS.",
                )
    elif file.language == "java":
        for number, line in enumerate(file.lines, 1):
            if re.search(r"\.set(HttpOnly|Secure)\(\s*false\s*\)", line):
                yield rules["cookie-flags"].at(
                    file, number, "The cookie is readable by scripts or sent without TLS."
                )
    elif file.language == "rust":
        for number, line in enumerate(file.lines, 1):
            if re.search(
                r"\.(http_only|secure|cookie_secure|cookie_http_only)\(\s*false\s*\)", line
            ):
                yield rules["cookie-flags"].at(
                    file, number, "The cookie is readable by scripts or sent without TLS."
                )
