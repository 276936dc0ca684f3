"""What agents take from other agents' detectors: findings of some rules, computed once for all."""

from agents.detectors.detector import Detector, selected
from agents.detectors.security.api import API
from agents.detectors.security.authentication import AUTHENTICATION
from agents.detectors.security.browser import BROWSER
from agents.detectors.security.compliance import COMPLIANCE
from agents.detectors.security.configuration import SERVERS, SETTINGS
from agents.detectors.security.network import NETWORK
from agents.detectors.security.privileges import PRIVILEGES
from agents.detectors.security.source_to_sink import SOURCE_TO_SINK
from agents.detectors.security.tree_injection import TREE_INJECTION
from agents.detectors.security.weak_crypto import WEAK_CRYPTO

_REQUESTS = selected(
    "requests_to_data",
    "Finds requests to addresses that a client chooses.",
    ["ssrf", "open-proxy"],
    SOURCE_TO_SINK, TREE_INJECTION, SERVERS,
)  # fmt: skip
_EXPOSURE = selected(
    "exposure",
    "Finds debuggers, plain scripts, forms and interfaces that the network reaches.",
    ["debug-mode", "plain-script", "plain-form", "plain-server", "weak-tls"],
    AUTHENTICATION, SETTINGS, BROWSER, API, WEAK_CRYPTO,
)  # fmt: skip
_CROSS_ORIGIN = selected(
    "cross_origin", "Finds interfaces that every site may read.", ["cors"], NETWORK, SETTINGS
)
_LOGINS = selected(
    "logins",
    "Finds operations without authentication, redirects to strange hosts, and keys in the source.",
    ["operation-without-security", "operation-without-scope", "key-in-query", "open-redirect", "authentication-off",
     "empty-password", "cookie-flags", "csrf-off", "token-algorithms"],
    API, SOURCE_TO_SINK, TREE_INJECTION, SERVERS, SETTINGS,
)  # fmt: skip
_TOKENS = selected(
    "tokens",
    "Finds tokens that are not verified and secrets compared in variable time.",
    ["unverified-token", "token-algorithms", "timing-comparison", "hardcoded-signing-key"],
    AUTHENTICATION,
)
_SHELL_COMMANDS = selected(
    "shell_commands",
    "Finds values that shell scripts evaluate or leave unquoted.",
    ["command-injection", "unquoted-variable"],
    PRIVILEGES,
)
_IMAGES = selected(
    "images", "Finds container images without a fixed version.", ["unpinned-image"], PRIVILEGES
)
_ANSWERS = selected(
    "answers", "Finds secrets and personal data in answers of interfaces.", ["excessive-data"], API
)
_PERSONAL_DATA = selected(
    "personal_data",
    "Finds personal data in files and logs.",
    ["card-number", "bank-account", "personal-data", "personal-data-logged", "card-data-stored"],
    COMPLIANCE,
)
_UNQUOTED = selected(
    "unquoted_variables",
    "Finds shell variables whose empty or spaced value does something else.",
    ["unquoted-variable"],
    PRIVILEGES,
)

SELECTIONS: tuple[Detector, ...] = (
    _REQUESTS, _EXPOSURE, _CROSS_ORIGIN, _LOGINS, _TOKENS, _SHELL_COMMANDS, _IMAGES, _ANSWERS, _PERSONAL_DATA,
    _UNQUOTED,
)  # fmt: skip
