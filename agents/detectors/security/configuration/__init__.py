"""Settings files: what their lines switch on and off, by the program that reads them."""

from agents.detectors.security.configuration.infrastructure import INFRASTRUCTURE
from agents.detectors.security.configuration.servers import SERVERS
from agents.detectors.security.configuration.settings import SETTINGS
from agents.detectors.security.configuration.workflows import WORKFLOWS

__all__ = ["INFRASTRUCTURE", "SERVERS", "SETTINGS", "WORKFLOWS"]
