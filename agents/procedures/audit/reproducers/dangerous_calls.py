"""Tests that call a function with an attack, or watch what it calls, for the rules about dangerous calls.

Commands, requests and queries never happen: the functions that make them are replaced while the test runs.
Each test also requires that the function still does its work, so that an emptied function does not pass.
"""

import ast
import textwrap
from collections.abc import Callable, Mapping

from agents.api.finding import Finding
from agents.detectors.audit.python_module import FunctionNode, PythonModule, shape
from agents.procedures.audit.reproducers.calls import call_of, function_at, source_parameter
from agents.procedures.audit.reproducers.reproducer import Reproducer

Maker = Callable[["_Place"], Reproducer | None]
_FILE = "str(tmp_path / 'given')"
_PATH_NAMES = (
    "path",
    "file",
    "filename",
    "file_path",
    "filepath",
    "source",
    "archive",
    "config_path",
)


class _Place:
    """A dangerous call within a function."""

    def __init__(self, module: PythonModule, function: FunctionNode, call: ast.Call) -> None:
        self.module = module
        self.function = function
        self.call = call
        self.name = module.call_name(call)

    def invoke(self, given: Mapping[str, str] | None = None) -> str | None:
        """A call of the function, its paths to a small file."""
        return call_of(self.module, self.function, {**self._paths(), **(given or {})})

    def _paths(self) -> dict[str, str]:
        named = [one.arg for one in [*self.function.args.posonlyargs, *self.function.args.args]]
        return {name: _FILE for name in named if name in _PATH_NAMES}

    def source(self, node: ast.AST | None = None) -> str | None:
        """The parameter that the call's first argument (or another expression) comes from."""
        if node is None:
            node = self.call.args[0] if self.call.args else None
        return None if node is None else source_parameter(self.function, node)

    def annotated(self, parameter: str, word: str) -> bool:
        """Whether a parameter's annotation begins with a word."""
        for one in self.function.args.args:
            if one.arg == parameter and one.annotation is not None:
                return shape(one.annotation).startswith(word)
        return False


def dangerous_call_tests(module: PythonModule, finding: Finding) -> list[Reproducer]:
    """The tests for the dangerous calls on a finding's lines, those by attack first."""
    function = function_at(module, finding.line)
    makers = _MAKERS.get(finding.cwe or 0, ())
    if function is None:
        return []
    found = []
    last = max(finding.line, finding.end_line)
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and finding.line <= node.lineno <= last:
            place = _Place(module, function, node)
            found += [test for maker in makers if (test := maker(place)) is not None]
    return found


def _test(reason: str, body: str, imports: str = "", fixtures: str = "tmp_path") -> Reproducer:
    modules = imports.split()
    if "asyncio.run(" in body:
        modules.append("asyncio")
    prepared = "(tmp_path / 'given').write_text('a: 1\\n')\n" if "tmp_path" in fixtures else ""
    return Reproducer(
        "behaviour",
        prepared + textwrap.dedent(body).lstrip("\n"),
        reason,
        tuple(dict.fromkeys(modules)),
        tuple(fixtures.split()),
    )


def _code(place: _Place) -> Reproducer | None:
    if place.name not in ("eval", "exec", "builtins.eval", "builtins.exec"):
        return None
    parameter = place.source()
    call = parameter and place.invoke({parameter: "attack"})
    if not call:
        return None
    body = f"""
attack = f"__import__('pathlib').Path({{str(tmp_path / 'ran')!r}}).touch()"
try:
    {call}
except Exception:
    pass  # the text is refused
assert not (tmp_path / "ran").exists(), "the text was executed"
"""
    return _test(f"{place.function.name} executes no text.", body)


def _yaml(place: _Place) -> Reproducer | None:
    if place.name not in ("yaml.load", "yaml.unsafe_load", "yaml.full_load"):
        return None
    parameter = place.source()
    if parameter is None:
        return None
    encoded = ".encode()" if place.annotated(parameter, "bytes") else ""
    attack, ordinary = (
        place.invoke({parameter: "attack"}),
        place.invoke({parameter: f'"a: 1"{encoded}'}),
    )
    if attack is None:
        return None
    body = f"""
attack = f"!!python/object/apply:os.mkdir [{{str(tmp_path / 'made')!r}}]"{encoded}
try:
    {attack}
except Exception:
    pass  # the document is refused
assert not (tmp_path / "made").exists(), "the document called a function"
{ordinary}
"""
    return _test(f"{place.function.name} builds no objects from a document.", body)


_SPIED_PROCESSES = """
started = []

def record(command, *rest, shell=False, **options):
    started.append((command, shell))
    return mock.MagicMock(returncode=0, stdout="", stderr="")

spied = {getattr(subprocess, one): record for one in ("run", "call", "check_call", "check_output", "Popen")}
for one in ("getoutput", "getstatusoutput"):
    spied[getattr(subprocess, one)] = lambda command, **options: record(command, shell=True)
spied[os.system] = lambda command: record(command, shell=True).returncode
spied[os.popen] = lambda command, *rest: record(command, shell=True)
for where in (subprocess, os, module):
    for name, value in list(vars(where).items()):
        if callable(value) and getattr(value, "__hash__", None) and value in spied:
            monkeypatch.setattr(where, name, spied[value])
"""


def _shell(place: _Place) -> Reproducer | None:
    if not place.name.startswith(("subprocess.", "os.system", "os.popen")):
        return None
    parameter = place.source()
    attack = place.invoke({parameter: '"x; touch made"'}) if parameter else None
    ordinary = place.invoke()
    if ordinary is None:
        return None
    if attack is None:
        body = (
            _SPIED_PROCESSES
            + f"""
{ordinary}
assert started, "no program was started"
assert not [command for command, shell in started if shell], "a shell was started"
"""
        )
    else:
        body = (
            _SPIED_PROCESSES
            + f"""
{ordinary}
assert started, "no program was started"
started.clear()
try:
    {attack}
except (ValueError, TypeError):
    pass  # the argument is refused
for command, shell in started:
    words = shlex.split(command) if isinstance(command, str) else list(map(str, command))
    assert not shell or "x; touch made" in words, f"a shell would run {{command}}"
"""
        )
    return _test(
        f"{place.function.name} starts its program without a shell that reads the argument.",
        body,
        "os shlex subprocess unittest.mock",
        "monkeypatch tmp_path",
    )


_SPIED_DATABASE = """
class Database:
    rowcount = 1
    lastrowid = 1

    def __init__(self):
        self.queries = []

    def execute(self, query, *values):
        self.queries.append(str(query))
        return self

    executemany = executescript = execute

    def __getattr__(self, name):
        return lambda *rest, **options: self

    def __getitem__(self, at):
        return "1"

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        return False

database = Database()
monkeypatch.setattr(sqlite3, "connect", lambda *rest, **options: database)
"""


def _sql(place: _Place) -> Reproducer | None:
    func = place.call.func
    if not isinstance(func, ast.Attribute) or not func.attr.startswith("execute"):
        return None
    parameter = place.source()
    if parameter is None:
        return None
    receiver = source_parameter(place.function, func.value)
    given = {receiver: "database"} if receiver else {}
    attack = "\"x' OR '1'='1\""
    call = place.invoke({**given, parameter: attack})
    if call is None or receiver == parameter:
        return None
    body = (
        _SPIED_DATABASE
        + f"""
try:
    {call}
except (ValueError, TypeError):
    pass  # the value is refused, or the answer of this database is not understood
assert database.queries, "no query was made"
assert not [query for query in database.queries if {attack} in query], "the value became part of the query"
"""
    )
    return _test(
        f"{place.function.name} passes its value apart from the query.",
        body,
        "sqlite3",
        "monkeypatch tmp_path",
    )


def _request(expected: str, problem: str) -> Maker:
    def make(place: _Place) -> Reproducer | None:
        if not place.name.startswith("requests."):
            return None
        parameter = place.source()
        call = place.invoke({parameter: '"http://localhost:9/"'} if parameter else {})
        if call is None:
            return None
        body = f"""
requests = pytest.importorskip("requests")
sent = []

def request(session, method, url, **options):
    sent.append({{"verify": session.verify, **options}})
    return mock.MagicMock(status_code=200, text="", content=b"")

monkeypatch.setattr(requests.sessions.Session, "request", request)
try:
    {call}
except (ValueError, TypeError):
    pass  # this answer is not understood
assert sent, "no request was made"
assert all({expected} for one in sent), "{problem}"
"""
        return _test(
            f"A request of {place.function.name}: not {problem}.",
            body,
            "unittest.mock",
            "monkeypatch tmp_path",
        )

    return make


def _hash(place: _Place) -> Reproducer | None:
    if place.name not in ("hashlib.md5", "hashlib.sha1", "hashlib.new"):
        return None
    call = place.invoke()
    if call is None:
        return None
    body = f"""
used = []

def spied(name):
    original = getattr(hashlib, name)

    def digest(data=b"", *, usedforsecurity=True):
        used.extend([name] if usedforsecurity else [])
        return original(data, usedforsecurity=usedforsecurity)

    return original, digest

for original, digest in map(spied, ("md5", "sha1")):
    for where in (hashlib, module):
        for name, value in list(vars(where).items()):
            if value is original:
                monkeypatch.setattr(where, name, digest)
made = hashlib.new
monkeypatch.setattr(hashlib, "new", lambda name, *rest, **options: (used.append(name), made(name, *rest, **options))[1])
{call}
assert not {{"md5", "sha1"}} & set(used), f"{{used}} protects something"
"""
    return _test(
        f"{place.function.name} relies on no broken hash.", body, "hashlib", "monkeypatch tmp_path"
    )


def _random(place: _Place) -> Reproducer | None:
    if not place.name.startswith("random."):
        return None
    call = place.invoke()
    if call is None:
        return None
    body = f"""
drawn = []
for _ in range(2):
    random.seed(0)
    drawn.append([{call} for _ in range(8)])
assert drawn[0][0] is not None
assert drawn[0] != drawn[1], "whoever knows the seed knows the secret"
"""
    return _test(f"{place.function.name} cannot be predicted.", body, "random")


def _temporary(place: _Place) -> Reproducer | None:
    if place.name != "tempfile.mktemp":
        return None
    call = place.invoke()
    if call is None:
        return None
    body = f"""
names = []
original = tempfile.mktemp
for where in (tempfile, module):
    for name, value in list(vars(where).items()):
        if value is original:
            monkeypatch.setattr(where, name, lambda *rest, **options: names.append(1) or original(*rest, **options))
{call}
assert not names, "a name was chosen before the file was made"
"""
    return _test(
        f"{place.function.name} makes its temporary file at once.",
        body,
        "tempfile",
        "monkeypatch tmp_path",
    )


def _mode(place: _Place) -> Reproducer | None:
    if place.name != "os.chmod":
        return None
    call = place.invoke({name: _FILE for name in [place.source() or ""] if name})
    if call is None:
        return None
    body = f"""
modes = []
monkeypatch.setattr(os, "chmod", lambda path, mode, **options: modes.append(mode))
{call}
assert modes, "no mode was set"
assert not [mode for mode in modes if mode & 0o022], "others may write"
"""
    return _test(
        f"{place.function.name} lets nobody else write.", body, "os", "monkeypatch tmp_path"
    )


def _encoding(place: _Place) -> Reproducer | None:
    if place.name != "open":
        return None
    parameter = place.source()
    call = place.invoke({parameter: _FILE} if parameter else {})
    if call is None:
        return None
    body = f"""
opened = []
original = builtins.open

def spied(file, mode="r", buffering=-1, encoding=None, *rest, **options):
    opened.append("b" in mode or encoding is not None)
    return original(file, mode, buffering, encoding, *rest, **options)

monkeypatch.setattr(builtins, "open", spied)
{call}
assert opened, "no file was opened"
assert all(opened), "the encoding depends on the machine"
"""
    return _test(
        f"{place.function.name} names the encoding.", body, "builtins", "monkeypatch tmp_path"
    )


def _archive(place: _Place) -> Reproducer | None:
    func = place.call.func
    if not isinstance(func, ast.Attribute) or func.attr != "extractall":
        return None
    archive = source_parameter(place.function, func.value)
    for node in ast.walk(place.function):
        if isinstance(node, ast.withitem) and node.optional_vars is not None:
            if shape(node.optional_vars) == shape(func.value):
                archive = source_parameter(place.function, node.context_expr)
    target = place.source()
    if archive is None or target is None or archive == target:
        return None
    call = place.invoke({archive: "str(tmp_path / 'a.tar')", target: "str(tmp_path / 'inside')"})
    if call is None:
        return None
    body = f"""
(tmp_path / "inside").mkdir()
with tarfile.open(tmp_path / "a.tar", "w") as made:
    made.add(tmp_path / "given", arcname="../outside")
try:
    {call}
except Exception:
    pass  # the archive is refused
assert not (tmp_path / "outside").exists(), "a member was written outside of the folder"
with tarfile.open(tmp_path / "a.tar", "w") as made:
    made.add(tmp_path / "given", arcname="member")
{call}
assert (tmp_path / "inside" / "member").exists(), "the archive was not unpacked"
"""
    return _test(f"{place.function.name} writes inside of its folder.", body, "tarfile")


def _token(place: _Place) -> Reproducer | None:
    if place.name != "jwt.decode":
        return None
    call = place.invoke()
    if call is None:
        return None
    body = f"""
jwt = pytest.importorskip("jwt")
asked = []

def decode(token, key="", algorithms=None, options=None, **more):
    asked.append((algorithms, {{**(options or {{}}), **more}}))
    return {{"sub": "a", "exp": 1}}

monkeypatch.setattr(jwt, "decode", decode)
try:
    {call}
except (ValueError, TypeError, KeyError):
    pass  # these claims are not understood
assert asked, "no token was read"
for algorithms, options in asked:
    assert options.get("verify_signature", True) and options.get("verify", True), "the signature is not checked"
    assert "none" not in [str(one).lower() for one in algorithms or ()], "unsigned tokens are accepted"
"""
    return _test(f"{place.function.name} checks signatures.", body, "", "monkeypatch tmp_path")


_MAKERS: Mapping[int, tuple[Maker, ...]] = {
    20: (_yaml,),
    22: (_archive,),
    78: (_shell,),
    89: (_sql,),
    94: (_code,),
    95: (_code,),
    295: (_request("one['verify'] is not False", "certificates are not checked"),),
    327: (_hash,),
    328: (_hash,),
    330: (_random,),
    338: (_random,),
    347: (_token,),
    377: (_temporary,),
    400: (_request("one.get('timeout') is not None", "a request may wait forever"),),
    502: (_yaml,),
    732: (_mode,),
    838: (_encoding,),
    916: (_hash,),
}


def none_comparison_test(module: PythonModule, finding: Finding) -> Reproducer | None:
    """A test that a parameter is compared with None by identity, or None."""
    function = function_at(module, finding.line)
    if finding.rule != "E711" or function is None:
        return None
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and node.lineno == finding.line:
            name = shape(node.left)
            call = call_of(module, function, {name: "odd"}) if name.isidentifier() else None
            if call is None or name not in [one.arg for one in function.args.args]:
                continue
            body = f"""
class Odd:
    def __eq__(self, other):
        assert other is not None, "compared with None by =="
        return False

    __ne__ = __eq__
    __hash__ = object.__hash__

odd = Odd()
try:
    {call}
except (TypeError, ValueError, AttributeError):
    pass  # the function cannot use this value
"""
            return _test(f"{function.name} compares with None by identity.", body, "", "")
    return None
