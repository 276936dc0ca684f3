"""`Quantization`: how the matrices of a quantised checkpoint are stored, read from config.json.

GPTQ, AWQ (`gemm`) and compressed-tensors (`pack-quantized`), with integers of 4 or 8 bits in groups of inputs
that share a scale, and MXFP4 (gpt-oss), with 4-bit floats in blocks of 32. `grouped` and `mxfp4` in
`rust_core/kernels/src/format` define the tensors, check and unpack them.

Widths and groups of a matrix follow from the shapes of its tensors, so that settings for single modules
(`dynamic`, several `config_groups`, `modules_to_not_convert`, `ignore`) need no pattern matching: a module
that has quantised tensors is quantised.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.api.errors import ModelError, UnsupportedByNativeError
from engine.files.fields import Fields
from engine.models.safetensors_header import NATIVE_DTYPES, TensorEntry
from engine.models.spec import QuantizationScheme

QUANTIZED_DTYPES: Mapping[str, int] = {**NATIVE_DTYPES, "I32": 4, "I64": 8, "U8": 1}
"""Element types of checkpoints that the native executor unpacks, and their size in bytes."""

_KEYS = ("quantization_config", "compression_config")
_WIDTHS = (4, 8)
_WORD = 32
_BLOCK = 32
"""Inputs of a block of MXFP4, in 16 bytes."""

_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "gptq": (".qweight", ".qzeros", ".scales", ".g_idx"),
    "gptq_v2": (".qweight", ".qzeros", ".scales", ".g_idx"),
    "awq": (".qweight", ".qzeros", ".scales"),
    "pack-quantized": (
        ".weight_packed",
        ".weight_zero_point",
        ".weight_scale",
        ".weight_g_idx",
        ".weight_shape",
    ),
    "mxfp4": ("_blocks", "_scales"),
}
"""What the names of a module's quantised tensors end with: codes, zero points if any, and scales first."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Widths that modules of a checkpoint may have.

    Attributes:
        bits: of a code.
        size: inputs of a group; None for all inputs.
    """

    bits: int
    size: int | None


@dataclass(frozen=True, slots=True)
class Quantization:
    """How the matrices of a checkpoint are quantised.

    Attributes:
        scheme: how their tensors are to be read.
        method: name of the format, for display.
        groupings: the first is that of most modules.
        act_order: whether inputs were grouped in the order of their activations.
        source: name of the file, for messages.
    """

    scheme: QuantizationScheme
    method: str
    groupings: tuple[Grouping, ...]
    act_order: bool
    source: str

    @property
    def title(self) -> str:
        """One phrase, such as `GPTQ 4-bit, groups of 128`."""
        parts = []
        for grouping in self.groupings:
            groups = "one per output" if grouping.size is None else f"groups of {grouping.size}"
            parts.append(f"{grouping.bits}-bit, {groups}")
        order = ", act-order" if self.act_order else ""
        return f"{self.method} {' and '.join(parts)}{order}"

    def matrices(self, tensors: Mapping[str, TensorEntry]) -> dict[str, TensorEntry]:
        """The tensors as the native executor reads them: a quantised module's own ones are its `weight`.

        Raises:
            ModelError: no module is quantised, or the tensors of one do not fit each other.
        """
        suffixes = _SUFFIXES[self.scheme]
        scales = suffixes[1] if self.scheme == "mxfp4" else suffixes[2]
        stems = [name.removesuffix(suffixes[0]) for name in tensors if name.endswith(suffixes[0])]
        if not stems:
            raise ModelError(
                f"{self.source} describes {self.title}, but the weights have no *{suffixes[0]}."
            )
        own = {stem + suffix for stem in stems for suffix in suffixes}
        found = {name: entry for name, entry in tensors.items() if name not in own}
        for stem in stems:
            shape = self._shape(tensors, stem)
            if shape is None:
                raise ModelError(
                    f"{self.source} describes {self.title}, which the shapes of the tensors "
                    f"{stem[:80]}{suffixes[0]} and {scales} do not fit."
                )
            name = stem if self.scheme == "mxfp4" else f"{stem}.weight"
            found[name] = TensorEntry(shape, self.title)
        return found

    def _shape(self, tensors: Mapping[str, TensorEntry], stem: str) -> tuple[int, ...] | None:
        """Outputs and inputs of a module, of experts after their number; None if its shapes make no sense."""
        if self.scheme == "mxfp4":
            return _block_shape(tensors[f"{stem}_blocks"], tensors.get(f"{stem}_scales"))
        codes, zeros, scales = (
            _two(tensors.get(stem + suffix)) for suffix in _SUFFIXES[self.scheme][:3]
        )
        if codes is None or scales is None:
            return None
        if self.scheme == "pack-quantized":
            return self._packed_shape(codes, scales)
        if self.scheme == "awq":
            return (scales[1], codes[0])
        indices = tensors.get(f"{stem}.g_idx")
        for bits in _WIDTHS:
            per = _WORD // bits
            inputs = codes[0] * per if indices is None else indices.elements
            if codes[0] == -(-inputs // per) and zeros == (scales[0], -(-scales[1] // per)):
                return (scales[1], inputs)
        return None

    def _packed_shape(
        self, codes: tuple[int, int], scales: tuple[int, int]
    ) -> tuple[int, int] | None:
        for grouping in self.groupings:
            inputs = codes[1] * _WORD // grouping.bits
            # The last word may have codes that are no inputs.
            if grouping.size is None and scales[1] == 1:
                return (codes[0], inputs)
            if grouping.size is not None and scales[1] == -(-inputs // grouping.size):
                return (codes[0], min(inputs, scales[1] * grouping.size))
        return None


def _block_shape(blocks: TensorEntry, scales: TensorEntry | None) -> tuple[int, ...] | None:
    """The shape of a matrix, or of a stack of matrices, of MXFP4 blocks."""
    if scales is None or len(scales.shape) < 2 or blocks.shape != (*scales.shape, _BLOCK // 2):
        return None
    return (*scales.shape[:-1], scales.shape[-1] * _BLOCK)


def _two(entry: TensorEntry | None) -> tuple[int, int] | None:
    """The shape of a matrix; None for anything else."""
    if entry is None or len(entry.shape) != 2:
        return None
    return (entry.shape[0], entry.shape[1])


def read_quantization(config: Fields) -> Quantization | None:
    """The `Quantization` that a config.json describes; None if the model is not quantised.

    Raises:
        UnsupportedByNativeError: the native executor does not support it; names the field and its value.
        ModelError: a field is missing or damaged.
    """
    key = next((key for key in _KEYS if key in config), None)
    settings = None if key is None else config.mapping(key)
    if settings is None:
        return None
    method = settings.text(
        "quant_method", default="compressed-tensors" if key == _KEYS[1] else None
    )
    reader = _READERS.get(method)
    if reader is None:
        raise _unsupported(settings, "quant_method", " or ".join(_READERS))
    return reader(settings)


def _read_gptq(settings: Fields) -> Quantization:
    scheme: QuantizationScheme
    key = "checkpoint_format" if "checkpoint_format" in settings else "format"
    match settings.text(key, default="gptq").lower():
        case "gptq":
            scheme = "gptq"
        case "gptq_v2":
            scheme = "gptq_v2"
        case _:
            raise _unsupported(settings, key, "gptq or gptq_v2")
    if settings.flag("is_marlin_format", default=False):
        raise _unsupported(settings, "is_marlin_format", "false")
    if settings.text("pack_dtype", default="int32").removeprefix("torch.") != "int32":
        raise _unsupported(settings, "pack_dtype", "int32")
    for override in _nested(settings, "dynamic"):
        if "bits" in override:
            _bits(override, "bits", _WIDTHS)
    grouping = Grouping(_bits(settings, "bits", _WIDTHS), _group_size(settings, "group_size"))
    act_order = settings.flag("desc_act", default=False)
    return Quantization(scheme, "GPTQ", (grouping,), act_order, settings.source)


def _read_awq(settings: Fields) -> Quantization:
    key = "version" if "version" in settings else "format"
    if settings.text(key, default="gemm").lower() != "gemm":
        raise _unsupported(settings, key, "gemm")
    if not settings.flag("zero_point", default=True):
        raise _unsupported(settings, "zero_point", "true")
    bits, size = ("bits", "group_size") if "bits" in settings else ("w_bit", "q_group_size")
    grouping = Grouping(_bits(settings, bits, (4,)), _group_size(settings, size))
    return Quantization("awq", "AWQ", (grouping,), False, settings.source)


def _read_compressed_tensors(settings: Fields) -> Quantization:
    groups = _nested(settings, "config_groups")
    layout = settings.text("format", default="pack-quantized")
    if layout != "pack-quantized" and not (
        layout == "mixed-precision" and all("format" in group for group in groups)
    ):
        raise _unsupported(settings, "format", "pack-quantized")
    if settings.text("quantization_status", default="compressed") != "compressed":
        raise _unsupported(settings, "quantization_status", "compressed")
    for key in ("kv_cache_scheme", "transform_config"):
        _require_none(settings, key)
    sparsity = settings.mapping("sparsity_config")
    if sparsity is not None and sparsity.text("format", default="dense") != "dense":
        raise _unsupported(sparsity, "format", "dense")
    if not groups:
        raise settings.wrong("config_groups", "an object of groups")
    groupings: list[Grouping] = []
    act_order = False
    for group in groups:
        for key in ("input_activations", "output_activations"):
            _require_none(group, key)
        if group.text("format", default="pack-quantized") != "pack-quantized":
            raise _unsupported(group, "format", "pack-quantized")
        weights = group.mapping("weights")
        if weights is None:
            raise group.wrong("weights", "an object")
        groupings.append(_read_weights(weights))
        act_order = act_order or _has_group_order(weights)
    # Each once, in order.
    distinct = tuple(dict.fromkeys(groupings))
    return Quantization(
        "pack-quantized", "compressed-tensors", distinct, act_order, settings.source
    )


def _read_weights(weights: Fields) -> Grouping:
    """The `weights` of a group of compressed-tensors."""
    if weights.text("type", default="int") != "int":
        raise _unsupported(weights, "type", "int")
    if "dynamic" in weights and weights.flag("dynamic", default=False):
        raise _unsupported(weights, "dynamic", "false")
    bits = _bits(weights, "num_bits", _WIDTHS)
    default = "group" if "group_size" in weights else "channel"
    match weights.text("strategy", default=default):
        case "group" if "group_size" in weights:
            return Grouping(bits, _group_size(weights, "group_size"))
        case "group":
            raise weights.wrong("group_size", "a number of inputs")
        case "channel":
            return Grouping(bits, None)
        case _:
            raise _unsupported(weights, "strategy", "group or channel")


def _has_group_order(weights: Fields) -> bool:
    """Whether inputs were grouped in the order of their activations: `actorder` may be true or a name."""
    if not weights.is_text("actorder"):
        return weights.flag("actorder", default=False)
    return weights.text("actorder").lower() in ("group", "dynamic")


def _bits(settings: Fields, key: str, known: tuple[int, ...]) -> int:
    bits = settings.integer(key)
    if bits not in known:
        raise _unsupported(settings, key, " or ".join(map(str, known)))
    return bits


def _group_size(settings: Fields, key: str) -> int | None:
    """Inputs of a group; None for -1, which stands for all."""
    size = settings.integer(key, low=-1, default=128)
    if size == 0:
        raise settings.wrong(key, "a number of inputs, or -1 for all")
    return None if size == -1 else size


def _nested(settings: Fields, key: str) -> list[Fields]:
    """The objects in an object; none if it is missing."""
    holder = settings.mapping(key) or Fields.none()
    found = (holder.mapping(name) for name in holder.names())
    return [nested for nested in found if nested is not None]


def _require_none(settings: Fields, key: str) -> None:
    """Reject a setting that is not null or empty."""
    nested = settings.mapping(key)
    if nested is not None and nested.names():
        raise _unsupported(settings, key, "null")


def _unsupported(settings: Fields, key: str, expected: str) -> UnsupportedByNativeError:
    return UnsupportedByNativeError(str(settings.wrong(key, expected)))


def _read_mxfp4(settings: Fields) -> Quantization:
    return Quantization("mxfp4", "MXFP4", (Grouping(4, _BLOCK),), False, settings.source)


_READERS: Mapping[str, Callable[[Fields], Quantization]] = {
    "gptq": _read_gptq,
    "awq": _read_awq,
    "compressed-tensors": _read_compressed_tensors,
    "mxfp4": _read_mxfp4,
}
