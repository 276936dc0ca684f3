"""A Hugging Face model directory: its `ModelSpec`, read from config.json, and its weight files.

Only safetensors and JSON files are read. Pickled checkpoints and custom code (`auto_map`) are rejected.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from engine.api.errors import ModelError, UnsupportedByNativeError
from engine.files.fields import Fields
from engine.files.json_file import read_json
from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.registry import CHECKPOINT_FAMILIES, CLASSES
from engine.models.quantization import read_quantization
from engine.models.safetensors_header import NATIVE_DTYPES, TensorEntry, read_header
from engine.models.spec import ModelSpec

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def read_spec(config: Fields, tensors: Mapping[str, TensorEntry]) -> ModelSpec:
    """The `ModelSpec` of a config.json and its tensors, those of a quantised one by `Quantization.matrices`.

    Raises:
        UnsupportedByNativeError: the native executor does not support the model.
        ModelError: a field is missing or damaged.
    """
    refuse_code(config)
    kind = config.text("model_type")
    classes = config.texts("architectures") if "architectures" in config else []
    family = CHECKPOINT_FAMILIES.get(kind)
    read = None if family is None else family.read_checkpoint
    if family is None or read is None or (classes and classes != [CLASSES[kind]]):
        described = kind[:80] if family is None else ", ".join(classes)[:80]
        raise UnsupportedByNativeError(
            f"{config.source} describes a {described!r} model, which the native executor does not "
            f"support (supported: {', '.join(CLASSES.values())})."
        )
    shapes = {name: entry.shape for name, entry in tensors.items()}
    spec = read(CheckpointHeader(family.name, config, shapes))
    quantization = read_quantization(config)
    return spec if quantization is None else replace(spec, quantization=quantization.scheme)


def weight_files(directory: Path) -> tuple[Path, ...]:
    """The safetensors files of a model directory, shards in name order.

    Raises:
        ModelError: there are none, or the index names a file that is missing or in another directory.
    """
    index = directory / INDEX_FILE
    if index.is_file():
        weight_map = read_json(index).mapping("weight_map")
        names = sorted(weight_map.string_values()) if weight_map is not None else []
        if not names:
            raise ModelError(f"{index} names no weight files.")
        for name in names:
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise ModelError(
                    f"{index} names {name!r}, which is not a safetensors file of this directory."
                )
            if not (directory / name).is_file():
                raise ModelError(f"{directory} has no {name}, which its index names.")
        return tuple(directory / name for name in names)
    single = directory / SINGLE_FILE
    if single.is_file():
        return (single,)
    if any(any(directory.glob(pattern)) for pattern in _PICKLED):
        raise ModelError(
            f"{directory} contains a pickled checkpoint, which can run code when loaded: "
            "use its safetensors version."
        )
    raise ModelError(f"{directory} contains neither {SINGLE_FILE} nor {INDEX_FILE}.")


def read_tensors(
    paths: tuple[Path, ...], *, known: Mapping[str, int] = NATIVE_DTYPES
) -> dict[str, TensorEntry]:
    """Every tensor of the files, by name.

    Args:
        paths: the files.
        known: supported element types, and their size in bytes.

    Raises:
        UnsupportedByNativeError: a tensor has an element type that is not in `known`.
        ModelError: a file is missing or damaged, or two files contain the same tensor.
    """
    tensors: dict[str, TensorEntry] = {}
    for path in paths:
        for name, entry in read_header(path, known=known).items():
            if name in tensors:
                raise ModelError(f"{path} contains {name[:80]}, which another file contains too.")
            tensors[name] = entry
    return tensors


def refuse_code(config: Fields) -> None:
    """Reject a config with custom Python code (`auto_map`), for every executor.

    Raises:
        ModelError: the config has an `auto_map`.
    """
    if "auto_map" in config:
        raise ModelError(f"{config.source} requires custom code (auto_map), which is never run.")
