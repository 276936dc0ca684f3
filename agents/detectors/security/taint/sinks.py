"""Dangerous calls of Python programs: which argument of which call is a sink of which kind."""

import re
from dataclasses import dataclass

from agents.detectors.security.taint.value import SinkKind, Trust


@dataclass(frozen=True, slots=True)
class Sink:
    """An argument of a call that must not be made of outsiders' data.

    Attributes:
        kind: what can happen.
        positions: positional arguments concerned.
        keywords: keyword arguments concerned.
        raw: least trust of a value passed as it is that is reported; None never reports one.
        built: least trust of a string put together that is reported; None never reports one.
        looks: pattern that the constant text must match where trust is below `USER`; empty matches all.
        needs: a condition on other arguments: `shell`, `unsafe-yaml`, `unsafe-torch`, `xml-entities`, or empty.
    """

    kind: SinkKind
    positions: tuple[int, ...] = (0,)
    keywords: tuple[str, ...] = ()
    raw: Trust | None = Trust.USER
    built: Trust | None = Trust.USER
    looks: str = ""
    needs: str = ""


_SQL = (
    r"(?i)\b(select\s|insert\s+(or\s+\w+\s+)?into|update\s|delete\s+from|drop\s+(table|database|index|view|schema|role|user)"
    r"|alter\s+(table|user|role)|create\s+(table|index|view|user|role|database|schema|unique)|truncate\s|replace\s+into"
    r"|merge\s+into|where\s|grant\s|pragma\s|union\s|order\s+by|call\s|exec\s|attach\s|copy\s|set\s+\w+\s*=)"
)
_P, _O, _U, _L = Trust.PARAMETER, Trust.OPAQUE, Trust.USER, Trust.LOCAL

_SQL_SINK = Sink(SinkKind.SQL, (0,), ("sql", "query", "statement", "operation"), _L, _O, _SQL)
_SHELL = Sink(SinkKind.COMMAND, (0,), ("cmd", "command", "args"), _P, _O)
_SHELL_FLAG = Sink(SinkKind.COMMAND, (0,), ("args", "cmd"), _P, _O, needs="shell")
_ARGV = Sink(SinkKind.COMMAND, (0,), ("args",), _U, _U, needs="no-shell")
_CODE = Sink(SinkKind.CODE, (0,), ("source", "code", "expression"), _O, _O)
_PICKLE = Sink(SinkKind.DESERIALIZE, (0,), ("data", "file"), _O, _O)
_URL = Sink(SinkKind.URL, (0,), ("url",))
_URL_SECOND = Sink(SinkKind.URL, (1,), ("url",))
_PATH = Sink(SinkKind.PATH, (0,), ("file", "path", "filename", "path_or_file", "filename_or_fp"))
_HTML = Sink(SinkKind.HTML, (0,), ("s", "content", "response", "body"), _U, _O, looks="<")

CALLS: dict[str, tuple[Sink, ...]] = {
    **dict.fromkeys(
        [
            "os.system",
            "os.popen",
            "subprocess.getoutput",
            "subprocess.getstatusoutput",
            "asyncio.create_subprocess_shell",
            "commands.getoutput",
            "commands.getstatusoutput",
            "popen2.popen2",
            "popen2.popen3",
            "asyncio.subprocess.create_subprocess_shell",
            "invoke.run",
            "fabric.run",
            "fabric.Connection().run",
            "fabric.Connection().sudo",
            "fabric.Connection().local",
            "invoke.Context().run",
            "fabric.sudo",
            "fabric.api.run",
            "fabric.api.sudo",
            "fabric.api.local",
            "pexpect.run",
            "anyio.open_process",
        ],
        (_SHELL,),
    ),
    **dict.fromkeys(
        [f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")],
        (_SHELL_FLAG, _ARGV),
    ),
    **dict.fromkeys(
        [f"os.{name}" for name in ("execl", "execlp", "execv", "execvp", "execve", "startfile")]
        + ["pty.spawn", "pexpect.spawn"],
        (Sink(SinkKind.COMMAND, (0, 1, 2), raw=_U, built=_U),),
    ),
    **dict.fromkeys(["eval", "exec", "builtins.eval", "builtins.exec"], (_CODE,)),
    "compile": (Sink(SinkKind.CODE, (0,), ("source",), _U, _U),),
    "timeit.timeit": (_CODE,),
    "pandas.eval": (Sink(SinkKind.CODE, raw=_U, built=_P),),
    "importlib.import_module": (Sink(SinkKind.REFLECTION, raw=_U, built=_U),),
    "__import__": (Sink(SinkKind.REFLECTION, raw=_U, built=_U),),
    "getattr": (Sink(SinkKind.REFLECTION, (1,), raw=_U, built=None),),
    **dict.fromkeys(
        [
            "pickle.loads",
            "pickle.load",
            "_pickle.loads",
            "cPickle.loads",
            "cPickle.load",
            "pickle.Unpickler",
            "marshal.loads",
            "marshal.load",
            "dill.loads",
            "dill.load",
            "cloudpickle.loads",
            "cloudpickle.load",
            "jsonpickle.decode",
            "jsonpickle.loads",
            "shelve.open",
            "joblib.load",
            "pandas.read_pickle",
            "yaml.unsafe_load",
            "yaml.unsafe_load_all",
            "yaml.full_load",
        ],
        (_PICKLE,),
    ),
    "yaml.load": (Sink(SinkKind.DESERIALIZE, (0,), ("stream",), _O, _O, needs="unsafe-yaml"),),
    "yaml.load_all": (Sink(SinkKind.DESERIALIZE, (0,), ("stream",), _O, _O, needs="unsafe-yaml"),),
    "torch.load": (Sink(SinkKind.DESERIALIZE, (0,), ("f",), _O, _O, needs="unsafe-torch"),),
    "numpy.load": (Sink(SinkKind.DESERIALIZE, (0,), ("file",), _O, _O, needs="allow-pickle"),),
    "flask.render_template_string": (Sink(SinkKind.TEMPLATE, (0,), ("source",), _P, _O),),
    "jinja2.Template": (Sink(SinkKind.TEMPLATE, (0,), ("source",), _L, _P),),
    "mako.template.Template": (Sink(SinkKind.TEMPLATE, (0,), ("text",), _L, _P),),
    "django.template.Template": (Sink(SinkKind.TEMPLATE, (0,), (), _L, _P),),
    "tornado.template.Template": (Sink(SinkKind.TEMPLATE, (0,), (), _L, _P),),
    **dict.fromkeys(
        ["markupsafe.Markup", "flask.Markup", "django.utils.safestring.mark_safe", "jinja2.Markup"],
        (Sink(SinkKind.HTML, (0,), (), _L, _P),),
    ),
    **dict.fromkeys(
        [
            "flask.make_response",
            "flask.Response",
            "django.http.HttpResponse",
            "fastapi.responses.HTMLResponse",
            "starlette.responses.HTMLResponse",
            "sanic.response.html",
            "aiohttp.web.Response",
        ],
        (Sink(SinkKind.HTML, (0,), ("content", "response", "text", "body"), None, _U, looks="<"),),
    ),
    "sqlalchemy.text": (Sink(SinkKind.SQL, (0,), ("text",), _L, _O, _SQL),),
    "sqlalchemy.sql.text": (Sink(SinkKind.SQL, (0,), ("text",), _L, _O, _SQL),),
    "pandas.read_sql": (_SQL_SINK,),
    "pandas.read_sql_query": (_SQL_SINK,),
    "django.db.models.expressions.RawSQL": (_SQL_SINK,),
    "duckdb.sql": (_SQL_SINK,),
    "duckdb.query": (_SQL_SINK,),
    "open": (_PATH,),
    "io.open": (_PATH,),
    "codecs.open": (_PATH,),
    "aiofiles.open": (_PATH,),
    "flask.send_file": (_PATH,),
    "fastapi.responses.FileResponse": (_PATH,),
    "starlette.responses.FileResponse": (_PATH,),
    "django.http.FileResponse": (_PATH,),
    **dict.fromkeys(
        [
            "os.remove",
            "os.unlink",
            "os.rmdir",
            "os.listdir",
            "os.scandir",
            "os.makedirs",
            "os.mkdir",
            "shutil.rmtree",
            "os.stat",
        ],
        (_PATH,),
    ),
    **dict.fromkeys(
        [
            "shutil.copy",
            "shutil.copyfile",
            "shutil.move",
            "os.rename",
            "os.replace",
            "shutil.copytree",
        ],
        (Sink(SinkKind.PATH, (0, 1), ("src", "dst")),),
    ),
    **dict.fromkeys(
        [
            f"{library}.{method}"
            for library in ("requests", "httpx")
            for method in ("get", "post", "put", "patch", "delete", "head", "options", "stream")
        ],
        (_URL,),
    ),
    "requests.request": (_URL_SECOND,),
    "httpx.request": (_URL_SECOND,),
    "httpx.stream": (_URL_SECOND,),
    "urllib.request.urlopen": (_URL,),
    "urllib.request.Request": (_URL,),
    "urllib.request.urlretrieve": (_URL,),
    "urllib2.urlopen": (_URL,),
    "http.client.HTTPConnection": (Sink(SinkKind.URL, (0,), ("host",)),),
    "http.client.HTTPSConnection": (Sink(SinkKind.URL, (0,), ("host",)),),
    "socket.create_connection": (Sink(SinkKind.URL, (0,), ("address",)),),
    **dict.fromkeys(
        [
            "flask.redirect",
            "django.shortcuts.redirect",
            "django.http.HttpResponseRedirect",
            "bottle.redirect",
            "fastapi.responses.RedirectResponse",
            "starlette.responses.RedirectResponse",
            "werkzeug.utils.redirect",
        ],
        (Sink(SinkKind.REDIRECT, (0,), ("location", "url", "to")),),
    ),
    **dict.fromkeys(
        [
            "re.compile",
            "re.match",
            "re.search",
            "re.fullmatch",
            "re.findall",
            "re.sub",
            "re.split",
            "re.finditer",
        ],
        (Sink(SinkKind.REGEX, (0,), ("pattern",), _U, _U),),
    ),
    **dict.fromkeys(
        [
            "lxml.etree.fromstring",
            "lxml.etree.parse",
            "lxml.etree.XML",
            "lxml.etree.iterparse",
            "lxml.objectify.fromstring",
        ],
        (Sink(SinkKind.XML, (0,), ("source", "text"), _P, _P, needs="xml-entities"),),
    ),
    **dict.fromkeys(
        [
            "xml.sax.parseString",
            "xml.sax.parse",
            "xml.dom.minidom.parseString",
            "xml.dom.minidom.parse",
            "xml.dom.pulldom.parseString",
            "xml.dom.pulldom.parse",
            "xml.etree.ElementTree.fromstring",
            "xml.etree.ElementTree.parse",
            "xml.etree.ElementTree.XML",
            "xml.etree.ElementTree.iterparse",
            "xml.etree.cElementTree.fromstring",
            "xml.etree.cElementTree.parse",
        ],
        (Sink(SinkKind.XML, (0,), ("source", "text", "string"), _U, _U),),
    ),
}

METHODS: dict[str, tuple[Sink, ...]] = {
    **dict.fromkeys(
        ["execute", "executemany", "executescript", "exec_driver_sql", "mogrify"], (_SQL_SINK,)
    ),
    **dict.fromkeys(
        [
            "raw",
            "query",
            "sql",
            "fetch",
            "fetchrow",
            "fetchval",
            "fetch_all",
            "fetch_one",
            "fetch_val",
            "prepare",
            "scalar",
            "scalars",
            "copy_expert",
        ],
        (Sink(SinkKind.SQL, (0,), ("query", "sql"), None, _O, _SQL),),
    ),
    "extra": (Sink(SinkKind.SQL, (), ("where", "select", "tables"), None, _O),),
    "from_string": (Sink(SinkKind.TEMPLATE, (0,), ("source",), _L, _P),),
    "exec_command": (Sink(SinkKind.COMMAND, (0,), ("command",), _L, _P),),
    "search_s": (Sink(SinkKind.LDAP, (2,), ("filterstr",), _L, _O),),
    "search_st": (Sink(SinkKind.LDAP, (2,), ("filterstr",), _L, _O),),
    "search_ext": (Sink(SinkKind.LDAP, (2,), ("filterstr",), _L, _O),),
    "search_ext_s": (Sink(SinkKind.LDAP, (2,), ("filterstr",), _L, _O),),
    "search": (
        Sink(SinkKind.LDAP, (1,), ("search_filter",), None, _O, r"\(\s*[&|!(]?\s*\(?\w+\s*="),
    ),
    "xpath": (Sink(SinkKind.XPATH, (0,), (), _U, _O, r"//|/|\[|@"),),
    "findall": (Sink(SinkKind.XPATH, (0,), (), None, _P, r"\[@?\w+\s*="),),
    "find": (
        Sink(SinkKind.XPATH, (0,), (), None, _P, r"\[@?\w+\s*="),
        Sink(SinkKind.NOSQL, (0,), ("filter",), _U, _U, needs="document"),
    ),
    **dict.fromkeys(
        [
            "find_one",
            "find_one_and_update",
            "find_one_and_delete",
            "update_one",
            "update_many",
            "delete_one",
            "delete_many",
            "count_documents",
        ],
        (Sink(SinkKind.NOSQL, (0,), ("filter",), _U, _U, needs="document"),),
    ),
    "send_file": (Sink(SinkKind.PATH, (0,), ("path",)),),
    "save": (Sink(SinkKind.PATH, (0,), ("dst", "path", "filename")),),
}
"""By method name, whatever the receiver is; the constant text decides whether it is one."""

FILE_METHODS = frozenset(
    [
        "open",
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "unlink",
        "rmdir",
        "mkdir",
        "iterdir",
        "touch",
    ]
)
"""Methods of a `pathlib.Path` whose receiver is a sink of kind `PATH`."""

CLIENT_METHODS = frozenset(
    ["get", "post", "put", "patch", "delete", "head", "options", "request", "stream"]
)
CLIENT_NAMES = re.compile(
    r"(^|[._])(client|session|http|http_client|httpclient|requests|aiohttp\.\w+\(\))$"
)
CLIENT_TYPES = frozenset(
    [
        "httpx.Client",
        "httpx.AsyncClient",
        "requests.Session",
        "requests.session",
        "aiohttp.ClientSession",
        "urllib3.PoolManager",
    ]
)

LOG_METHODS = frozenset(
    ["debug", "info", "warning", "warn", "error", "critical", "exception", "log"]
)
LOG_NAMES = re.compile(
    r"(^|[._])(log|logger|logging|_log|_logger|LOG|LOGGER|current_app\.logger|app\.logger)$"
)
DATABASE_NAMES = re.compile(
    r"(?i)(^|[._])(\w*(cursor|cur|conn|connection|db|database|session|engine|tx|transaction|pool|sqlite|sql))(\(\)|\[\])*$"
)
