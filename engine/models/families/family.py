"""`Family`: the names under which a family's files are known, and its two readers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.gguf_header import GgufHeader
from engine.models.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Family:
    """Models whose layers are described by the same rules.

    Attributes:
        name: `ModelSpec.architecture` of its models.
        gguf: values of `general.architecture`.
        read_gguf: describes a GGUF file; None if there are none.
        classes: `model_type` of a config.json, to transformers' class of the causal language model.
        read_checkpoint: describes a checkpoint; None if there are none.
        reads_experts: whether `read_gguf` describes files with experts, too.

    The readers raise `ModelError` for a field that is missing or damaged, and `UnsupportedByNativeError`
    for a checkpoint that needs what the native executor lacks.
    """

    name: str
    gguf: tuple[str, ...] = ()
    read_gguf: Callable[[GgufHeader], ModelSpec] | None = None
    classes: Mapping[str, str] = field(default_factory=dict)
    read_checkpoint: Callable[[CheckpointHeader], ModelSpec] | None = None
    reads_experts: bool = False
