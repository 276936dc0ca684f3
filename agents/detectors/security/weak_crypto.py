"""The detector `weak_crypto`: broken algorithms, modes without protection, short keys, fixed IVs and predictable secrets."""

import ast
import re
from collections.abc import Callable, Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.rule_file import JAVASCRIPT
from agents.detectors.security.call_rules import CallRule, matching_calls
from agents.detectors.security.predictable_random import RANDOM, predictable_secrets
from agents.detectors.security.python_files import python_modules
from agents.detectors.security.python_names import PythonModule, argument, constant, is_false
from agents.detectors.security.tree_code import tree_code, tree_files
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

HASH = Rule("weak-hash", Severity.MEDIUM, "broken hash function", 328)
PASSWORD_HASH = Rule(
    "fast-password-hash", Severity.HIGH, "password hashed with a fast function", 916
)
CIPHER = Rule("weak-cipher", Severity.HIGH, "broken or outdated cipher", 327)
MODE = Rule("ecb-mode", Severity.HIGH, "block cipher in ECB mode", 327)
IV = Rule("fixed-iv", Severity.HIGH, "fixed initialisation vector or nonce", 329)
SALT = Rule("fixed-salt", Severity.MEDIUM, "fixed salt", 760)
KEY = Rule("hardcoded-key", Severity.HIGH, "encryption key in the source", 321)
SIZE = Rule("short-key", Severity.HIGH, "key too short", 326)
ITERATIONS = Rule("few-iterations", Severity.MEDIUM, "too few iterations of key derivation", 916)
TLS = Rule("weak-tls", Severity.HIGH, "outdated protocol version", 327)
_RULES = (HASH, PASSWORD_HASH, CIPHER, MODE, IV, SALT, KEY, SIZE, ITERATIONS, RANDOM, TLS)

_SECRET = re.compile(
    r"(?i)(token|secret|passw(or)?d|passcode|otp|\bpin\b|_pin|nonce|salt|api_?key|session|csrf|reset|invite|voucher"
    r"|coupon|verif|credential|auth|activation|recovery|ticket|\bkey\b|_key\b|signing|one_?time|captcha|\biv\b)"
)
_PASSWORD = re.compile(r"(?i)passw|pwd|passphrase|credential|\bpin\b")
_WEAK_CIPHERS = (
    "DES",
    "DES3",
    "TripleDES",
    "ARC4",
    "ARC2",
    "Blowfish",
    "IDEA",
    "CAST5",
    "SEED",
    "RC4",
    "XOR",
)
_MIN_PBKDF2 = 100_000
_MIN_BCRYPT = 10

_M_HASH = "This hash function is broken: use SHA-256 or better."
_M_PASSWORD = (
    "A fast hash of a password is guessed quickly: use argon2id, scrypt, bcrypt or PBKDF2."  # noqa: S105
)
_M_CIPHER = "This cipher is broken or outdated: use AES-GCM or ChaCha20-Poly1305."
_M_MODE = "ECB shows equal blocks: use an authenticated mode such as GCM."
_M_IV = "A fixed IV or nonce makes messages comparable: draw a fresh one for every message."
_M_RANDOM = "The generator is predictable: use the secrets module."
_M_KEY = "The key can be read in the source: load it from a secret store."
_M_TLS = "This protocol version is outdated: require TLS 1.2 or newer."
_M_COST = "A low cost is guessed quickly: use at least 10."
_M_SIZE = "The key is too short: RSA and DSA need 2,048 bits, elliptic curves 256."


At = Callable[[Rule, str], Finding]
_NO_SECURITY = re.compile(
    r"(?i)cache|etag|checksum|fingerprint|bucket|dedup|file_?hash|content_?hash|short_?id|colou?r|shard|ws_?key|websocket|template|\bname\b"
)
"""Names around hashes that protect nothing, or that a protocol prescribes."""


def rule_for_hash(file: SourceFile, call: ast.Call, around: str) -> Finding:
    """A broken hash function; a note only where its names say that it protects nothing."""
    harmless = _NO_SECURITY.search(around)
    return HASH.at(
        file,
        call.lineno,
        _M_HASH,
        end_line=call.end_lineno,
        severity=Severity.LOW if harmless else None,
    )


_CRYPTO_CALLS = re.compile(
    r"Cipher|ciphers|\.modes\.|Fernet$|AESGCM|ChaCha20|encrypt$|decrypt$|generate$|generate_private_key$|newkeys$"
    r"|[pP][bB][kK][dD][fF]2|[sS]crypt$|hashpw$|hash_secret_raw$"
)


def _python(module: PythonModule) -> Iterator[Finding]:
    file = module.file
    context = _Contexts(module)
    for call, name in module.calls:
        last = name.rpartition(".")[2]
        line, end = call.lineno, call.end_lineno

        def at(rule: Rule, message: str, *, line: int = line, end: int | None = end) -> Finding:
            return rule.at(file, line, message, end_line=end)

        digest = last.lower() if name.startswith("hashlib.") else ""
        if name in ("hashlib.new", "hashlib.file_digest", "hmac.new", "hmac.digest"):
            wanted = argument(
                call, 0 if name == "hashlib.new" else 2, "name", "digestmod", "digest"
            )
            text = constant(wanted)
            digest = (
                str(text).lower()
                if isinstance(text, str)
                else module.names.resolve(wanted).rpartition(".")[2]
            )
            if name.startswith("hmac.") and digest == "sha1":
                digest = ""  # HMAC-SHA-1 is not broken
        if re.fullmatch(r"Crypto(dome)?\.Hash\.(MD2|MD4|MD5|SHA1?)\.new", name):
            digest = "md5"
        if name.endswith((".hashes.MD5", ".hashes.SHA1")):
            digest = "md5"
        if digest and not is_false(argument(call, None, "usedforsecurity")):
            around = context.names(call)
            if _PASSWORD.search(around) and not name.startswith("hmac.") and digest in (
                "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512", "blake2b", "blake2s",
            ) and _PASSWORD.search(ast.unparse(call) + context.assigned(call) + context.function(call)):  # fmt: skip
                yield at(PASSWORD_HASH, _M_PASSWORD)
            elif digest in ("md2", "md4", "md5", "sha1", "sha"):
                yield rule_for_hash(file, call, around)
        yield from _ciphers(module, context, call, name, at)
        if name.startswith("random.") and last in (
            "random", "randint", "choice", "choices", "randrange", "getrandbits", "sample", "uniform", "randbytes", "shuffle",
        ) and _SECRET.search(context.assigned(call) + " " + context.function(call)):  # fmt: skip
            yield at(RANDOM, _M_RANDOM)
        if name == "bcrypt.gensalt":
            cost = constant(argument(call, 0, "rounds"))
            if isinstance(cost, int) and cost < _MIN_BCRYPT:
                yield at(ITERATIONS, _M_COST)
        if name == "uuid.uuid1" and _SECRET.search(
            f"{context.assigned(call)} {context.function(call)}"
        ):
            yield at(RANDOM, _M_RANDOM)
        if name == "ssl.SSLContext" or name == "ssl.wrap_socket":
            version = ast.unparse(call)
            if re.search(r"PROTOCOL_(SSLv2|SSLv3|SSLv23_METHOD|TLSv1|TLSv1_1)\b", version):
                yield at(TLS, _M_TLS)
    for node in module.of(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "minimum_version":
            if re.search(r"\.(SSLv3|TLSv1|TLSv1_1|MINIMUM_SUPPORTED)$", ast.unparse(node.value)):
                yield TLS.at(file, node.lineno, _M_TLS)


def _ciphers(
    module: PythonModule, context: "_Contexts", call: ast.Call, name: str, at: At
) -> Iterator[Finding]:
    last = name.rpartition(".")[2]
    if not _CRYPTO_CALLS.search(name):
        return
    constants = context.constants(call)

    def fixed(node: ast.expr | None) -> bool:
        """Whether bytes or text are written down, directly or through a constant."""
        if isinstance(node, ast.Name):
            node = constants.get(node.id, node)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("encode", "fromhex")
        ):
            node = node.args[0] if node.func.attr == "fromhex" and node.args else node.func.value
            return fixed(node)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("bytes", "bytearray")
        ):
            return not node.args or all(isinstance(constant(one), int | bytes) for one in node.args)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return fixed(node.left) or fixed(node.right)
        return isinstance(constant(node), str | bytes)

    if re.fullmatch(r"Crypto(dome)?\.Cipher\.(DES|DES3|ARC4|ARC2|Blowfish|CAST|XOR)\.new", name):
        yield at(CIPHER, _M_CIPHER)
    if (".ciphers.algorithms." in name and last in _WEAK_CIPHERS) or name.endswith(
        ".decrepit.ciphers.algorithms." + last
    ):
        yield at(CIPHER, _M_CIPHER)
    if name.endswith(".modes.ECB") or (
        name.endswith(".new") and re.search(r"\.MODE_ECB\b", ast.unparse(call))
    ):
        yield at(MODE, _M_MODE)
    if re.search(r"\.modes\.(CBC|CTR|GCM|OFB|CFB|CFB8|XTS)$", name) and fixed(
        argument(call, 0, "initialization_vector", "nonce", "tweak")
    ):
        yield at(IV, _M_IV)
    if re.search(r"\.Cipher\.\w+\.new$", name):
        iv = argument(call, 2, "iv", "IV", "nonce", "initial_value")
        if fixed(iv):
            yield at(IV, _M_IV)
        if fixed(argument(call, 0, "key")):
            yield at(KEY, _M_KEY)
    if name.endswith((".algorithms.AES", ".algorithms.ChaCha20")) or last in (
        "Fernet",
        "AESGCM",
        "ChaCha20Poly1305",
    ):
        if fixed(argument(call, 0, "key")):
            yield at(KEY, _M_KEY)
    if (
        last in ("encrypt", "decrypt")
        and len(call.args) == 3
        and fixed(call.args[0])
        and "GCM" in module.file.text
    ):
        yield at(IV, _M_IV)
    if last in ("generate", "generate_private_key", "newkeys"):
        bits = constant(
            argument(call, 1 if last == "generate_private_key" else 0, "bits", "key_size", "nbits")
        )
        if (
            isinstance(bits, int)
            and not isinstance(bits, bool)
            and bits < 2048
            and re.search(r"(?i)rsa|dsa|dh\b", name)
        ):
            yield at(SIZE, _M_SIZE)
        if last == "generate_private_key" and re.search(
            r"SECP192R1|SECT163|SECP160|BrainpoolP160", ast.unparse(call)
        ):
            yield at(SIZE, _M_SIZE)
    if last in ("pbkdf2_hmac", "PBKDF2", "PBKDF2HMAC"):
        count = argument(call, {"pbkdf2_hmac": 3, "PBKDF2": 3}.get(last, 3), "iterations", "count")
        if isinstance(count, ast.Name):
            count = constants.get(count.id, count)
        number = constant(count)
        if isinstance(number, int) and number < _MIN_PBKDF2:
            yield at(
                ITERATIONS, f"{number:,} iterations are guessed quickly: use 600,000 for SHA-256."
            )
    if last in (
        "pbkdf2_hmac",
        "PBKDF2",
        "PBKDF2HMAC",
        "scrypt",
        "Scrypt",
        "hashpw",
        "hash_secret_raw",
    ):
        salt = argument(call, {"pbkdf2_hmac": 2, "PBKDF2HMAC": 2}.get(last, 1), "salt")
        if fixed(salt):
            yield at(
                SALT, "A fixed salt lets one table serve all passwords: draw a random one for each."
            )


class _Contexts:
    """The names around a call: of its function and of what its result is assigned to."""

    def __init__(self, module: PythonModule) -> None:
        self._module = module
        self._constants: dict[ast.AST | None, dict[str, ast.expr]] = {None: {}}

    def function(self, call: ast.Call) -> str:
        """Name of the innermost function, or empty."""
        function = self._module.function_of(call)
        return "" if function is None else function.name

    def assigned(self, call: ast.Call) -> str:
        """Text of the targets and keywords that the call's result becomes part of."""
        texts: list[str] = []
        node = self._module.parents.get(call)
        while node is not None and not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ):
            if isinstance(node, ast.Assign):
                texts += [ast.unparse(one)[:100] for one in node.targets]
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
                texts.append(ast.unparse(node.target)[:100])
            elif isinstance(node, ast.keyword):
                texts.append(node.arg or "")
            if isinstance(node, ast.stmt):
                break
            node = self._module.parents.get(node)
        return " ".join(texts)

    def names(self, call: ast.Call) -> str:
        """All of it, with the call."""
        return f"{self.function(call)} {self.assigned(call)} {ast.unparse(call)[:300]}"

    def constants(self, call: ast.Call) -> dict[str, ast.expr]:
        """What names mean at a call: the only assignment of its function, or of the module."""
        function = self._module.function_of(call)
        if function is None:
            return self._module.constants
        if function not in self._constants:
            self._constants[function] = self._of_function(function)
        return self._constants[function]

    def _of_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr]:
        own: dict[str, list[ast.expr]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                if isinstance(node.targets[0], ast.Name):
                    own.setdefault(node.targets[0].id, []).append(node.value)
        taken = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)} | set(own)
        found = {name: value for name, value in self._module.constants.items() if name not in taken}
        return found | {name: values[0] for name, values in own.items() if len(values) == 1}


_JAVA_RANDOM = r"(^|\.)(nextInt|nextLong|nextBytes|nextDouble)$"
_CALLS = (
    CallRule(JAVASCRIPT, r"(^|\.)(createHash|createHmac)$", HASH, _M_HASH, r"^['\"](md5|sha1|md4|ripemd160)['\"]"),
    CallRule(JAVASCRIPT, r"(^|\.)(createCipheriv|createDecipheriv)$", CIPHER, _M_CIPHER, r"(?i)^['\"`](des|rc4|bf|rc2|des-ede)"),
    CallRule(JAVASCRIPT, r"(^|\.)(createCipheriv|createDecipheriv)$", MODE, _M_MODE, r"(?i)^['\"`][\w-]+-ecb"),
    CallRule(JAVASCRIPT, r"(^|\.)(createCipher|createDecipher)$", CIPHER, "createCipher derives the key with MD5 and no salt: use createCipheriv.", r"."),
    CallRule(JAVASCRIPT, r"(^|\.)createCipheriv$", IV, _M_IV, r"Buffer\.alloc\(\s*(12|16)\s*(,\s*0\s*)?\)|Buffer\.from\(\s*['\"][^'\"]+['\"][^)]*\)\s*$"),
    CallRule(JAVASCRIPT, r"CryptoJS\.(MD5|SHA1)$", HASH, _M_HASH),
    CallRule(JAVASCRIPT, r"CryptoJS\.(DES|TripleDES|RC4|Rabbit)\.encrypt$", CIPHER, _M_CIPHER),
    CallRule(JAVASCRIPT, r"(^|\.)pbkdf2(Sync)?$", ITERATIONS, "Too few iterations: use 600,000 for SHA-256.", r"^[^,]+,[^,]+,\s*\d{1,5}\s*,"),
    CallRule(JAVASCRIPT, r"(^|\.)generateKeyPair(Sync)?$", SIZE, _M_SIZE, r"modulusLength\s*:\s*(512|768|1024|1536)\b"),
    CallRule(JAVASCRIPT, r"(^|\.)bcrypt(js)?\.(hash|hashSync|genSalt|genSaltSync)$|(^|\.)genSalt(Sync)?$", ITERATIONS, _M_COST, r"(^|,)\s*[1-9]\s*(,|$)"),
    CallRule(("go",), r"bcrypt\.GenerateFromPassword$", ITERATIONS, _M_COST, r",\s*([1-9]|bcrypt\.MinCost)$"),
    CallRule(("rust",), r"bcrypt::hash(_with_result)?$", ITERATIONS, _M_COST, r",\s*[1-9]$"),
    CallRule(("go",), r"^(md5|sha1)\.(New|Sum)$", HASH, _M_HASH),
    CallRule(("go",), r"^(des\.New(TripleDES)?Cipher|rc4\.NewCipher|blowfish\.NewCipher)$", CIPHER, _M_CIPHER),
    CallRule(("go",), r"^cipher\.New(CBCEncrypter|CTR|OFB|CFBEncrypter)$", IV, _M_IV, r"\[\]byte\(\s*\"|make\(\[\]byte"),
    CallRule(("go",), r"^rsa\.GenerateKey$", SIZE, _M_SIZE, r",\s*(512|768|1024|1536)$"),
    CallRule(("go",), r"^pbkdf2\.Key$", ITERATIONS, "Too few iterations: use 600,000 for SHA-256.", r"^[^,]+,[^,]+,\s*\d{1,5}\s*,"),
    CallRule(("rust",), r"(^|::)(md5::compute|Md5::(new|digest)|Sha1::(new|digest)|sha1::Sha1::\w+)$", HASH, _M_HASH),
    CallRule(("rust",), r"(^|::)(Des|TdesEde3|Rc4|Blowfish)::new(_from_slice)?$", CIPHER, _M_CIPHER),
    CallRule(("rust",), r"Rsa::generate$|RsaPrivateKey::new$", SIZE, _M_SIZE, r"\b(512|768|1024|1536)$"),
    CallRule(("java",), r"MessageDigest\.getInstance$", HASH, _M_HASH, r"(?i)\"(md2|md5|sha-?1)\""),
    CallRule(("java",), r"Cipher\.getInstance$", CIPHER, _M_CIPHER, r"(?i)\"(des|desede|rc4|arcfour|blowfish|rc2)\b"),
    CallRule(("java",), r"Cipher\.getInstance$", MODE, _M_MODE, r"(?i)\"aes(/ecb/[^\"]*)?\""),
    CallRule(("java",), r"^IvParameterSpec$", IV, _M_IV, r"\".*\"\.getBytes|new byte\[\s*\d+\s*\]"),
    CallRule(("java",), r"^SecretKeySpec$", KEY, _M_KEY, r"\"[^\"]+\"\.getBytes"),
    CallRule(("java",), r"\.initialize$", SIZE, _M_SIZE, r"^(512|768|1024|1536)$"),
    CallRule(("java",), r"SSLContext\.getInstance$", TLS, _M_TLS, r"\"(SSL|SSLv3|TLSv1|TLSv1\.1)\""),
)  # fmt: skip
_LINES = (
    (("go",), re.compile(r"(MinVersion|MaxVersion)\s*[:=]+\s*tls\.(VersionSSL30|VersionTLS10|VersionTLS11)"), TLS, _M_TLS),
    (JAVASCRIPT, re.compile(r"(minVersion|maxVersion|secureProtocol)\s*:\s*['\"](TLSv1(\.1)?|SSLv3_method|TLSv1_method|TLSv1_1_method)['\"]"), TLS, _M_TLS),
    (("nginx",), re.compile(r"^\s*ssl_protocols\b.*\b(SSLv[23]|TLSv1|TLSv1\.1)(\s|;)"), TLS, _M_TLS),
    (("nginx",), re.compile(r"^\s*ssl_ciphers\b.*(?<![!:-])\b(RC4|DES|MD5|NULL|EXPORT)\b"), CIPHER, _M_CIPHER),
)  # fmt: skip


def _lines(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace:
        context.check_cancelled()
        language = "nginx" if file.path.endswith(".conf") else file.language
        for languages, pattern, rule, message in _LINES:
            if language not in languages:
                continue
            for number, line in enumerate(file.lines, 1):
                if len(line) > 1_000 or not pattern.search(line):
                    continue
                yield rule.at(file, number, message)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_modules(workspace, context):
        yield from _python(module)
    yield from matching_calls(_CALLS, workspace, context)
    for file in tree_files(workspace, context):
        yield from predictable_secrets(tree_code(file))
    yield from _lines(workspace, context)


WEAK_CRYPTO = Detector(
    name="weak_crypto",
    description="Finds broken algorithms and modes, short keys, fixed IVs and salts, and predictable secrets.",
    detect=_detect,
    rules=_RULES,
)
