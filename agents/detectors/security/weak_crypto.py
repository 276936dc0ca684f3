"""The detector `weak_crypto`: broken algorithms, modes without protection, short keys, fixed IVs and predictable secrets."""

import ast
import re
from collections.abc import Callable, Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import PythonModule
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.python_names import argument, constant, is_false
from agents.detectors.rule_file import RuleFile
from agents.detectors.security.pattern_rules import PatternRule, matching_calls, matching_lines
from agents.detectors.security.predictable_random import predictable_secrets
from agents.detectors.security.tree_code import tree_code, tree_files
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

RULES = RuleFile(__file__, "weak_crypto", entry=PatternRule)
_SECRET = re.compile(
    r"(?i)(token|secret|passw(or)?d|passcode|otp|\bpin\b|_pin|nonce|salt|api_?key|session|csrf|reset|invite|voucher"
    r"|coupon|verif|credential|auth|activation|recovery|ticket|\bkey\b|_key\b|signing|one_?time|captcha|\biv\b)"
)
_PASSWORD = re.compile(r"(?i)passw|pwd|passphrase|credential|\bpin\b")
_WEAK_CIPHERS = (
    "DES", "DES3", "TripleDES", "ARC4", "ARC2", "Blowfish", "IDEA", "CAST5", "SEED", "RC4", "XOR",
)  # fmt: skip
_MIN_PBKDF2 = 100_000
_MIN_BCRYPT = 10

At = Callable[..., Finding]
_NO_SECURITY = re.compile(
    r"(?i)cache|etag|checksum|fingerprint|bucket|dedup|file_?hash|content_?hash|short_?id|colou?r|shard|ws_?key|websocket|template|\bname\b"
)
"""Names around hashes that protect nothing, or that a protocol prescribes."""


def rule_for_hash(file: SourceFile, call: ast.Call, around: str) -> Finding:
    """A broken hash function; a note only where its names say that it protects nothing."""
    harmless = _NO_SECURITY.search(around)
    return RULES["weak-hash"].at(
        file, call.lineno, end_line=call.end_lineno, severity=Severity.LOW if harmless else None
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

        def at(rule: str, message: str = "", *, line: int = line, end: int | None = end) -> Finding:
            return RULES[rule].at(file, line, message, end_line=end)

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
                yield at("fast-password-hash")
            elif digest in ("md2", "md4", "md5", "sha1", "sha"):
                yield rule_for_hash(file, call, around)
        yield from _ciphers(module, context, call, name, at)
        if name.startswith("random.") and last in (
            "random", "randint", "choice", "choices", "randrange", "getrandbits", "sample", "uniform", "randbytes", "shuffle",
        ) and _SECRET.search(context.assigned(call) + " " + context.function(call)):  # fmt: skip
            yield at("predictable-random")
        if name == "bcrypt.gensalt":
            cost = constant(argument(call, 0, "rounds"))
            if isinstance(cost, int) and cost < _MIN_BCRYPT:
                yield at("few-iterations")
        if name == "uuid.uuid1" and _SECRET.search(
            f"{context.assigned(call)} {context.function(call)}"
        ):
            yield at("predictable-random")
        if name == "ssl.SSLContext" or name == "ssl.wrap_socket":
            version = ast.unparse(call)
            if re.search(r"PROTOCOL_(SSLv2|SSLv3|SSLv23_METHOD|TLSv1|TLSv1_1)\b", version):
                yield at("weak-tls")
    for node in module.of(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "minimum_version":
            if re.search(r"\.(SSLv3|TLSv1|TLSv1_1|MINIMUM_SUPPORTED)$", ast.unparse(node.value)):
                yield RULES["weak-tls"].at(file, node.lineno)


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
        yield at("weak-cipher")
    if (".ciphers.algorithms." in name and last in _WEAK_CIPHERS) or name.endswith(
        ".decrepit.ciphers.algorithms." + last
    ):
        yield at("weak-cipher")
    if name.endswith(".modes.ECB") or (
        name.endswith(".new") and re.search(r"\.MODE_ECB\b", ast.unparse(call))
    ):
        yield at("ecb-mode")
    if re.search(r"\.modes\.(CBC|CTR|GCM|OFB|CFB|CFB8|XTS)$", name) and fixed(
        argument(call, 0, "initialization_vector", "nonce", "tweak")
    ):
        yield at("fixed-iv")
    if re.search(r"\.Cipher\.\w+\.new$", name):
        iv = argument(call, 2, "iv", "IV", "nonce", "initial_value")
        if fixed(iv):
            yield at("fixed-iv")
        if fixed(argument(call, 0, "key")):
            yield at("hardcoded-key")
    if name.endswith((".algorithms.AES", ".algorithms.ChaCha20")) or last in (
        "Fernet",
        "AESGCM",
        "ChaCha20Poly1305",
    ):
        if fixed(argument(call, 0, "key")):
            yield at("hardcoded-key")
    if (
        last in ("encrypt", "decrypt")
        and len(call.args) == 3
        and fixed(call.args[0])
        and "GCM" in module.file.text
    ):
        yield at("fixed-iv")
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
            yield at("short-key")
        if last == "generate_private_key" and re.search(
            r"SECP192R1|SECT163|SECP160|BrainpoolP160", ast.unparse(call)
        ):
            yield at("short-key")
    if last in ("pbkdf2_hmac", "PBKDF2", "PBKDF2HMAC"):
        count = argument(call, {"pbkdf2_hmac": 3, "PBKDF2": 3}.get(last, 3), "iterations", "count")
        if isinstance(count, ast.Name):
            count = constants.get(count.id, count)
        number = constant(count)
        if isinstance(number, int) and number < _MIN_PBKDF2:
            yield at(
                "few-iterations",
                f"{number:,} iterations are guessed quickly: use 600,000 for SHA-256.",
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
            yield at("fixed-salt")


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
        node = self._module.parent.get(call)
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
            node = self._module.parent.get(node)
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


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for module in python_files(workspace, context):
        yield from _python(module)
    yield from matching_calls(RULES, workspace, context)
    for file in tree_files(workspace, context):
        yield from predictable_secrets(tree_code(file), RULES["predictable-random"])
    yield from matching_lines(RULES, workspace, context)


WEAK_CRYPTO = Detector(
    name="weak_crypto",
    description="Finds broken algorithms and modes, short keys, fixed IVs and salts, and predictable secrets.",
    detect=_detect,
    rules=RULES,
)
