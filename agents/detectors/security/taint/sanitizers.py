"""Calls that make data harmless, and calls that pass it on."""

import re

from agents.detectors.security.taint.value import EVERY_SINK, SinkKind

_PATHS = frozenset([SinkKind.PATH])
_URLS = frozenset([SinkKind.URL, SinkKind.REDIRECT, SinkKind.PATH, SinkKind.HTML])
_HTML = frozenset([SinkKind.HTML])
_NAME_ONLY = EVERY_SINK - {SinkKind.LOG}

CLEANING = {
    **dict.fromkeys(
        "int float bool len ord hash id round abs complex uuid.UUID uuid.uuid4 uuid.uuid5 decimal.Decimal datetime.datetime"
        " datetime.date.fromisoformat datetime.datetime.fromisoformat datetime.datetime.strptime ipaddress.ip_address"
        " ipaddress.ip_network time.time isinstance callable hasattr sum any all"
        " secrets.compare_digest hmac.compare_digest zlib.crc32".split(),
        EVERY_SINK,
    ),
    **dict.fromkeys("shlex.quote pipes.quote shlex.join".split(), frozenset([SinkKind.COMMAND])),
    **dict.fromkeys(
        "html.escape markupsafe.escape flask.escape cgi.escape django.utils.html.escape bleach.clean nh3.clean"
        " django.utils.html.conditional_escape xml.sax.saxutils.escape markupsafe.Markup.escape"
        " django.utils.html.format_html".split(),
        _HTML,
    ),
    **dict.fromkeys("urllib.parse.quote urllib.parse.quote_plus urllib.parse.urlencode".split(), _URLS),
    **dict.fromkeys(
        "os.path.basename werkzeug.utils.secure_filename werkzeug.secure_filename django.utils.text.get_valid_filename"
        " werkzeug.utils.safe_join flask.safe_join werkzeug.security.safe_join django.utils._os.safe_join".split(),
        _PATHS,
    ),
    "re.escape": frozenset([SinkKind.REGEX]),
    **dict.fromkeys(
        "ldap.filter.escape_filter_chars ldap3.utils.conv.escape_filter_chars".split(),
        frozenset([SinkKind.LDAP]),
    ),
    **dict.fromkeys("flask.url_for django.urls.reverse url_for".split(), EVERY_SINK),
    "json.dumps": frozenset([SinkKind.LOG, SinkKind.CODE]),
    "repr": frozenset([SinkKind.LOG]),
    "str": frozenset([SinkKind.NOSQL]),
}
"""Kinds of sinks that the result of a call is harmless for."""

CLEANING_METHODS = {
    "hexdigest": EVERY_SINK,
    "digest": EVERY_SINK,
    "isoformat": EVERY_SINK,
    "strftime": EVERY_SINK,
    "timestamp": EVERY_SINK,
    "count": EVERY_SINK,
    "index": EVERY_SINK,
    "bit_length": EVERY_SINK,
    "quote_ident": frozenset([SinkKind.SQL]),
    "quote_identifier": frozenset([SinkKind.SQL]),
    "escape_string": frozenset([SinkKind.SQL]),
    "quote_name": frozenset([SinkKind.SQL]),
    "cursor": EVERY_SINK,
}

CLEANING_NAME = re.compile(
    r"(^|_)(sanit\w*|escaped?|quoted?|slugify|clean|cleaned|allowlist\w*|whitelist\w*|safe|validated?|validator"
    r"|redact\w*|normalize_identifier)(_|$)",
    re.IGNORECASE,
)
"""Functions of unknown code whose names say that they clean."""

CHECK_NAME = re.compile(
    r"(^|_)(safe|valid|validate|allowed|trusted|permitted|check|ensure|assert|verify|require|is_within|is_local)(_|$)"
    r"|is_relative_to|url_has_allowed_host_and_scheme",
    re.IGNORECASE,
)
"""Predicates and checks of unknown code whose argument is harmless after they succeed."""

PASSING = frozenset(
    "str bytes bytearray list tuple set frozenset dict sorted reversed enumerate zip map filter iter next min max repr"
    " format ascii json.loads json.load json.dumps copy.copy copy.deepcopy vars"
    " base64.b64decode base64.b64encode base64.urlsafe_b64decode base64.urlsafe_b64encode base64.standard_b64decode"
    " base64.b32decode binascii.unhexlify bytes.fromhex codecs.decode codecs.encode zlib.decompress gzip.decompress"
    " urllib.parse.unquote urllib.parse.unquote_plus urllib.parse.urlparse urllib.parse.urlsplit urllib.parse.urljoin"
    " urllib.parse.parse_qs urllib.parse.parse_qsl os.path.join os.path.abspath os.path.normpath os.path.realpath"
    " os.path.expanduser os.path.splitext os.path.dirname os.fspath os.fsdecode posixpath.join"
    " pathlib.Path pathlib.PurePath pathlib.PurePosixPath pathlib.PosixPath io.StringIO io.BytesIO string.Template"
    " shlex.split textwrap.dedent typing.cast itertools.chain itertools.chain.from_iterable collections.OrderedDict"
    " re.sub html.unescape unicodedata.normalize inspect.cleandoc print operator.itemgetter"
    " asyncio.to_thread asyncio.wait_for urllib.request.Request".split()
)
"""Calls whose result carries the data of their arguments."""

PASSING_METHODS = frozenset(
    "strip lstrip rstrip lower upper title capitalize casefold replace encode decode split rsplit splitlines partition"
    " rpartition removeprefix removesuffix ljust rjust center zfill expandtabs translate swapcase get pop popitem items"
    " values keys copy setdefault read readline readlines getvalue json text body form data to_dict model_dump dict"
    " substitute safe_substitute joinpath with_suffix with_name resolve absolute expanduser as_posix getlist get_json"
    " group groups groupdict __getitem__ fetch first last one stream result".split()
)
"""Methods whose result carries the data of their receiver."""

MUTATING_METHODS = frozenset(
    "append extend add insert update setdefault appendleft extendleft write writelines push put".split()
)
"""Methods that put their arguments into their receiver."""
