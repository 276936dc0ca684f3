"""Settings of the HTTP server."""

import ipaddress
from dataclasses import dataclass

from engine.api.tools import CallFormName, ToolDecision

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_UPLOAD_BYTES = 512 * 1024 * 1024
MAX_IMAGE_BYTES = 20 * 1024 * 1024
DRAIN_S = 30.0
RESUME_S = 30.0
KEEP_ALIVE_S = 2.0


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Server settings; changing one takes a restart.

    Attributes:
        host: address to bind. Any address but loopback needs `api_key`.
        port: TCP port; 0 takes a free one.
        api_key: the bearer key that every route but the probes requires; None requires none.
        allowed_hosts: further names a `Host` header may carry while bound to loopback.
        cors_origins: origins of the web pages that may read answers, as browsers send them; `*` is any page.
        tool_call_form: the form in which the model writes calls of tools; `auto` is that of its template.
        tool_decision: who decides whether an answer calls a tool; a request may say otherwise.
        strict_fields: refuse unknown request fields instead of ignoring and counting them.
        max_body_bytes: largest request body, but for uploads and images.
        max_image_bytes: largest sum of the images of a request, before base64.
        max_upload_bytes: largest body of an upload of a file.
        body_timeout_s: seconds a client may take to send its body.
        max_choices: largest `n`, and the largest number of prompts times `n`.
        keep_alive_s: seconds of silence in a stream before a comment line is sent.
        drain_s: seconds that running requests get after the first SIGTERM.
        resume_s: seconds that a `resumable` request goes on without its client.
        stall_s: seconds without an engine step, with work to do, before `/ready` says no.
        sandbox_layers: the active layers around agents' commands; `/ready` says no if there are none. None
            if agents execute nothing here, or the sandbox is off.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    strict_fields: bool = False
    tool_call_form: CallFormName = "auto"
    tool_decision: ToolDecision = "auto"
    max_body_bytes: int = MAX_BODY_BYTES
    max_image_bytes: int = MAX_IMAGE_BYTES
    max_upload_bytes: int = MAX_UPLOAD_BYTES
    body_timeout_s: float = 30.0
    max_choices: int = 64
    keep_alive_s: float = KEEP_ALIVE_S
    drain_s: float = DRAIN_S
    resume_s: float = RESUME_S
    stall_s: float = 60.0
    sandbox_layers: tuple[str, ...] | None = None

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a bind address is reachable from this machine only.

    Names other than `localhost` count as public, because their addresses may change.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
