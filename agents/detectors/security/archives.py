"""The detector `archives`: members of archives, and names from outside, written outside the target folder."""

import ast
import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule, is_test_path
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.python_names import argument, constant
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.detectors.security.tree_code import TreeCode, tree_code, tree_files
from agents.workspace.workspace import Workspace

RULES = RuleFile(__file__, "archives", entry=RuleEntry)
_UNPACK = "A member named ../x is written outside the target"

_CHECKED = re.compile(
    r"is_relative_to|commonpath|commonprefix|startswith\(|startsWith\(|HasPrefix|starts_with|IsLocal|enclosed_name|normalize|"
    r"getCanonicalPath|toRealPath|includes\(['\"]\.\.|Contains\([^)]*\"\.\.|contains\(\"\.\.|secure_?[jJ]oin|\.components\(\)|"
    r"\"\.\.\"\s+in\b|'\.\.'\s+in\b|basename|filepath\.Base|\.resolve\(\)|strip_prefix|file_name\(\)"
)
_ENTRIES = re.compile(
    r"zip\.(OpenReader|NewReader)|tar\.NewReader|\br\.File\b|ZipInputStream|ZipFile\b|TarArchive\w*|ZipEntry|ArchiveEntry|"
    r"ZipArchive|tar::Archive|unzipper|yauzl|AdmZip|adm-zip|tar-stream|JSZip|node-tar|\bextract\(\)"
)
_JOINS = re.compile(r"(^|\.|::)(Join|join|resolve|File|Path|Paths\.get|Path\.of)$")
_ENTRY_NAME = re.compile(
    r"\b\w*(f|file|entry|header|hdr|member|item|e|h|zf|next)\w*\.(Name\b|name\b(\(\))?|getName\(\)|entryName|fileName|path\b(\(\))?|mangled_name)",
    re.I,
)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_files(workspace, context):
        if not is_test_path(module.file.path) and re.search(
            r"tarfile|zipfile|unpack_archive", module.file.text
        ):
            yield from _python(module)
    for file in tree_files(workspace, context):
        if _ENTRIES.search(file.text):
            yield from _tree(tree_code(file))
        if file.language == "rust":
            yield from _rust_joins(tree_code(file))


def _python(module: PythonModule) -> Iterator[Finding]:
    file = module.file
    zips = re.findall(
        r"(\w+)\s*=\s*(?:zipfile\.)?ZipFile\(|ZipFile\([^\n]*\)\s+as\s+(\w+)", file.text
    )
    zip_names = {one for pair in zips for one in pair if one}
    for call, name in module.calls:
        method = name.rpartition(".")[2]
        if method == "extractall" and isinstance(call.func, ast.Attribute):
            receiver = ast.unparse(call.func.value)
            if receiver in zip_names or "ZipFile" in receiver:
                continue  # zipfile removes such parts of names itself
            trusted = argument(call, None, "filter")
            if trusted is not None and constant(trusted) not in ("fully_trusted", None):
                continue
            if (argument(call, 1, "members") is None and trusted is None) or constant(
                trusted
            ) == "fully_trusted":
                yield RULES["zip-slip"].at(
                    file, call.lineno, f'{_UNPACK}: pass filter="data".', end_line=call.end_lineno
                )
    for function in module.functions:
        written = ast.unparse(function)
        if not re.search(
            r"\.(namelist|infolist|getmembers|getnames)\(\)", written
        ) or _CHECKED.search(written):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.For):
                continue
            source = ast.unparse(node.iter)
            if not re.search(r"\.(namelist|infolist|getmembers|getnames)\(\)", source):
                continue
            target = ast.unparse(node.target)
            yield from _joined_members(module, node, target)


def _joined_members(module: PythonModule, loop: ast.For, member: str) -> Iterator[Finding]:
    pattern = re.compile(rf"\b{re.escape(member)}(\.filename|\.name)?\b")
    for node in ast.walk(loop):
        join = isinstance(node, ast.Call) and module.names.resolve(node.func).endswith("path.join")
        division = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        if (join or division) and isinstance(node, ast.expr) and pattern.search(ast.unparse(node)):
            yield RULES["zip-slip"].at(
                module.file,
                node.lineno,
                f"{_UNPACK}: resolve the path and compare it with the target.",
            )
            return


def _tree(code: TreeCode) -> Iterator[Finding]:
    seen: set[int] = set()
    for call in code.calls:
        if not _JOINS.search(call.name) or call.line in seen:
            continue
        text = ", ".join(code.text(one) for one in call.arguments)
        if not _ENTRY_NAME.search(text) or (
            code.file.language == "rust" and len(call.arguments) != 1
        ):
            continue
        function = code.text_of_function(call.node)
        if _ENTRIES.search(function) and not _CHECKED.search(function):
            seen.add(call.line)
            yield RULES["zip-slip"].at(
                code.file,
                call.line,
                f"{_UNPACK}: clean the path and compare its start with the target.",
            )


def _rust_joins(code: TreeCode) -> Iterator[Finding]:
    """`root.join(name)` with a text parameter: an absolute or dotted name replaces or leaves the root."""
    for call in code.calls:
        if not call.name.endswith(".join") or len(call.arguments) != 1:
            continue
        name = code.text(call.arguments[0]).lstrip("&")
        parameter = code.parameter(name, call.node)
        if not re.search(
            r":\s*(&(mut\s+)?('\w+\s+)?str|String|&String|impl\s+AsRef<(Path|str)>)$", parameter
        ):
            continue
        function = code.text_of_function(call.node)
        root = call.name.removesuffix(".join")
        is_path = re.search(
            rf"\b{re.escape(root)}\s*:\s*(&(mut\s+)?)?(\w+::)*Path(Buf)?\b", function
        ) or re.search(r"(?i)(root|base|dir|folder|path)(\(\))?$", root)
        if (
            is_path
            and not _CHECKED.search(function)
            and not re.search(r"(?i)const|fixed|static", parameter)
        ):
            yield RULES["unchecked-join"].at(code.file, call.line, confidence=0.6)


ARCHIVES = Detector(
    "archives",
    "Finds archive members and names that are written outside the folder meant.",
    _detect,
    RULES,
)
