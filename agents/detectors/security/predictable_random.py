"""Secrets drawn from generators that can be predicted, in JavaScript, TypeScript, Go, Rust and Java.

A call is one if the function, the variable or the property that its result goes to is named like a secret, or
if its digits are written in base 36, which is how identifiers are made.
"""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Rule
from agents.detectors.security.tree_code import TreeCall, TreeCode

_SECRET = re.compile(
    r"(^|_)(token|secret|passw(or)?d|passcode|otp|pin|nonce|salt|key|session|csrf|reset|invite|voucher|coupon|verif\w*|credential|auth|"
    r"activation|recovery|ticket|signing|captcha|iv|code|access|password|challenge|state|cookie)s?(_|$)"
)
_IDENTIFIER = re.compile(r"(^|_)(id|uuid|guid|uid|handle|reference|ref)s?(_|$)")
_ADVICE = {
    "javascript": "Math.random is predictable: use crypto.randomBytes or crypto.randomUUID.",
    "go": "math/rand is predictable: use crypto/rand.",
    "java": "java.util.Random is predictable: use SecureRandom.",
    "rust": "This generator is predictable or seeded: use rand::rngs::OsRng.",
}
_JAVA = re.compile(r"(^|\.)next(Int|Long|Bytes|Double|Gaussian)$|^Math\.random$")
_RUST = re.compile(
    r"(SmallRng|StdRng|ChaCha\w*Rng|Pcg\w*|XorShift\w*|Isaac\w*)::(seed_from_u64|from_seed)$|^fastrand::\w+$|^oorandom::"
)
_GO = re.compile(r"\.(Intn?|Int63n?|Int31n?|Read|Uint64|Uint32|Float64|Perm|IntN|Int64N|N)$")


def predictable_secrets(code: TreeCode, rule: Rule) -> Iterator[Finding]:
    """The secrets of one file that are drawn this way."""
    language = code.file.language or ""
    family = "javascript" if language in ("javascript", "typescript", "tsx") else language
    generators = _generators(code, family)
    if family not in _ADVICE or generators is None:
        return
    lines: set[int] = set()
    for call in code.calls:
        if call.line in lines or not generators.search(call.name):
            continue
        if family == "java" and not _is_weak_java(code, call):
            continue
        severity = _severity(code, call, rule)
        if severity is not None:
            lines.add(call.line)
            yield rule.at(code.file, call.line, _ADVICE[family], severity=severity, confidence=0.7)


def _generators(code: TreeCode, family: str) -> re.Pattern[str] | None:
    """The names of the predictable generators of this file, or None if it has none."""
    text = code.file.text
    if family == "javascript":
        return re.compile(r"^Math\.random$") if "Math.random" in text else None
    if family == "java":
        return _JAVA
    if family == "rust":
        return _RUST
    imported = re.search(r"(?m)^\s*(?:import\s+)?(?:([\w.]+)\s+)?\"math/rand(?:/v2)?\"", text)
    if family != "go" or imported is None:
        return None
    return re.compile(rf"^{re.escape(imported[1] or 'rand')}{_GO.pattern}")


def _is_weak_java(code: TreeCode, call: TreeCall) -> bool:
    if call.name == "Math.random":
        return True
    receiver = call.name.rpartition(".")[0]
    if re.match(r"newRandom\(|new\s*Random\(|ThreadLocalRandom", receiver):
        return True
    declared = re.search(rf"\b(\w+)\s+{re.escape(receiver)}\s*[=;]", code.file.text)
    return bool(declared and declared[1] == "Random")


def _severity(code: TreeCode, call: TreeCall, rule: Rule) -> Severity | None:
    names = _names_around(code, call)
    if any(_SECRET.search(name) for name in names):
        return rule.severity
    statement = _statement(code, call)
    if re.search(r"\.toString\(\s*(36|16|32)\s*\)", statement):
        return Severity.MEDIUM if any(_IDENTIFIER.search(name) for name in names) else Severity.LOW
    return None


def _names_around(code: TreeCode, call: TreeCall) -> list[str]:
    """The function, the variables and the keys that the result belongs to, in snake case."""
    names = [code.function_name(call.node)]
    node = call.node.parent
    for _ in range(12):
        if node is None or node.type.endswith(("function", "block", "body")):
            break
        for field in ("name", "left", "key", "pattern"):
            target = node.child_by_field_name(field)
            if target is not None and target.end_byte <= call.node.start_byte:
                names.append(code.text(target)[:80])
        if node.type.endswith("declaration"):
            break
        node = node.parent
    return [_snake(name) for name in names if name]


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower())


def _statement(code: TreeCode, call: TreeCall) -> str:
    node = call.node
    while node.parent is not None and not node.type.endswith(
        ("statement", "declaration", "block", "program")
    ):
        node = node.parent
    return code.text(node)[:400]
