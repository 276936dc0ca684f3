"""`format_name`: what a model's files are, in a phrase, from config.json alone."""

from pathlib import Path

from engine.api.errors import ModelError
from engine.files.json_file import read_json
from engine.models.quantization import read_quantization


def format_name(path: Path) -> str:
    """`GGUF`, `safetensors`, or how a checkpoint is quantised; empty if that cannot be read."""
    if not path.is_dir():
        return "GGUF" if path.exists() else ""
    try:
        quantization = read_quantization(read_json(path / "config.json"))
    except ModelError:
        return ""
    return "safetensors" if quantization is None else quantization.title
