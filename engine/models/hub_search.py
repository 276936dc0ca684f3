"""Search for models in GGUF on a Hugging Face hub, and the choices that a repository offers.

`HF_ENDPOINT` selects another hub. Every call waits for the network.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.api.error_text import first_line
from engine.api.errors import FetchError
from engine.models.gguf_parts import model_stem
from engine.models.hub_files import gguf_models
from engine.models.hub_id import HubId, parse_hub_id

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MAX_FOUND = 50
_TIMEOUT_S, _SEARCH_TIMEOUT_S = 30, 15


@dataclass(frozen=True, slots=True)
class FoundRepository:
    """A repository that was found.

    Attributes:
        repository: `org/name`.
        downloads: in the last 30 days.
        gated: whether its terms must be accepted first.
    """

    repository: str
    downloads: int
    gated: bool


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A model of a repository: a GGUF file, or all parts of one.

    Attributes:
        hub_id: `ModelStore.add` takes it.
        title: its name without what it repeats of the repository's.
        size: bytes of all its parts.
    """

    hub_id: str
    title: str
    size: int


def search_hub(words: str) -> Sequence[FoundRepository]:
    """The repositories with GGUF files whose names contain the words, the most downloaded first.

    Raises:
        FetchError: the hub cannot be reached.
    """
    from huggingface_hub.utils._headers import build_hf_headers
    from huggingface_hub.utils._http import get_session, hf_raise_for_status

    # Not `HfApi.list_models`, which repeats an unanswered request for half a minute.
    parameters: dict[str, Any] = {
        "search": words,
        "filter": "gguf",
        "sort": "downloads",
        "limit": MAX_FOUND,
        "expand": ["downloads", "gated"],
    }
    try:
        answer = get_session().get(
            f"{_api().endpoint}/api/models",
            params=parameters,
            headers=build_hf_headers(),
            timeout=_SEARCH_TIMEOUT_S,
        )
        hf_raise_for_status(answer)
        return tuple(_found(answer.json()))
    except Exception as error:  # huggingface_hub also raises its HTTP library's errors
        raise FetchError(f"The hub cannot be searched: {first_line(error)}.") from error


def _found(answer: Any) -> Iterator[FoundRepository]:
    """The repositories in an answer of the hub; entries that name none are left out.

    Raises:
        ValueError: it is no list.
    """
    if not isinstance(answer, list):
        raise ValueError("its answer is no list of models")
    for one in answer[:MAX_FOUND]:
        if isinstance(one, dict) and _is_id(one.get("id")):
            count = one.get("downloads")
            downloads = count if isinstance(count, int) else 0
            yield FoundRepository(one["id"], max(downloads, 0), bool(one.get("gated")))


def list_files(repository: str) -> Sequence[FoundFile]:
    """The models in GGUF of a repository, the smallest first.

    Raises:
        FetchError: there is no such repository, it has no such files, or the hub cannot be reached.
    """
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        info = _api().model_info(repository, files_metadata=True, timeout=_TIMEOUT_S)
    except GatedRepoError as error:
        raise FetchError(
            f"{repository} is gated: accept its terms on its page and set a token in HF_TOKEN."
        ) from error
    except RepositoryNotFoundError as error:
        raise FetchError(f"The hub has no model {repository}, or it is private.") from error
    except Exception as error:
        raise FetchError(f"{repository} cannot be read: {first_line(error)}.") from error
    sizes = {one.rfilename: one.size or 0 for one in info.siblings or ()}
    found = [
        FoundFile(str(HubId(repository, path)), model_stem(path), size)
        for path, size in gguf_models(sizes).items()
    ]
    if not found:
        raise FetchError(f"{repository} has no GGUF files.")
    return tuple(sorted(found, key=lambda one: one.size))


def _api() -> "HfApi":
    from huggingface_hub import HfApi  # costs 0.3 s to import

    return HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)


def _is_id(text: object) -> bool:
    """Whether a name that the hub sent is that of a repository."""
    found = parse_hub_id(text) if isinstance(text, str) else None
    return found is not None and not found.choice
