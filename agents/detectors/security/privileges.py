"""Rights that are too wide: containers, orchestrators, service units, file modes, scripts."""

import ast
import re
from collections.abc import Iterator
from typing import Any

import yaml

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.python_names import argument, constant
from agents.detectors.rule_file import RuleEntry, RuleFile
from agents.detectors.security.tree_code import tree_files
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
RULES = RuleFile(__file__, "privileges", entry=RuleEntry)
_PIPE = re.compile(r"\b(curl|wget)\b[^|;&]*\|\s*(sudo\s+(-\w+\s+)?)?(ba|z|da)?sh\b|\b(ba)?sh\s+<\(\s*(curl|wget)|"
                   r"(ba)?sh\s+-c\s+[\"']?\$\(\s*(curl|wget)")  # fmt: skip
_WIDE_MODE = re.compile(
    r"\bchmod\s+(?:-\w+\s+)*(0?777|0?666|a\+rwx|[augo]*o\+w|\+s|u\+s|g\+s|[2467]\d{3})\b"
)
_EVALUATED = re.compile(
    r"(^|[;&|(]\s*)eval\s+[^#]*\$(?!\((?:ssh-agent|dircolors|brew|direnv|pyenv|opam|\S*/brew))|\b(ba|da|z)?sh\s+-c\s+\"[^\"]*\$[{\w@*]"
)
_SECRET_NAME = re.compile(r"(PASSW(OR)?D|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|CREDENTIAL)", re.I)
_CAPABILITIES = re.compile(
    r"\b(SYS_ADMIN|SYS_PTRACE|SYS_MODULE|DAC_OVERRIDE|DAC_READ_SEARCH|NET_ADMIN|SYS_RAWIO|BPF|ALL)\b"
)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace:
        context.check_cancelled()
        if file.language == "dockerfile":
            yield from _dockerfile(file)
        elif file.language == "yaml":
            yield from _yaml(file)
        elif file.language == "systemd" and file.path.endswith(".service"):
            yield from _unit(file)
        elif file.language == "bash":
            yield from _shell(file, file.lines, 1)
        elif "sudoers" in file.path:
            yield from _sudoers(file)
        elif file.path.rsplit("/", 1)[-1] == "package.json":
            yield from _package_scripts(file)
    for module in python_files(workspace, context):
        yield from _python(module)
    for file in tree_files(workspace, context):
        yield from _modes(file)


_OCTAL = r"(0o?[0-7]?[0-7][0-7][2367])\b"
_MODE_CALLS = re.compile(
    r"(\b(os|ioutil|fs|syscall)\.(WriteFile|Chmod|OpenFile|Mkdir|MkdirAll)\(.*,\s*"
    + _OCTAL
    + r"|\b(chmod|chmodSync|fchmod|writeFile|writeFileSync|mkdir|mkdirSync)\(.*[,:]\s*['\"]?"
    + _OCTAL
    + r"|\b(set_mode|from_mode|mode)\(\s*"
    + _OCTAL
    + r")"
)


_SHARED_FILE = re.compile(
    r"\b(os\.(Create|WriteFile)|ioutil\.WriteFile|fs\.(writeFile|writeFileSync|createWriteStream|appendFile|appendFileSync)|File::create|fs::write|new FileWriter|new File)"
    r"\(\s*[\"'`](/var)?/tmp/\w"
)


def _modes(file: SourceFile) -> Iterator[Finding]:
    """File modes, and files of a fixed name in a shared folder, in Go, JavaScript, Rust and Java."""
    for number, line in enumerate(file.lines, 1):
        if len(line) < 1_000 and _SHARED_FILE.search(line) and not line.lstrip().startswith("//"):
            text = "Another user may have put a link there: let the library choose the name."
            yield RULES["temp-file"].at(file, number, text, confidence=0.6)
        if (
            len(line) < 1_000
            and (match := _MODE_CALLS.search(line))
            and not line.lstrip().startswith("//")
        ):
            mode = next(one for one in (match[4], match[6], match[8]) if one)
            yield RULES["file-mode"].at(
                file, number, f"Mode {mode} lets everybody write.", severity=_MEDIUM
            )


def _dockerfile(file: SourceFile) -> Iterator[Finding]:
    user, last, start = "root", 0, 0
    stages: set[str] = set()
    begun = False
    for number, line in _instructions(file):
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        match word.upper():
            case "FROM":
                user, last, start, begun = "root", number, 0, True
                words = [one for one in rest.split() if not one.startswith("--")]
                image = words[0] if words else ""
                if len(words) >= 3 and words[1].lower() == "as":
                    stages.add(words[2])
                tag = image.rpartition("/")[2].partition(":")[2]
                fixed = "@sha256:" in image or image in stages or image == "scratch" or "$" in image
                if not fixed and tag in ("", "latest"):
                    text = f"{image} changes without notice: name a version or a digest."
                    yield RULES["unpinned-image"].at(file, number, text, severity=_MEDIUM)
            case "USER":
                user, last = rest.partition(":")[0], number
            case "CMD" | "ENTRYPOINT":
                start = number
            case "ADD" if re.search(r"\bhttps?://", rest) and "--checksum" not in rest:
                yield RULES["unverified-download"].at(
                    file, number, "ADD fetches a file without a checksum.", severity=_MEDIUM
                )
            case "ENV" | "ARG":
                name = re.match(r"(\w+)[= ]\s*(.*)", rest)
                value = name[2].strip("\"' ") if name else ""
                if name and _SECRET_NAME.search(name[1]) and value and "$" not in value:
                    if not re.search(r"FILE|PATH|_URL$|_NAME$", name[1]):
                        text = f"{name[1]} stays in the image's history: pass it at run time."
                        yield RULES["secret-in-image"].at(
                            file, number, text, evidence=f"{word} {name[1]}=…"
                        )
            case "RUN":
                yield from _shell(file, [rest], number)
    if begun and user in ("root", "0", ""):
        explicit = re.match(r"(?i)\s*USER\b", file.lines[last - 1])
        where = last if explicit else start or last
        yield RULES["root-user"].at(file, where, severity=_MEDIUM)


def _instructions(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Instructions with continued lines joined, and the line that each begins in."""
    begun = 0
    parts: list[str] = []
    for number, line in enumerate(file.lines, 1):
        text = line.strip()
        if text.startswith("#") or (not text and not parts):
            continue
        begun = begun if parts else number
        parts.append(text.removesuffix("\\"))
        if not text.endswith("\\"):
            yield begun, " ".join(parts)
            parts = []
    if parts:
        yield begun, " ".join(parts)


def _shell(file: SourceFile, lines: Any, first: int) -> Iterator[Finding]:
    for number, line in enumerate(lines, first):
        text = line.strip()
        if text.startswith("#") or len(text) > 4_000:
            continue
        if _PIPE.search(text):
            yield RULES["unverified-download"].at(file, number)
        if match := _WIDE_MODE.search(text):
            what = (
                "set-user-id" if re.search(r"[46]\d{3}|\+s", match[1]) else "writable for everybody"
            )
            yield RULES["file-mode"].at(file, number, f"chmod {match[1]} makes the file {what}.")
        if re.search(r"NOPASSWD\s*:\s*ALL", text):
            yield RULES["passwordless-sudo"].at(file, number)
        if re.search(r"\brm\s+(-\w+\s+)*(-\w*[rf]\w*\s+)+[\"']?\$\{?\w+\}?/", text) or re.search(
            r"\brm\s+(-\w+\s+)*-\w*[rf]\w*\s+\$(\{\w+\}|\w+)(\s|$|/)", text
        ):
            if not re.search(r":\?", text):
                yield RULES["unquoted-variable"].at(file, number)
        if _EVALUATED.search(text) and not re.match(r"(echo|printf)\b", text):
            yield RULES["command-injection"].at(file, number)
        if re.search(r"\bumask\s+0?0?0\b", text):
            yield RULES["file-mode"].at(file, number)
        if re.search(r"\bdocker\s+run\b.*--privileged", text):
            yield RULES["excess-privilege"].at(file, number)
        if re.search(r"docker\.sock", text) and re.search(r"-v|--volume|mount", text):
            yield RULES["docker-socket"].at(file, number)
        if (
            re.search(r"=\s*[\"']?/tmp/[\w.-]+(\.\$\$|\$\$)?[\"']?\s*$", text)
            and "mktemp" not in text
        ):
            yield RULES["temp-file"].at(file, number, confidence=0.5)


def _yaml(file: SourceFile) -> Iterator[Finding]:
    if not re.search(r"services:|apiVersion:|runs-on:|hosts:", file.text):
        return
    try:
        for document in yaml.compose_all(file.text, Loader=yaml.SafeLoader):
            if document is not None:
                yield from _node(file, document, (), set())
    except (yaml.YAMLError, RecursionError, ValueError):
        return


def _node(
    file: SourceFile, node: yaml.Node, path: tuple[str, ...], seen: set[int]
) -> Iterator[Finding]:
    # Aliases make a graph: without `seen`, a few lines of them take exponential time.
    if len(path) > 40 or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            yield from _entry(file, name, value, path, key.start_mark.line + 1)
            yield from _node(file, value, (*path, name), seen)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            if isinstance(value, yaml.ScalarNode):
                yield from _item(file, str(value.value), path, value.start_mark.line + 1)
            yield from _node(file, value, path, seen)


def _entry(
    file: SourceFile, name: str, value: yaml.Node, path: tuple[str, ...], line: int
) -> Iterator[Finding]:
    text = str(value.value) if isinstance(value, yaml.ScalarNode) else ""
    yes = text.lower() in ("true", "yes", "on")
    match name:
        case "privileged" if yes:
            yield RULES["excess-privilege"].at(file, line)
        case "hostPID" | "hostIPC" | "hostNetwork" if yes:
            yield RULES["excess-privilege"].at(file, line, f"{name} shares the host with the pod.")
        case "network_mode" | "pid" | "ipc" | "userns_mode" if text == "host":
            yield RULES["excess-privilege"].at(
                file, line, f"{name}: host shares the host with the container.", severity=_MEDIUM
            )
        case "allowPrivilegeEscalation" if yes:
            yield RULES["excess-privilege"].at(
                file, line, "A process may gain more rights than its parent."
            )
        case "runAsUser" if text == "0":
            yield RULES["root-user"].at(file, line, "The container runs as root.", severity=_HIGH)
        case "runAsNonRoot" if text.lower() in ("false", "no"):
            yield RULES["root-user"].at(
                file, line, "The container may run as root.", severity=_HIGH
            )
        case "user" if text in ("root", "0", "0:0") and "services" in path:
            yield RULES["root-user"].at(file, line, "The container runs as root.")
        case "path" if text in ("/", "/etc", "/root", "/proc", "/sys", "/var/run/docker.sock"):
            if "hostPath" in path:
                rule = (
                    RULES["docker-socket"] if text.endswith(".sock") else RULES["excess-privilege"]
                )
                yield rule.at(file, line, f"The pod sees {text} of the host.")
        case "image" if "services" in path or "containers" in path:
            tag = text.rpartition("/")[2].partition(":")[2]
            if tag in ("", "latest") and "@" not in text and "$" not in text and text:
                yield RULES["unpinned-image"].at(
                    file, line, f"{text} changes without notice.", severity=_MEDIUM
                )
        case "permissions" if text == "write-all":
            yield RULES["excess-privilege"].at(
                file, line, "Every job may write everything.", severity=_MEDIUM
            )
        case "mode" if re.fullmatch(r"0?o?[0-7]?(777|666)", text):
            yield RULES["file-mode"].at(file, line, f"Mode {text} lets everybody write.")
        case "run" | "command" | "shell" | "script":
            yield from _shell(file, text.split("\n"), line + (1 if "\n" in text else 0))


def _item(file: SourceFile, text: str, path: tuple[str, ...], line: int) -> Iterator[Finding]:
    where = path[-1] if path else ""
    if where in ("cap_add", "add") and _CAPABILITIES.search(text.upper()):
        yield RULES["excess-privilege"].at(file, line, f"{text} is close to root.")
    elif where == "volumes" and "docker.sock" in text:
        yield RULES["docker-socket"].at(file, line)
    elif where == "volumes" and re.match(r"(/|/etc|/root|/proc|/sys)(/[^:]*)?:", text):
        if re.match(r"(/|/etc|/root|/proc|/sys):", text) and not text.endswith(":ro"):
            yield RULES["excess-privilege"].at(
                file, line, f"{text.partition(':')[0]} of the host may be written."
            )
    elif where == "security_opt" and re.search(r"unconfined|disable", text):
        yield RULES["excess-privilege"].at(file, line, f"{text} switches a protection off.")
    elif where in ("script", "commands", "run"):
        yield from _shell(file, [text], line)


def _unit(file: SourceFile) -> Iterator[Finding]:
    settings: dict[str, tuple[str, int]] = {}
    service = 0
    for number, line in enumerate(file.lines, 1):
        text = line.strip()
        if text == "[Service]":
            service = number
        key, equals, value = text.partition("=")
        if equals and not text.startswith(("#", ";")):
            settings[key.strip()] = value.strip(), number
    if not service:
        return
    user, at = settings.get("User", ("", service))
    if user in ("root", "0") or ("User" not in settings and "DynamicUser" not in settings):
        word = "runs as root" if user else "runs as root, because it names no User"
        severity = _HIGH if user else _MEDIUM
        yield RULES["root-user"].at(file, at, f"The service {word}.", severity=severity)
    mask = settings.get("UMask")
    if mask is not None and mask[0] in ("0000", "000", "0"):
        yield RULES["file-mode"].at(file, mask[1], "New files may be written by everybody.")
    for name in ("AmbientCapabilities", "CapabilityBoundingSet"):
        value, at = settings.get(name, ("", 0))
        if _CAPABILITIES.search(value.upper()) and not value.startswith("~"):
            yield RULES["excess-privilege"].at(file, at, f"{name} {value} is close to root.")
    wanted = ("NoNewPrivileges", "ProtectSystem", "PrivateTmp", "DynamicUser")
    if not any(name in settings for name in wanted):
        yield RULES["no-hardening"].at(file, service)
    if settings.get("NoNewPrivileges", ("", 0))[0].lower() in ("no", "false"):
        yield RULES["no-hardening"].at(
            file, settings["NoNewPrivileges"][1], "NoNewPrivileges is off.", severity=_MEDIUM
        )
    start, at = settings.get("ExecStart", ("", 0))
    if start:
        yield from _shell(file, [start], at)


def _package_scripts(file: SourceFile) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        for match in re.finditer(r"\"[\w:-]+\"\s*:\s*\"((?:[^\"\\]|\\.)*)\"", line[:4_000]):
            yield from _shell(file, [match[1]], number)


def _sudoers(file: SourceFile) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        if re.search(r"NOPASSWD\s*:\s*ALL", line) and not line.lstrip().startswith("#"):
            yield RULES["passwordless-sudo"].at(file, number)


_SHARED_FOLDER = re.compile(r"/(tmp|var/tmp|dev/shm)/\w")


def _is_written(call: ast.Call) -> bool:
    mode = constant(argument(call, 1, "mode"))
    return isinstance(mode, str) and bool(set(mode) & set("wa+"))


def _python(module: PythonModule) -> Iterator[Finding]:
    file = module.file
    for call, name in module.calls:
        if name in ("os.chmod", "os.fchmod", "os.mkdir", "os.makedirs", "os.open") or name.endswith(
            ".chmod"
        ):
            mode = argument(
                call, 0 if name.endswith(".chmod") and not name.startswith("os.") else 1, "mode"
            )
            if name == "os.open":
                mode = argument(call, 2, "mode")
            value = constant(mode)
            if isinstance(value, int) and not isinstance(value, bool) and value & 0o002:
                yield RULES["file-mode"].at(
                    file, call.lineno, f"Mode {value:o} lets everybody write."
                )
            elif isinstance(value, int) and value & 0o6000:
                yield RULES["file-mode"].at(
                    file, call.lineno, f"Mode {value:o} runs with the owner's rights."
                )
            elif mode is not None and "S_IWOTH" in ast.unparse(mode):
                yield RULES["file-mode"].at(file, call.lineno, "The mode lets everybody write.")
        elif name == "os.umask" and constant(argument(call, 0)) == 0:
            yield RULES["file-mode"].at(file, call.lineno)
        elif name in ("tempfile.mktemp", "os.tempnam", "os.tmpnam"):
            yield RULES["temp-file"].at(
                file, call.lineno, f"{name} can be raced: use NamedTemporaryFile."
            )
        elif (
            name in ("open", "io.open")
            and _is_written(call)
            and _SHARED_FOLDER.match(str(constant(argument(call, 0, "file")) or ""))
        ):
            text = "Another user may have put a link there: use tempfile."
            yield RULES["temp-file"].at(file, call.lineno, text, confidence=0.6)
        elif name == "os.setuid" and constant(argument(call, 0)) == 0:
            yield RULES["excess-privilege"].at(file, call.lineno, "The process becomes root.")
        elif name in ("os.system", "subprocess.run", "subprocess.call", "subprocess.check_call"):
            command = constant(argument(call, 0))
            if isinstance(command, str) and command:
                yield from _shell(file, [command], call.lineno)


PRIVILEGES = Detector(
    "privileges",
    "Reads container files, orchestrator manifests, service units and file modes for rights that are too wide.",
    _detect,
    RULES,
)
