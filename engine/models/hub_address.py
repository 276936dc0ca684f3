"""Addresses of a Hugging Face hub as people copy them from a browser or from documentation."""

import os
import re
from urllib.parse import parse_qs, unquote, urlsplit

from engine.api.errors import ModelError
from engine.models.gguf_parts import part_names
from engine.models.hub_id import HubId, checked_choice, checked_revision, parse_hub_id
from engine.models.hub_path import printable

_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_WITHOUT_SCHEME = re.compile(r"(?:www\.)?(?:huggingface\.co|hf\.co)/", re.IGNORECASE)
_OTHER_KINDS = {"datasets": "a data set", "spaces": "a space", "collections": "a collection"}
_FOLDERS = frozenset({"tree"})
_FILES = frozenset({"blob", "resolve", "raw", "edit", "blame"})


def parse_hub_address(text: str) -> HubId | None:
    """The model that an address of a hub names; None for any other text.

    `https://huggingface.co/org/name`, `/tree/main/FOLDER`, `/blob/main/FILE`,
    `/resolve/main/FILE?download=true`, `hf.co/org/name:CHOICE` and `hf://org/name/FILE`; the host of
    `HF_ENDPOINT` is a hub, too. A file that is no GGUF file stands for the whole repository.

    Raises:
        ModelError: it is an address of a hub, but not of a model.
    """
    text = text.strip()
    if _WITHOUT_SCHEME.match(text):
        text = f"https://{text}"
    scheme, separator, rest = text.partition("://")
    if not separator:
        return None
    if scheme.lower() == "hf":
        return _of_path(text, rest.removeprefix("models/").split("/"), query="")
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").lower()
    except ValueError:
        return None
    if scheme.lower() not in ("http", "https") or host not in _HOSTS | _endpoint_hosts():
        return None
    return _of_path(text, parts.path.strip("/").split("/"), query=parts.query)


def _endpoint_hosts() -> set[str]:
    endpoint = os.environ.get("HF_ENDPOINT")
    host = urlsplit(endpoint).hostname if endpoint else None
    return {host} if host else set()


def _of_path(text: str, segments: list[str], *, query: str) -> HubId:
    names = [unquote(segment) for segment in segments if segment]
    if names and names[0] in _OTHER_KINDS:
        raise ModelError(
            f"{printable(text)} is the address of {_OTHER_KINDS[names[0]]}, not of a model."
        )
    hub_id = parse_hub_id("/".join(names[:2]))
    if hub_id is None:
        raise ModelError(
            f"{printable(text)} does not name a model: an address of one begins with the hub's name, "
            "followed by OWNER/NAME."
        )
    view, rest = (names[2] if len(names) > 2 else ""), names[3:]
    if text.lower().startswith("hf://"):
        return _with_file(hub_id, names[2:], "")
    if view in _FILES and len(rest) > 1:
        return _with_file(hub_id, rest[1:], rest[0])
    if view in _FOLDERS and rest:
        choice = "/".join(rest[1:])
        return _with(hub_id, choice, rest[0])
    shown = parse_qs(query).get("show_file_info", [""])[0]  # the hub's page about a GGUF file
    return _with_file(hub_id, shown.split("/"), "") if shown else hub_id


def _with_file(hub_id: HubId, path: list[str], revision: str) -> HubId:
    file = "/".join(path)
    return _with(hub_id, file if file.lower().endswith(".gguf") else hub_id.choice, revision)


def _with(hub_id: HubId, choice: str, revision: str) -> HubId:
    revision = hub_id.revision if revision in ("", "main") else checked_revision(revision)
    choice = part_names(checked_choice(hub_id.repository, choice))[0] if choice else ""
    return HubId(hub_id.repository, choice, revision)
