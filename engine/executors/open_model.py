"""`open_model`: reads everything but the weights of a GGUF file or a safetensors directory.

Only headers and the vocabulary are read. The executor maps the weights in `paths`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from engine._core import GgufFile
from engine.api.config import EngineConfig, KvDtype
from engine.api.errors import ModelError, UnsupportedByNativeError
from engine.api.generation_defaults import GenerationDefaults
from engine.executors.memory_plan import MemoryPlan, plan_native, plan_onnx, plan_torch
from engine.executors.native_settings import reject_torch_settings
from engine.executors.onnx.installed import require_onnx
from engine.executors.onnx.settings import reject_settings
from engine.executors.torch.installed import can_see_images, require_torch
from engine.files.fields import Fields
from engine.files.json_file import read_json
from engine.models import generation_config, gguf, safetensors
from engine.models.demo import recorded_defaults
from engine.models.families.gguf_rope import ROPE_TABLES
from engine.models.families.model_header import MAX_HEAD_DIM
from engine.models.gguf_parts import model_stem, part_paths
from engine.models.onnx_folder import is_onnx, read_onnx_folder
from engine.models.onnx_spec import OnnxSpec
from engine.models.quantization import QUANTIZED_DTYPES, read_quantization
from engine.models.safetensors_header import ALL_DTYPES, NATIVE_DTYPES, TensorEntry
from engine.models.spec import ModelSpec
from engine.models.transformers_spec import TransformersSpec
from engine.text import gguf_vocabulary, tokenizer_json
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # it imports torch
    from engine.executors.torch.image_processor import ImageProcessor

_MAGIC = b"GGUF"
_PICKLED = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"})


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A model that is ready to be loaded.

    Attributes:
        name: the name in the file's metadata, else the file's name.
        spec: shapes and constants; its class determines the executor.
        paths: weight files; empty with dummy weights.
        tokenizer: its tokenizer.
        weight_format: element type of most parameters, such as `Q4_1`, or `Quantization.title`.
        parameters: number of weights.
        file_bytes: size of the weight files.
        weight_bytes: bytes of the stored weights, of a model in ONNX; 0 for any other.
        generation_defaults: the sampling parameters in its files, or our record of the demo model.
        images: processes the images of a model that sees them; None for any other.
        uses_graphs: whether decode steps are to be replayed as CUDA graphs.
    """

    name: str
    spec: ModelSpec | TransformersSpec | OnnxSpec
    paths: tuple[Path, ...]
    tokenizer: Tokenizer
    weight_format: str
    parameters: int
    file_bytes: int
    generation_defaults: GenerationDefaults = field(default_factory=GenerationDefaults)
    images: "ImageProcessor | None" = None
    uses_graphs: bool = False
    weight_bytes: int = 0

    def plan_memory(
        self, config: EngineConfig, *, kv_dtype: KvDtype, max_model_len: int
    ) -> MemoryPlan:
        """The memory that the model's executor will take. Reads headers only.

        Args:
            config: threads, block size and step limits.
            kv_dtype: element type of the KV cache; not `auto`.
            max_model_len: longest sequence.

        Raises:
            ModelError: the executor cannot load these files with this configuration.
        """
        if isinstance(self.spec, ModelSpec):
            return plan_native(
                self.spec, self.paths, config, kv_dtype=kv_dtype, max_model_len=max_model_len
            )
        if isinstance(self.spec, OnnxSpec):
            return plan_onnx(
                self.spec,
                config,
                weight_format=self.weight_format,
                weight_bytes=self.weight_bytes,
                max_model_len=max_model_len,
            )
        return plan_torch(
            self.spec,
            weight_format=self.weight_format,
            parameters=self.parameters,
            file_bytes=self.file_bytes,
            kv_dtype=kv_dtype,
            block_size=config.block_size,
        )


def open_model(path: Path, settings: EngineConfig | None = None) -> OpenModel:
    """Open a GGUF file, a directory with config.json and safetensors, or a model in ONNX.

    Args:
        path: the file or directory; any part of a split GGUF model stands for all, and an ONNX file for the
            model in whose directory it is.
        settings: the engine's settings, which determine the executor; None for default settings.

    Raises:
        ModelError: the model is missing, damaged or unsupported, or the file may contain code.
    """
    settings = settings or EngineConfig(path, path.name)
    if _wants_onnx(path, settings):
        return _open_onnx(path, settings)
    if path.is_dir():
        return _open_directory(path, settings)
    if path.suffix.lower() in _PICKLED:
        raise ModelError(
            f"{path} looks like a pickled checkpoint, which can run code when loaded: "
            "use its safetensors or GGUF version."
        )
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except FileNotFoundError as error:
        raise ModelError(f"There is no model at {path}.") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    if magic != _MAGIC:
        raise ModelError(f"{path} is neither a GGUF file nor an ONNX file nor a model directory.")
    if _wants_torch(settings):
        raise ModelError(
            f"{path} is a GGUF file, which the torch executor does not read: use a safetensors "
            "version, or remove the settings executor, device, dtype, attention and dummy_weights."
        )
    reject_torch_settings(settings)
    return _open_gguf(path)


def _open_gguf(path: Path) -> OpenModel:
    paths = part_paths(path)
    path = paths[0]
    try:
        file = GgufFile(paths)
        tensors = {tensor.name: tensor for tensor in file.tensors}
        present = [name for name in ROPE_TABLES if name in tensors]
        for name in present:
            if prod(tensors[name].shape) > MAX_HEAD_DIM:
                raise ModelError(f"{path} has a damaged {name}.")
        rope_tables = {name: file.dequantize(name).ravel().tolist() for name in present}
    except ValueError as error:
        raise ModelError(str(error)) from error
    metadata, source = file.metadata, str(path)
    for tensor in tensors.values():
        if tensor.dtype not in gguf.SUPPORTED_DTYPES:
            raise ModelError(
                f"{path}: {tensor.name} is stored as {tensor.dtype}, which is not supported "
                f"(known: {', '.join(sorted(gguf.SUPPORTED_DTYPES))})."
            )
    spec = gguf.read_spec(
        metadata,
        {name: tuple(tensor.shape) for name, tensor in tensors.items()},
        source=source,
        rope_tables=rope_tables,
    )
    sizes = [(tensor.dtype, prod(tensor.shape)) for tensor in tensors.values()]
    file_bytes = sum(part.stat().st_size for part in paths)
    defaults = generation_config.read_gguf_defaults(metadata, source=source)
    return OpenModel(
        name=_display_name(Fields(metadata, source=source).optional_text("general.name"), path),
        spec=spec,
        paths=paths,
        tokenizer=gguf_vocabulary.read_tokenizer(
            metadata, source=source, vocab_size=spec.vocab_size
        ),
        weight_format=_prevailing(sizes),
        parameters=sum(count for _, count in sizes),
        file_bytes=file_bytes,
        generation_defaults=defaults
        if defaults.source
        else recorded_defaults(path.name, file_bytes),
    )


def is_encoder(config: Fields) -> bool:
    """Whether a configuration describes a text encoder (BERT) for embeddings."""
    architectures = config.texts("architectures") if config.is_list("architectures") else []
    return config.optional_text("model_type") == "bert" and architectures == ["BertModel"]


def _open_directory(directory: Path, settings: EngineConfig) -> OpenModel:
    """Open a directory for the native executor if it supports the model, else for torch."""
    if not (directory / "config.json").exists():
        _suggest_gguf(directory)
    config = read_json(directory / "config.json")
    safetensors.refuse_code(config)
    if is_encoder(config):
        raise ModelError(
            f"{directory} is a text encoder, which computes embeddings and cannot generate text: "
            "choose another model."
        )
    if _wants_torch(settings):
        return _open_for_torch(directory, config, settings, reason="The torch executor needs torch")
    if settings.executor == "auto" and "vision_config" in config and can_see_images():
        # With torch it sees images; the native executor runs its language model alone.
        try:
            return _open_for_torch(directory, config, settings, reason="Images need torch")
        except ModelError:
            return _open_for_native(directory, config, settings)
    try:
        return _open_for_native(directory, config, settings)
    except UnsupportedByNativeError as error:
        if settings.executor == "native":
            raise
        reason = f"{str(error).rstrip('.')}; the torch executor may run it with torch"
        return _open_for_torch(directory, config, settings, reason=reason)


def _suggest_gguf(directory: Path) -> None:
    """Refuse a directory of GGUF files, each of which is a model of its own or a part of one."""
    first = min(directory.glob("*.gguf"), default=None)
    if first is not None:
        raise ModelError(
            f"{directory} has no config.json: to use one of its GGUF files, give the file, as in {first}."
        )


def _wants_torch(settings: EngineConfig) -> bool:
    """Whether the settings select the torch executor, or need something that only it supports."""
    if settings.executor != "auto":
        return settings.executor == "torch"
    return (
        settings.device == "cuda"
        or settings.dtype != "auto"
        or settings.attention != "auto"
        or settings.kv_dtype == "bf16"
        or settings.cuda_graphs
        or settings.dummy_weights
    )


def _wants_onnx(path: Path, settings: EngineConfig) -> bool:
    """Whether the ONNX executor is to open a path: it is selected, or nothing else could run it.

    Raises:
        ModelError: another executor is selected for a model that is in ONNX only.
    """
    if not path.exists():
        return False  # said by what follows
    if settings.executor == "onnx":
        if path.is_file() and not is_onnx(path):
            raise ModelError(f"{path} is not an ONNX file, which the onnx executor reads.")
        return True
    if not is_onnx(path):
        return False
    if settings.executor != "auto":
        raise ModelError(
            f"{path} is a model in ONNX, which the {settings.executor} executor does not read: leave out "
            "--executor."
        )
    return True


def _open_onnx(path: Path, settings: EngineConfig) -> OpenModel:
    require_onnx(f"{path} is a model in ONNX, which")
    reject_settings(settings)
    folder = read_onnx_folder(path)
    spec = folder.spec
    return OpenModel(
        name=_display_name(folder.config.optional_text("_name_or_path"), folder.directory),
        spec=spec,
        paths=folder.weight_files,
        tokenizer=tokenizer_json.read_tokenizer(
            folder.directory, folder.config, vocab_size=spec.vocab_size
        ),
        weight_format=folder.weight_format,
        parameters=folder.parameters,
        file_bytes=sum(path.stat().st_size for path in folder.weight_files),
        generation_defaults=generation_config.read_onnx_defaults(folder.directory, folder.sampling),
        weight_bytes=folder.weight_bytes,
    )


def _open_for_native(directory: Path, config: Fields, settings: EngineConfig) -> OpenModel:
    reject_torch_settings(settings)
    paths = safetensors.weight_files(directory)
    quantization = read_quantization(config)
    known = NATIVE_DTYPES if quantization is None else QUANTIZED_DTYPES
    tensors = safetensors.read_tensors(paths, known=known)
    if quantization is not None:
        tensors = quantization.matrices(tensors)
    spec = safetensors.read_spec(config, tensors)
    sizes = _sizes(tensors)
    return OpenModel(
        name=_display_name(config.optional_text("_name_or_path"), directory),
        spec=spec,
        paths=paths,
        tokenizer=tokenizer_json.read_tokenizer(directory, config, vocab_size=spec.vocab_size),
        weight_format=_prevailing(sizes) if quantization is None else quantization.title,
        parameters=sum(count for _, count in sizes),
        file_bytes=sum(path.stat().st_size for path in paths),
        generation_defaults=generation_config.read_generation_config(directory),
    )


def _open_for_torch(
    directory: Path, config: Fields, settings: EngineConfig, *, reason: str
) -> OpenModel:
    require_torch(reason)
    from engine.executors.torch.backends import uses_graphs
    from engine.executors.torch.opening import read_image_processor, read_spec

    dummy = settings.dummy_weights
    paths = () if dummy else safetensors.weight_files(directory)
    sizes = _sizes(safetensors.read_tensors(paths, known=ALL_DTYPES))
    stored = _prevailing(sizes)
    spec, parameters = read_spec(directory, settings, stored=None if dummy else stored)
    return OpenModel(
        name=_display_name(config.optional_text("_name_or_path"), directory),
        spec=spec,
        paths=paths,
        tokenizer=tokenizer_json.read_tokenizer(directory, config, vocab_size=spec.vocab_size),
        weight_format="dummy" if dummy else stored,
        parameters=parameters,
        file_bytes=sum(path.stat().st_size for path in paths),
        generation_defaults=generation_config.read_generation_config(directory),
        images=read_image_processor(directory, spec),
        uses_graphs=uses_graphs(settings),
    )


def _sizes(tensors: Mapping[str, TensorEntry]) -> list[tuple[str, int]]:
    return [(tensor.dtype, tensor.elements) for tensor in tensors.values()]


def _display_name(declared: str | None, path: Path) -> str:
    """The name in the file's metadata, on one line and shortened; else the path's name."""
    cleaned = " ".join("".join(c if c.isprintable() else " " for c in declared or "").split())
    return cleaned[:100] or (path.name if path.is_dir() else model_stem(path.name))


def _prevailing(sizes: Iterable[tuple[str, int]]) -> str:
    totals: Counter[str] = Counter()
    for dtype, count in sizes:
        totals[dtype] += count
    return totals.most_common(1)[0][0] if totals else "none"
