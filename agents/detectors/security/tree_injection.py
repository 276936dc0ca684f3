"""The detector `tree_injection`: built strings and clients' data at dangerous calls.

For JavaScript, TypeScript, Go, Rust and Java. Data is followed within one function; see `taint` for Python.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.security.taint.rules import ADVICE, RULES
from agents.detectors.security.taint.value import SinkKind
from agents.detectors.security.tree_code import LANGUAGES, TreeCall, TreeCode, TreeValue
from agents.workspace.workspace import Workspace

_JS = ("javascript", "typescript", "tsx")
_SQL = r"(?i)\b(select\s|insert\s+into|update\s|delete\s+from|drop\s|alter\s|where\s|union\s|order\s+by)"
TRANSMUTE = Rule("unsafe-transmute", Severity.INFO, "reinterpretation of memory", 843)


@dataclass(frozen=True, slots=True)
class _Sink:
    """A call, an argument, and whether data is reported only from clients or whenever it is built or varies."""

    languages: tuple[str, ...]
    name: str
    kind: SinkKind
    argument: int
    report: str  # user, built or varying
    looks: str = ""


_SINKS = (
    _Sink(_JS, r"\.(query|execute|raw|run|all|exec|\$queryRawUnsafe|\$executeRawUnsafe|prepare|each|unsafe)$", SinkKind.SQL, 0, "built", _SQL),
    _Sink(_JS, r"(^|\.)(exec|execSync)$", SinkKind.COMMAND, 0, "built"),
    _Sink(_JS, r"(^|\.)(exec|execSync)$", SinkKind.COMMAND, 0, "user"),
    _Sink(_JS, r"^(eval|Function|window\.eval|globalThis\.eval|vm\.(runInNewContext|runInThisContext|runInContext))$", SinkKind.CODE, 0, "varying"),
    _Sink(_JS, r"^(setTimeout|setInterval)$", SinkKind.CODE, 0, "built"),
    _Sink(_JS, r"^document\.(write|writeln)$|\.insertAdjacentHTML$", SinkKind.HTML, -1, "varying"),
    _Sink(_JS, r"^(res|response|reply)(\.status\([^)]*\))?\.(send|write|end)$", SinkKind.HTML, 0, "user", r"<"),
    _Sink(_JS, r"\.redirect$", SinkKind.REDIRECT, -1, "user"),
    _Sink(_JS, r"(^|\.)(readFile|readFileSync|createReadStream|writeFile|writeFileSync|unlink|unlinkSync|readdir|sendFile|download|createWriteStream)$", SinkKind.PATH, 0, "user"),
    _Sink(_JS, r"^(fetch|axios|got|request|needle|superagent\.get|axios\.(get|post|put|delete|request)|https?\.(get|request)|got\.\w+)$", SinkKind.URL, 0, "user"),
    _Sink(_JS, r"(^|\.)(RegExp)$", SinkKind.REGEX, 0, "user"),
    _Sink(_JS, r"\.(find|findOne|findOneAndUpdate|updateOne|updateMany|deleteOne|deleteMany)$", SinkKind.NOSQL, 0, "user", r""),
    _Sink(_JS, r"(^|\.)(unserialize)$", SinkKind.DESERIALIZE, 0, "varying"),
    _Sink(_JS, r"(^|\.)(compile|render|renderString|template)$", SinkKind.TEMPLATE, 0, "user"),
    _Sink(_JS, r"^yaml\.load$", SinkKind.DESERIALIZE, 0, "never"),
    _Sink(("go",), r"\.(Query|QueryRow|Exec|Prepare|Raw|QueryContext|ExecContext|QueryRowContext|PrepareContext|Queryx|Get|Select|Where)$", SinkKind.SQL, -2, "built", _SQL),
    _Sink(("go",), r"^template\.(HTML|JS|URL|HTMLAttr|CSS)$", SinkKind.HTML, 0, "varying"),
    _Sink(("go",), r"^http\.(Get|Post|Head|PostForm)$", SinkKind.URL, 0, "user"),
    _Sink(("go",), r"^http\.NewRequest(WithContext)?$", SinkKind.URL, -3, "user"),
    _Sink(("go",), r"^http\.Redirect$", SinkKind.REDIRECT, 2, "user"),
    _Sink(("go",), r"^(os\.(Open|ReadFile|Create|OpenFile|Remove|WriteFile)|ioutil\.(ReadFile|WriteFile))$", SinkKind.PATH, 0, "user"),
    _Sink(("go",), r"^http\.ServeFile$", SinkKind.PATH, 2, "user"),
    _Sink(("go",), r"^fmt\.Fprintf$", SinkKind.HTML, -1, "user-html"),
    _Sink(("rust",), r"(^|::|\.)(query|query_as|execute|sql_query|query_row|prepare|query_one|batch_execute|raw_sql|query_scalar|query_map|execute_batch)$", SinkKind.SQL, -2, "built", _SQL),
    _Sink(("java",), r"\.(executeQuery|executeUpdate|execute|prepareStatement|createQuery|createNativeQuery|queryForObject|queryForList|query|prepareCall|addBatch)$", SinkKind.SQL, 0, "built", _SQL),
    _Sink(("java",), r"\.exec$", SinkKind.COMMAND, 0, "built"),
    _Sink(("java",), r"\.exec$", SinkKind.COMMAND, 0, "user"),
    _Sink(("java",), r"^(ScriptEngine|engine|scriptEngine)\.eval$", SinkKind.CODE, 0, "varying"),
    _Sink(("java",), r"\.readObject$", SinkKind.DESERIALIZE, -9, "object-stream"),
    _Sink(("java",), r"^(File|java\.io\.File|FileInputStream|FileReader|Paths\.get|Path\.of)$", SinkKind.PATH, -1, "user"),
    _Sink(("java",), r"\.sendRedirect$", SinkKind.REDIRECT, 0, "user"),
    _Sink(("java",), r"^(URL|java\.net\.URL|URI\.create)$", SinkKind.URL, 0, "user"),
)  # fmt: skip
_COMPILED = [(sink, re.compile(sink.name)) for sink in _SINKS]
_SHELL = re.compile(
    r"^[\"'`]?(/usr)?(/bin/)?(ba|da|z|k)?sh[\"'`]?$|^[\"']cmd(\.exe)?[\"']$|powershell"
)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace.of(*LANGUAGES):
        context.check_cancelled()
        code = TreeCode(file)
        seen: set[tuple[int, SinkKind]] = set()
        for kind, line, end_line, value, call in _hits(code):
            if (line, kind) not in seen:
                seen.add((line, kind))
                yield _finding(code, kind, line, end_line, value, call)
        if file.language == "rust":
            for call_ in code.calls():
                if call_.name.split("::<")[0].endswith("transmute"):
                    yield TRANSMUTE.at(
                        file,
                        call_.line,
                        "transmute reinterprets memory without a check; prefer a conversion that the compiler checks.",
                        confidence=0.6,
                    )


def _finding(
    code: TreeCode, kind: SinkKind, line: int, end_line: int, value: TreeValue, call: str
) -> Finding:
    rule = RULES[kind]
    source = "Data of a client" if value.user else "A string that is not constant"
    severity = rule.severity
    if not value.user and severity is Severity.CRITICAL:
        severity = Severity.HIGH
    elif not value.user and severity.rank > 2:
        severity = Severity.MEDIUM
    return rule.at(
        code.file,
        line,
        f"{source} reaches {call[:80]}. {ADVICE[kind]}",
        end_line=end_line,
        severity=severity,
        confidence=0.9 if value.user else 0.6,
    )


def _hits(code: TreeCode) -> Iterator[tuple[SinkKind, int, int, TreeValue, str]]:
    language = code.file.language
    imports_child_process = "child_process" in code.file.text
    for call in code.calls():
        for sink, pattern in _COMPILED:
            if language not in sink.languages or not pattern.search(call.name):
                continue
            if sink.kind is SinkKind.COMMAND and language in _JS and not imports_child_process:
                continue
            for value in _arguments(code, call, sink):
                if _reported(sink, value, code, call):
                    yield sink.kind, call.line, call.end_line, value, call.name
        yield from _shell_calls(code, call)
    if language in _JS:
        yield from _html_assignments(code)


def _arguments(code: TreeCode, call: TreeCall, sink: _Sink) -> list[TreeValue]:
    """-1 is any argument, -2 the first or second, -3 the second or third, -9 none is needed."""
    if sink.argument == -9:
        return [TreeValue(varying=True)]
    chosen = {-1: call.arguments, -2: call.arguments[:2], -3: call.arguments[1:3]}.get(
        sink.argument
    )
    if chosen is None:
        chosen = call.arguments[sink.argument : sink.argument + 1]
    return [code.value(one) for one in chosen]


def _reported(sink: _Sink, value: TreeValue, code: TreeCode, call: TreeCall) -> bool:
    if sink.looks and not re.search(sink.looks, value.text):
        return False
    if sink.kind is SinkKind.NOSQL:
        argument = code.text(call.arguments[0]) if call.arguments else ""
        return (
            bool(re.search(r"\$where|^\s*req\.(body|query)\s*$|:\s*req\.(body)\.\w+", argument))
            and value.user
        )
    if sink.report == "user":
        return value.user
    if sink.report == "user-html":
        return value.user and any("<" in code.text(one) for one in call.arguments)
    if sink.report == "built":
        return value.built
    if sink.report == "object-stream":
        return "ObjectInputStream" in code.file.text
    return sink.report == "varying" and value.varying


def _shell_calls(
    code: TreeCode, call: TreeCall
) -> Iterator[tuple[SinkKind, int, int, TreeValue, str]]:
    """`exec.Command("sh", "-c", built)`, `spawn("sh", ["-c", built])`, `Command::new("sh").arg("-c").arg(built)`."""
    language = code.file.language
    if language == "go" and re.search(r"exec\.Command(Context)?$", call.name):
        arguments = call.arguments[1:] if call.name.endswith("Context") else call.arguments
        if len(arguments) >= 3 and _SHELL.search(code.text(arguments[0])):
            value = code.value(arguments[2])
            if value.varying:
                yield SinkKind.COMMAND, call.line, call.end_line, value, call.name
        elif arguments and code.value(arguments[0]).user:
            yield SinkKind.COMMAND, call.line, call.end_line, code.value(arguments[0]), call.name
    elif language in _JS and re.search(
        r"(^|\.)(spawn|spawnSync|execFile|execFileSync)$", call.name
    ):
        text = " ".join(code.text(one) for one in call.arguments)
        if re.search(r"shell\s*:\s*true", text) or (
            call.arguments and _SHELL.search(code.text(call.arguments[0]))
        ):
            for one in call.arguments[:2]:
                value = code.value(one)
                if value.varying:
                    yield SinkKind.COMMAND, call.line, call.end_line, value, call.name
                    return
    elif language == "rust" and call.name.endswith((".arg", ".args")):
        if re.search(r'Command::new\("(/bin/)?(ba)?sh"\)', call.name) and '"-c"' in call.name:
            for one in call.arguments:
                value = code.value(one)
                if value.varying:
                    yield SinkKind.COMMAND, call.line, call.end_line, value, "Command::new"
    elif language == "java" and call.name == "ProcessBuilder":
        values = [code.value(one) for one in call.arguments]
        if len(values) >= 3 and _SHELL.search(code.text(call.arguments[0])) and values[2].varying:
            yield SinkKind.COMMAND, call.line, call.end_line, values[2], call.name


def _html_assignments(code: TreeCode) -> Iterator[tuple[SinkKind, int, int, TreeValue, str]]:
    for node in code.nodes:
        if node.type in ("assignment_expression", "augmented_assignment_expression"):
            left = code.text(node.child_by_field_name("left"))
            if left.endswith((".innerHTML", ".outerHTML")):
                value = code.value(node.child_by_field_name("right"))
                if value.varying:
                    yield SinkKind.HTML, code.line(node), node.end_point[0] + 1, value, left
        elif node.type == "jsx_attribute" and "dangerouslySetInnerHTML" in code.text(node)[:30]:
            yield (
                SinkKind.HTML,
                code.line(node),
                node.end_point[0] + 1,
                TreeValue(varying=True),
                "dangerouslySetInnerHTML",
            )


TREE_INJECTION = Detector(
    name="tree_injection",
    description="Finds injections in JavaScript, TypeScript, Go, Rust and Java, following data within a function.",
    detect=_detect,
    rules=(*RULES.values(), TRANSMUTE),
)
