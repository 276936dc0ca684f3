"""Detectors of the security agents."""

from agents.detectors.detector import Detector
from agents.detectors.security.access import ACCESS
from agents.detectors.security.api import API
from agents.detectors.security.archives import ARCHIVES
from agents.detectors.security.authentication import AUTHENTICATION
from agents.detectors.security.bandit_rules import BANDIT
from agents.detectors.security.browser import BROWSER
from agents.detectors.security.bypasses import BYPASSES
from agents.detectors.security.compliance import COMPLIANCE
from agents.detectors.security.configuration import INFRASTRUCTURE, SERVERS, SETTINGS, WORKFLOWS
from agents.detectors.security.dependencies import DEPENDENCIES
from agents.detectors.security.leaked_secrets import SECRETS
from agents.detectors.security.network import NETWORK
from agents.detectors.security.privileges import PRIVILEGES
from agents.detectors.security.regex_backtracking import REGEX_BACKTRACKING
from agents.detectors.security.selections import SELECTIONS
from agents.detectors.security.source_to_sink import SOURCE_TO_SINK
from agents.detectors.security.tree_injection import TREE_INJECTION
from agents.detectors.security.unsafe_memory import UNSAFE_MEMORY
from agents.detectors.security.weak_crypto import WEAK_CRYPTO
from agents.detectors.security.xml_entities import XML_ENTITIES

DETECTORS: tuple[Detector, ...] = (
    ACCESS,
    API,
    ARCHIVES,
    AUTHENTICATION,
    BANDIT,
    BROWSER,
    BYPASSES,
    COMPLIANCE,
    DEPENDENCIES,
    INFRASTRUCTURE,
    NETWORK,
    PRIVILEGES,
    REGEX_BACKTRACKING,
    SECRETS,
    SERVERS,
    SETTINGS,
    SOURCE_TO_SINK,
    TREE_INJECTION,
    UNSAFE_MEMORY,
    WEAK_CRYPTO,
    WORKFLOWS,
    XML_ENTITIES,
    *SELECTIONS,
)
