"""Dependencies: versions that are not fixed, odd sources, names that imitate others, known advisories."""

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_HIGH, _MEDIUM, _LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
UNPINNED = Rule("unpinned-dependency", _LOW, "Version not fixed", cwe=1357)
WILDCARD = Rule("wildcard-version", _MEDIUM, "Any version is accepted", cwe=1357)
ODD_SOURCE = Rule("dependency-source", _MEDIUM, "Dependency from an unchecked source", cwe=829)
PLAIN_INDEX = Rule("plain-index", _HIGH, "Packages fetched without TLS", cwe=319)
EXTRA_INDEX = Rule("extra-index", _MEDIUM, "Names may come from either index", cwe=427)
TYPOSQUAT = Rule("typosquat", _HIGH, "Name that imitates another", cwe=1357)
ABANDONED = Rule("abandoned-package", _MEDIUM, "Package that was given up", cwe=1104)
NO_LOCK = Rule("no-lock-file", _LOW, "No lock file", cwe=1357)
INSTALL_SCRIPT = Rule("install-script", _MEDIUM, "Script runs at installation", cwe=829)
MISSING_HASH = Rule("missing-hash", _LOW, "Locked package without a hash", cwe=353)
VULNERABLE = Rule("known-vulnerable", _HIGH, "Version with known defects", cwe=1395)
RULES = (
    UNPINNED, WILDCARD, ODD_SOURCE, PLAIN_INDEX, EXTRA_INDEX, TYPOSQUAT, ABANDONED, NO_LOCK, INSTALL_SCRIPT,
    MISSING_HASH, VULNERABLE,
)  # fmt: skip

_POPULAR = {
    "python": """requests urllib3 numpy pandas flask django fastapi sqlalchemy pytest setuptools boto3 botocore
    certifi cryptography pyyaml click jinja2 pillow scipy matplotlib scikit-learn tensorflow torch transformers
    beautifulsoup4 lxml selenium aiohttp httpx pydantic celery redis psycopg2 pymongo paramiko rich typer tqdm
    python-dateutil pytz six attrs packaging wheel colorama virtualenv black mypy ruff pylint coverage tox gunicorn
    uvicorn starlette werkzeug markupsafe itsdangerous idna charset-normalizer protobuf grpcio websockets tornado
    openpyxl xlrd docutils sphinx jsonschema marshmallow alembic psutil networkx sympy nltk spacy gensim opencv-python
    pyjwt passlib bcrypt python-jose oauthlib google-auth azure-core openai anthropic langchain streamlit gradio dash
    plotly bokeh seaborn statsmodels xgboost lightgbm keras faker factory-boy hypothesis responses freezegun""",
    "javascript": """react react-dom lodash express axios chalk commander debug async moment webpack babel-loader
    typescript eslint jest mocha vue angular next jquery underscore request body-parser dotenv cors mongoose passport
    jsonwebtoken bcrypt uuid yargs glob rimraf mkdirp semver minimist colors cross-env nodemon prettier socket.io redux
    rxjs tslib zone.js core-js classnames prop-types styled-components node-fetch ws ejs pug handlebars marked dayjs
    date-fns sequelize knex pg mysql mysql2 redis aws-sdk firebase graphql apollo-server helmet morgan multer nodemailer
    puppeteer cheerio vite rollup esbuild tailwindcss postcss autoprefixer sass electron three d3 chart.js""",
    "rust": """serde serde_json tokio rand clap anyhow thiserror log env_logger regex reqwest hyper actix-web axum
    chrono futures lazy_static once_cell itertools rayon tracing bytes url uuid base64 sha2 syn quote libc bitflags""",
}
_SIMILAR = frozenset(
    [
        "grequests",
        "preact",
        "asyncpg",
        "aiomysql",
        "mongo",
        "ruamel",
        "pyaml",
        "httpx2",
        "reacts",
        "koa",
        "redux",
        "pgx",
        "clip",
        "tinytext",
        "sequel",
        "knox",
    ]
)
"""Well-known packages whose names are close to those of others."""
_ABANDONED = {
    "pycrypto": "pycryptodome", "python-jose": "pyjwt", "sklearn": "scikit-learn", "nose": "pytest",
    "mysql-python": "mysqlclient", "dgram": "", "request": "axios or fetch", "node-uuid": "uuid", "left-pad": "",
    "event-stream": "", "flatmap-stream": "", "pil": "pillow", "pysha3": "hashlib", "gulp-util": "",
    "github.com/dgrijalva/jwt-go": "github.com/golang-jwt/jwt", "github.com/satori/go.uuid": "github.com/google/uuid",
    "github.com/pkg/errors": "errors", "structopt": "clap", "failure": "anyhow", "term": "", "tempdir": "tempfile",
    "vm2": "isolated-vm", "node-serialize": "JSON", "bower": "npm", "tslint": "eslint", "pycrypto-fork": "pycryptodome", "distribute": "setuptools",
}  # fmt: skip
_NEVER_FIXED = (99,)
_VULNERABLE: dict[tuple[str, str], tuple[int, ...]] = {
    ("python", "pyyaml"): (5, 4), ("python", "jinja2"): (2, 11, 3), ("python", "requests"): (2, 31),
    ("python", "urllib3"): (1, 26, 5), ("python", "django"): (3, 2), ("python", "flask"): (1, 0),
    ("python", "pillow"): (10, 0, 1), ("python", "cryptography"): (41, 0), ("python", "paramiko"): (2, 4, 1),
    ("python", "werkzeug"): (2, 2, 3), ("python", "lxml"): (4, 6, 5), ("python", "certifi"): (2022, 12, 7),
    ("javascript", "lodash"): (4, 17, 21), ("javascript", "minimist"): (1, 2, 6), ("javascript", "axios"): (0, 21, 2),
    ("javascript", "express"): (4, 17, 3), ("javascript", "jsonwebtoken"): (9, 0), ("javascript", "moment"): (2, 29, 4),
    ("javascript", "node-fetch"): (2, 6, 7), ("javascript", "handlebars"): (4, 7, 7), ("javascript", "marked"): (4, 0, 10),
    ("go", "github.com/gin-gonic/gin"): (1, 9, 1), ("go", "golang.org/x/crypto"): (0, 17), ("go", "golang.org/x/net"): (0, 17),
    ("go", "github.com/gorilla/websocket"): (1, 4, 1), ("go", "gopkg.in/yaml.v2"): (2, 2, 8), ("go", "gopkg.in/yaml.v3"): (3, 0, 1),
    ("go", "golang.org/x/text"): (0, 3, 8), ("go", "github.com/gogo/protobuf"): (1, 3, 2), ("go", "github.com/golang-jwt/jwt"): (4, 5, 1),
    ("go", "github.com/docker/docker"): (24, 0, 7), ("go", "google.golang.org/grpc"): (1, 56, 3), ("go", "github.com/labstack/echo/v4"): (4, 9),
    ("rust", "time"): (0, 2, 23), ("rust", "chrono"): (0, 4, 20), ("rust", "regex"): (1, 5, 5), ("rust", "tokio"): (1, 18, 5),
    ("rust", "hyper"): (0, 14, 12), ("rust", "smallvec"): (1, 6, 1), ("rust", "openssl"): (0, 10, 55), ("rust", "rustls"): (0, 20, 9),
    ("rust", "h2"): (0, 3, 24), ("rust", "mio"): (0, 8, 11), ("rust", "crossbeam-deque"): (0, 8, 1), ("rust", "thread_local"): (1, 1, 4),
    ("rust", "actix-http"): (2, 2, 1), ("rust", "rocket"): (0, 4, 7), ("rust", "libsqlite3-sys"): (0, 25, 1), ("rust", "owning_ref"): _NEVER_FIXED,
    ("python", "aiohttp"): (3, 9, 2), ("python", "starlette"): (0, 36, 2), ("python", "fastapi"): (0, 109, 1), ("python", "gunicorn"): (22, 0),
    ("python", "tornado"): (6, 3, 3), ("python", "pyjwt"): (2, 4), ("python", "sqlalchemy"): (1, 3, 0), ("python", "idna"): (3, 7),
    ("python", "mako"): (1, 2, 2), ("python", "ujson"): (5, 4), ("python", "numpy"): (1, 22), ("python", "protobuf"): (3, 18, 3),
    ("javascript", "semver"): (5, 7, 2), ("javascript", "ws"): (7, 4, 6), ("javascript", "qs"): (6, 5, 3), ("javascript", "ua-parser-js"): (0, 7, 33),
    ("javascript", "vm2"): _NEVER_FIXED, ("javascript", "node-serialize"): _NEVER_FIXED, ("javascript", "tar"): (4, 4, 18), ("javascript", "undici"): (5, 26, 2),
    ("javascript", "follow-redirects"): (1, 15, 4), ("javascript", "json5"): (1, 0, 2), ("javascript", "loader-utils"): (1, 4, 2),
    ("javascript", "serialize-javascript"): (3, 1), ("javascript", "ejs"): (3, 1, 7), ("javascript", "jquery"): (3, 5),
}  # fmt: skip
"""First versions without widely known defects, from published advisories up to early 2024; `pip-audit` knows more."""
_DATE = "early 2024"


class Dependency(NamedTuple):
    """A declared package."""

    ecosystem: str
    name: str
    version: str
    line: int


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    seen = False
    for file in workspace:
        context.check_cancelled()
        name = _name(file)
        found = list(dependencies_of(file))
        seen |= bool(found)
        for one in found:
            yield from _check(file, one)
        yield from _file_rules(file, name, workspace)
    if seen:
        context.note(
            f"Only widely known advisories up to {_DATE} were compared; pip-audit, npm audit and cargo-audit "
            "need the network and know all."
        )


def _name(file: SourceFile) -> str:
    return file.path.rsplit("/", 1)[-1].lower()


def dependencies_of(file: SourceFile) -> Iterator[Dependency]:
    """The packages that a file declares; none if it declares no dependencies."""
    name = _name(file)
    if re.fullmatch(r"(requirements|constraints).*\.(txt|in)|.*requirements\.txt", name):
        yield from _requirements(file)
    elif name == "pyproject.toml":
        yield from _toml(file, "python")
    elif name == "cargo.toml":
        yield from _toml(file, "rust")
    elif name == "package.json":
        yield from _package_json(file)
    elif name == "go.mod":
        yield from _go_modules(file)


def _go_modules(file: SourceFile) -> Iterator[Dependency]:
    for number, line in enumerate(file.lines, 1):
        match = re.match(
            r"^\s*(?:require\s+)?([\w.-]+\.[\w-]+/[\w./-]+)\s+v(\d[\w.+-]*)\s*(//.*)?$", line
        )
        if match and not line.lstrip().startswith(("module", "replace", "exclude")):
            yield Dependency("go", match[1], re.split(r"[+-]", match[2])[0], number)


_REQUIREMENT = re.compile(r"^([A-Za-z0-9][\w.-]*)(\[[^\]]*\])?\s*(.*)$")


def _requirements(file: SourceFile) -> Iterator[Dependency]:
    for number, line in enumerate(file.lines, 1):
        text = re.sub(r"(^|\s)#.*", "", line).partition(";")[0].strip()
        if text.startswith("-") or "://" in text:
            continue
        if match := _REQUIREMENT.match(text):
            yield Dependency("python", match[1].lower().replace("_", "-"), match[3].strip(), number)


def _line_of(file: SourceFile, text: str) -> int:
    at = file.text.find(text)
    return file.text.count("\n", 0, at) + 1 if at >= 0 else 1


def _toml(file: SourceFile, ecosystem: str) -> Iterator[Dependency]:
    try:
        data = tomllib.loads(file.text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return
    listed: list[Any] = []
    project = data.get("project")
    if isinstance(project, dict):
        extras = project.get("optional-dependencies")
        groups = list(extras.values()) if isinstance(extras, dict) else []
        for group in (project.get("dependencies"), *groups):
            listed += group if isinstance(group, list) else []
    for one in listed:
        if isinstance(one, str) and (match := _REQUIREMENT.match(one.partition(";")[0].strip())):
            name = match[1].lower().replace("_", "-")
            yield Dependency(ecosystem, name, match[3].strip() or "any", _line_of(file, f'"{one}"'))
    tables = [data.get(key) for key in ("dependencies", "dev-dependencies", "build-dependencies")]
    tool = data.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    tables.append(poetry.get("dependencies") if isinstance(poetry, dict) else None)
    for table in tables:
        for name, value in table.items() if isinstance(table, dict) else ():
            version = value if isinstance(value, str) else ""
            if isinstance(value, dict):
                version = str(value.get("version") or ("git" if "git" in value else "path"))
            match = re.search(rf"^\s*\"?{re.escape(str(name))}\"?\s*=", file.text, re.MULTILINE)
            line = file.text.count("\n", 0, match.start()) + 1 if match else 1
            if match and file.text[match.start()] == "\n":
                line += 1
            if name != "python":
                yield Dependency(ecosystem, str(name).lower(), version, line)


def _package_json(file: SourceFile) -> Iterator[Dependency]:
    try:
        data = json.loads(file.text)
    except (ValueError, RecursionError):
        return
    for key in ("dependencies", "devDependencies", "optionalDependencies"):
        table = data.get(key) if isinstance(data, dict) else None
        for name, version in table.items() if isinstance(table, dict) else ():
            if isinstance(version, str):
                yield Dependency("javascript", name, version, _line_of(file, json.dumps(name)))


@cache
def _popular(ecosystem: str) -> tuple[str, ...]:
    return tuple(_POPULAR.get(ecosystem, "").split())


def _check(file: SourceFile, one: Dependency) -> Iterator[Finding]:
    version = one.version
    label = f"{one.name} {version}".strip()
    if version in ("*", "latest", "x", "any", ">=0") or (
        one.ecosystem == "javascript" and not version
    ):
        yield WILDCARD.at(file, one.line, f"{one.name} may be any version.")
    elif re.search(r"git\+|^git\b|^https?:|github:|^file:|^path$", version):
        if version not in ("path",) and "#" not in version and "rev" not in version:
            yield ODD_SOURCE.at(file, one.line, f"{one.name} comes from a branch that may change.")
    elif (
        one.ecosystem == "python"
        and not re.search(r"==|~=|<|@", version)
        and file.path.endswith((".txt", ".in"))
    ):
        yield UNPINNED.at(file, one.line, f"{label}: fix the version, or an upper bound.")
    known = _popular(one.ecosystem)
    if one.name not in known and one.name not in _SIMILAR and (near := _imitated(one.name, known)):
        yield TYPOSQUAT.at(
            file, one.line, f"{one.name} looks like {near}: is it meant?", confidence=0.7
        )
    if one.name in _ABANDONED:
        better = _ABANDONED[one.name]
        text = f"{one.name} is no longer maintained" + (f": use {better}." if better else ".")
        yield ABANDONED.at(file, one.line, text)
    fixed = _VULNERABLE.get((one.ecosystem, one.name))
    exact = re.fullmatch(r"(?:===?|[\^~=]|~=)?\s*v?(\d+(?:\.\d+)*)", version)
    if fixed and exact and tuple(int(part[:6]) for part in exact[1].split(".")) < fixed:
        wanted = ".".join(str(part) for part in fixed)
        text = f"{label} has known defects; {wanted} is the first without those ({_DATE})."
        if fixed == _NEVER_FIXED:
            text = f"{label} has known defects that no version fixes ({_DATE})."
        yield VULNERABLE.at(file, one.line, text)


def _imitated(name: str, known: tuple[str, ...]) -> str:
    """A popular name that differs by one edit or a swap of neighbours, if `name` has at least five letters."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    for other in known:
        if abs(len(other) - len(name)) > 1 or len(name) < 5 or name == other:
            continue
        if plain == other.replace("-", "").replace("_", "").replace(".", ""):
            return other
        if _one_edit(name, other):
            return other
    return ""


def _one_edit(one: str, other: str) -> bool:
    if len(one) == len(other):
        differing = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        swapped = (
            len(differing) == 2
            and differing[1] == differing[0] + 1
            and (
                one[differing[0]] == other[differing[1]]
                and one[differing[1]] == other[differing[0]]
            )
        )
        return len(differing) == 1 or swapped
    short, long = sorted((one, other), key=len)
    return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


def _file_rules(file: SourceFile, name: str, workspace: Workspace) -> Iterator[Finding]:
    index_file = (
        name.startswith(("requirements", "pip.conf", ".npmrc", "pip.ini")) or name == "setup.cfg"
    )
    for number, line in (
        enumerate(file.lines, 1) if index_file or file.language in ("dockerfile", "bash") else ()
    ):
        if re.search(r"(--index-url|-i|--extra-index-url|--find-links|registry)[ =]+http://", line):
            yield PLAIN_INDEX.at(file, number, "Packages can be replaced on the way: use https.")
        elif "--extra-index-url" in line:
            yield EXTRA_INDEX.at(file, number, "A public package of the same name may win.")
        elif (
            re.search(r"git\+(https?|ssh|git)://[^@\s]+(\.git)?(\s|$|#egg)", line)
            and "requirements" in name
        ):
            yield ODD_SOURCE.at(file, number, "The dependency comes from a branch that may change.")
        elif re.search(r"^\s*(-e\s+)?http://\S+\.(whl|tar\.gz|zip)", line):
            yield PLAIN_INDEX.at(file, number, "The archive can be replaced on the way.")
    if name == "package.json":
        match = re.search(
            r'"(pre|post)?install"\s*:\s*"([^"]*(curl|wget|node -e|eval|sh )[^"]*)"', file.text
        )
        if match:
            at = file.text.count("\n", 0, match.start()) + 1
            yield INSTALL_SCRIPT.at(file, at, "A script runs when the package is installed.")
        folder = file.path.rpartition("/")[0]
        prefix = f"{folder}/" if folder else ""
        locks = (
            "package-lock.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            "bun.lockb",
            "npm-shrinkwrap.json",
        )
        if '"dependencies"' in file.text and not any(workspace.get(prefix + one) for one in locks):
            yield NO_LOCK.at(file, 1, "Installations differ: commit a lock file.", confidence=0.6)
    if name == "package-lock.json":
        yield from _lock(file)


def _lock(file: SourceFile) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        if match := re.search(r'"resolved":\s*"(http://[^"]+)"', line):
            yield PLAIN_INDEX.at(file, number, f"{match[1][:80]} is fetched without TLS.")
        elif '"resolved"' in line and "https://" in line:
            after = "\n".join(file.lines[number : number + 2])
            if '"integrity"' not in after:
                yield MISSING_HASH.at(file, number, "The package has no integrity hash.")


DEPENDENCIES = Detector(
    "dependencies",
    "Reads dependency files: versions, sources, imitated names, widely known advisories.",
    _detect,
    RULES,
)
