"""Checks whether onnxruntime is installed, without importing it."""

from importlib.util import find_spec

from engine.api.errors import ModelError

INSTALL = "pip install 'pravaha[onnx]'"


def onnx_installed() -> bool:
    """Whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


def require_onnx(reason: str) -> None:
    """Raise if ONNX Runtime is not installed.

    Args:
        reason: the beginning of the error's sentence: what needs it.

    Raises:
        ModelError: it is not installed.
    """
    if not onnx_installed():
        raise ModelError(f"{reason} needs ONNX Runtime, which is not installed: {INSTALL}.")
