"""Checks whether torch and transformers are installed, without importing them."""

from importlib.util import find_spec

from engine.api.errors import ModelError

INSTALL = "pip install 'pravaha[torch]'"


def torch_installed() -> bool:
    """Whether all packages that the torch executor imports are installed."""
    return all(find_spec(name) is not None for name in ("torch", "transformers", "safetensors"))


def pillow_installed() -> bool:
    """Whether Pillow is installed, which decodes images."""
    return find_spec("PIL") is not None


def can_see_images() -> bool:
    """Whether the torch executor can run a model with its vision tower."""
    return torch_installed() and pillow_installed()


def require_torch(reason: str) -> None:
    """Raise if torch is not installed.

    Args:
        reason: the beginning of the error's sentence: what needs torch.

    Raises:
        ModelError: torch, transformers or safetensors is not installed.
    """
    if not torch_installed():
        raise ModelError(f"{reason}, which is not installed: {INSTALL}.")
