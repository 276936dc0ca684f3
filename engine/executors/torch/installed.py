"""Whether the torch executor could run here. Imports neither torch nor transformers."""

from importlib.util import find_spec

from engine.api.errors import ModelError

INSTALL = "pip install 'pravaha[torch]'"


def torch_installed() -> bool:
    """Whether everything the executor imports can be found."""
    return all(find_spec(name) is not None for name in ("torch", "transformers", "safetensors"))


def require_torch(reason: str) -> None:
    """Refuse, in one sentence, what needs torch where torch is not installed.

    Args:
        reason: what needs it, as the beginning of the sentence.

    Raises:
        ModelError: torch or transformers cannot be found.
    """
    if not torch_installed():
        raise ModelError(f"{reason}, which is not installed: {INSTALL}.")
