"""`read_onnx_folder`: a model in ONNX, in the layout of onnxruntime-genai, optimum or transformers.js.

| | configuration | graph |
|---|---|---|
| onnxruntime-genai | genai_config.json | the file that it names |
| optimum, transformers.js | config.json | model.onnx, decoder_model_merged.onnx; or in the folder `onnx` |

Only the configuration and the graph's header are read. The weights of a graph may lie in further files,
which must be in its own folder.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.files.json_file import read_json
from engine.models.onnx_header import ELEMENT_NAMES, OnnxHeader, read_onnx_header
from engine.models.onnx_ports import PortNames, read_interface
from engine.models.onnx_spec import OnnxSpec
from engine.models.transformers_spec import KvLayer

GENAI_CONFIG = "genai_config.json"
SUFFIX = ".onnx"

_GRAPHS = ("model.onnx", "decoder_model_merged.onnx")
_FOLDER = "onnx"
_MAX_LISTED = 10
_KNOWN_DOMAINS = frozenset({"", "ai.onnx.ml", "com.microsoft", "com.ms.internal.nhwc"})
"""Domains of the operators that are part of ONNX Runtime."""
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
_MAX_CONTEXT = 1 << 28
_NO_WEIGHTS = frozenset({6, 7, 8, 9, 12, 13})
"""Element types of shapes, indices and names: constants of the graph that no training has made."""


@dataclass(frozen=True, slots=True)
class OnnxFolder:
    """A model in ONNX whose configuration and header were read.

    Attributes:
        directory: where its tokenizer is.
        graph: the ONNX file.
        config: the configuration that names its special tokens.
        sampling: `search` of genai_config.json; empty fields without one.
        spec: sizes and names.
        weight_files: the graph and the files of its weights.
        weight_format: type of most parameters, such as `F16` or `INT4`.
        weight_bytes: bytes of its weights.
        parameters: number of weights.
    """

    directory: Path
    graph: Path
    config: Fields
    sampling: Fields
    spec: OnnxSpec
    weight_files: tuple[Path, ...]
    weight_format: str
    weight_bytes: int
    parameters: int


def is_onnx(path: Path) -> bool:
    """Whether a path is an ONNX file, or a folder of a model in ONNX that has no safetensors beside it."""
    if path.is_file():
        return path.suffix.lower() == SUFFIX
    if (path / GENAI_CONFIG).is_file():
        return True
    return bool(_graphs_in(path)) and not any(path.glob("*.safetensors"))


def read_onnx_folder(path: Path) -> OnnxFolder:
    """Read configuration and header of a model in ONNX.

    Args:
        path: the folder, or an ONNX file in it or in its folder `onnx`.

    Raises:
        ModelError: something is missing, damaged, unsafe or not supported; one sentence says what.
    """
    graph: Path | None = None
    directory = path
    if path.is_file():
        graph, directory = path, path.parent
        if directory.name == _FOLDER and not (directory / "config.json").exists():
            directory = directory.parent
    if (directory / GENAI_CONFIG).is_file():
        return _read_genai(directory, graph)
    return _read_optimum(directory, graph)


def _read_genai(directory: Path, graph: Path | None) -> OnnxFolder:
    config = read_json(directory / GENAI_CONFIG)
    model = config.mapping("model")
    if model is None:
        raise config.wrong("model", "an object")
    for part in ("vision", "speech", "embedding"):
        if part in model:
            raise ModelError(
                f"{directory} is a model that sees images or hears ({part} in {GENAI_CONFIG}), which is not "
                "supported."
            )
    if "encoder" in model:
        raise ModelError(f"{directory} is an encoder-decoder model, which is not supported.")
    decoder = model.mapping("decoder")
    if decoder is None:
        raise model.wrong("decoder", "an object")
    if "pipeline" in decoder:
        raise ModelError(
            f"{directory} has a graph in several parts (pipeline in {GENAI_CONFIG}), as those for "
            "accelerators have; it is not supported."
        )
    options = decoder.mapping("session_options") or Fields.none()
    for holder in (model, decoder, options):
        if "custom_ops_library" in holder:
            raise ModelError(
                f"{GENAI_CONFIG} of {directory} names a library of operators (custom_ops_library), which is "
                "code and is never loaded."
            )
    if graph is None:
        graph = _inside(directory, decoder.text("filename"), GENAI_CONFIG)
    heads = decoder.integer("num_attention_heads", default=0, high=1 << 16)
    kv_heads = decoder.integer("num_key_value_heads", default=heads, high=1 << 16)
    size = decoder.integer("head_size", default=0, high=1 << 16)
    declared = model.optional_integer("vocab_size", low=1, high=1 << 24)
    return _described(
        directory,
        graph,
        config=model,
        sampling=config.mapping("search") or Fields.none(),
        names=_genai_names(decoder),
        architecture=model.text("type"),
        hidden_size=decoder.integer("hidden_size", default=0, high=1 << 24),
        context_length=model.integer("context_length", low=1, high=_MAX_CONTEXT),
        vocab_size=declared,
        fallback=KvLayer(kv_heads, size, size) if kv_heads and size else None,
    )


def _genai_names(decoder: Fields) -> PortNames:
    inputs = decoder.mapping("inputs") or Fields.none()
    outputs = decoder.mapping("outputs") or Fields.none()
    plain = PortNames()
    return PortNames(
        input_ids=inputs.text("input_ids", default=plain.input_ids),
        attention_mask=inputs.text("attention_mask", default=plain.attention_mask),
        position_ids=inputs.text("position_ids", default=plain.position_ids),
        past_key=_pattern(inputs, "past_key_names", plain.past_key),
        past_value=_pattern(inputs, "past_value_names", plain.past_value),
        logits=outputs.text("logits", default=plain.logits),
        present_key=_pattern(outputs, "present_key_names", plain.present_key),
        present_value=_pattern(outputs, "present_value_names", plain.present_value),
    )


def _pattern(fields: Fields, key: str, default: str) -> str:
    pattern = fields.text(key, default=default)
    if pattern.count("%") != 1 or "%d" not in pattern:
        raise fields.wrong(key, "a name with one %d, the index of a layer")
    return pattern


def _read_optimum(directory: Path, graph: Path | None) -> OnnxFolder:
    if not (directory / "config.json").is_file():
        raise ModelError(
            f"{directory} has neither {GENAI_CONFIG} nor config.json beside its graph."
        )
    config = read_json(directory / "config.json")
    if config.flag("is_encoder_decoder", default=False):
        raise ModelError(f"{directory} is an encoder-decoder model, which is not supported.")
    if "auto_map" in config:
        raise ModelError(f"{config.source} requires custom code (auto_map), which is never run.")
    if graph is None:
        graph = _choose_graph(directory)
    text = config.mapping("text_config") or config
    heads = _first_integer(text, ("num_attention_heads", "n_head"), 1 << 16)
    kv_heads = _first_integer(text, ("num_key_value_heads",), 1 << 16) or heads
    hidden = _first_integer(text, ("hidden_size", "n_embd"), 1 << 24)
    size = _first_integer(text, ("head_dim",), 1 << 16) or (hidden // heads if heads else 0)
    return _described(
        directory,
        graph,
        config=config,
        sampling=Fields.none(),
        names=PortNames(),
        architecture=config.text("model_type"),
        hidden_size=hidden,
        context_length=_context_length(text),
        vocab_size=text.optional_integer("vocab_size", low=1, high=1 << 24),
        fallback=KvLayer(kv_heads, size, size) if kv_heads and size else None,
    )


def _first_integer(fields: Fields, keys: Iterable[str], high: int) -> int:
    """The first of these keys that is there; 0 if none is."""
    return next((fields.integer(key, low=1, high=high) for key in keys if key in fields), 0)


def _context_length(config: Fields) -> int:
    """Tokens of the longest sequence; with frequencies that depend on its length, of those of one length."""
    length = _first_integer(config, _CONTEXT_KEYS, _MAX_CONTEXT)
    if not length:
        raise ModelError(f"{config.source} has none of {', '.join(_CONTEXT_KEYS)}.")
    for key in ("rope_scaling", "rope_parameters"):
        scaling = config.mapping(key) if config.is_mapping(key) else None
        if scaling is None:
            continue
        kind = scaling.optional_text("rope_type") or scaling.optional_text("type")
        original = "original_max_position_embeddings"
        if kind in ("longrope", "su"):
            holder = scaling if original in scaling else config
            length = min(length, holder.integer(original, default=length, low=1))
    return length


def _graphs_in(directory: Path) -> list[Path]:
    """The ONNX files of a folder and of its folder `onnx`."""
    found = (*directory.glob(f"*{SUFFIX}"), *directory.glob(f"{_FOLDER}/*{SUFFIX}"))
    return sorted(path for path in found if path.is_file())


def _choose_graph(directory: Path) -> Path:
    found = _graphs_in(directory)
    for name in _GRAPHS:
        for folder in (directory, directory / _FOLDER):
            if folder / name in found:
                return folder / name
    if any(path.stem.startswith("encoder_model") for path in found):
        raise ModelError(f"{directory} is an encoder-decoder model, which is not supported.")
    if len(found) == 1:
        return found[0]
    if not found:
        raise ModelError(f"{directory} has no ONNX file.")
    names = ", ".join(path.relative_to(directory).as_posix() for path in found[:_MAX_LISTED])
    raise ModelError(f"{directory} has several ONNX files: give one of them ({names}) as the path.")


def _described(
    directory: Path,
    graph: Path,
    *,
    config: Fields,
    sampling: Fields,
    names: PortNames,
    architecture: str,
    hidden_size: int,
    context_length: int,
    vocab_size: int | None,
    fallback: KvLayer | None,
) -> OnnxFolder:
    header = read_onnx_header(graph)
    _refuse_operators(header, graph)
    weight_files = (graph, *_external_files(header, graph))
    interface = read_interface(header, names, source=str(graph), fallback=fallback)
    widths = [size for size in (vocab_size, interface.vocab_size) if size is not None]
    if not widths:
        raise config.wrong("vocab_size", "an integer")
    spec = OnnxSpec(
        architecture=architecture,
        hidden_size=hidden_size,
        # Logits beyond the vocabulary are padding of the output head and are never sampled.
        vocab_size=min(widths),
        context_length=context_length,
        kv_layers=interface.kv_layers,
        kv_dtype=interface.kv_dtype,
        is_single=interface.is_single,
        ports=interface.ports,
    )
    weight_format, parameters = _count(header)
    return OnnxFolder(
        directory=directory,
        graph=graph,
        config=config,
        sampling=sampling,
        spec=spec,
        weight_files=weight_files,
        weight_format=weight_format,
        weight_bytes=sum(tensor.nbytes for tensor in header.tensors),
        parameters=parameters,
    )


def _refuse_operators(header: OnnxHeader, graph: Path) -> None:
    """Refuse operators that are not part of ONNX Runtime, or that read files of their own."""
    for domain, operator in sorted(header.operators):
        if domain not in _KNOWN_DOMAINS and domain not in header.own_domains:
            raise ModelError(
                f"{graph} has the operator {operator[:60]} of {domain[:60]}, which is in a library of its "
                "own; such libraries are code and are never loaded."
            )
        if operator == "EPContext":
            raise ModelError(f"{graph} was compiled for an accelerator, which is not supported.")


def _external_files(header: OnnxHeader, graph: Path) -> tuple[Path, ...]:
    """The files of weights beside the graph.

    Raises:
        ModelError: one lies elsewhere, is missing, or is shorter than its weights.
    """
    sizes: dict[str, int] = {}
    for tensor in header.tensors:
        if tensor.external is not None:
            place = tensor.external
            end = place.offset + (tensor.nbytes if place.length is None else place.length)
            sizes[place.location] = max(sizes.get(place.location, 0), end)
    files = []
    for location, end in sorted(sizes.items()):
        path = _inside(graph.parent, location, graph.name)
        if path.stat().st_size < end:
            raise ModelError(f"{path} is truncated: the weights in it end at byte {end:,}.")
        files.append(path)
    return tuple(files)


def _inside(folder: Path, location: str, source: str) -> Path:
    """A file of a folder.

    Links are followed, because a download cache may consist of them; they must lead to where the folder's own
    files are.

    Raises:
        ModelError: the location leads elsewhere, or there is no such file.
    """
    pure = PurePosixPath(location)
    unsafe = not location or pure.is_absolute() or ".." in pure.parts
    if unsafe or any(character in location for character in "\\:\0"):
        raise ModelError(
            f"{source} in {folder} names {location[:80]!r}, which is outside of its folder."
        )
    path = folder / pure
    if not path.is_file():
        raise ModelError(f"{folder} has no {location[:80]}, which {source} names.")
    real = path.resolve()
    allowed = {folder.resolve(), (folder / source).resolve().parent}
    if not any(real.is_relative_to(parent) for parent in allowed):
        raise ModelError(
            f"{source} in {folder} names {location[:80]!r}, which is outside of its folder."
        )
    return path


def _count(header: OnnxHeader) -> tuple[str, int]:
    """The type of most parameters, and their number."""
    totals: dict[str, int] = {}
    inside = {name for matrix in header.packed for name in matrix.tensors}
    for matrix in header.packed:
        kind = f"INT{matrix.bits}"
        totals[kind] = totals.get(kind, 0) + matrix.elements
    for tensor in header.tensors:
        if tensor.dtype not in _NO_WEIGHTS and (not tensor.name or tensor.name not in inside):
            kind = ELEMENT_NAMES.get(tensor.dtype, "other")
            totals[kind] = totals.get(kind, 0) + tensor.elements
    if not totals:
        return "none", 0
    return max(totals, key=lambda kind: totals[kind]), sum(totals.values())
