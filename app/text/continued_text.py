"""What is said about a model without a chat template, whose answers continue the text before them."""

from app.text.safe_text import safe_line
from engine.api.snapshot import ModelInfo


def build_continues(model: ModelInfo) -> str:
    """The sentence."""
    return f"{safe_line(model.name)} has no chat template: it continues text."
