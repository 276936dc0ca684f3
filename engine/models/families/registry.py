"""The families that the native executor runs, one line each."""

from engine.models.families.family import Family
from engine.models.families.gemma3 import GEMMA3
from engine.models.families.llama import LLAMA_FAMILY, MISTRAL
from engine.models.families.qwen2 import QWEN2
from engine.models.families.qwen3 import QWEN3

FAMILIES: tuple[Family, ...] = (
    LLAMA_FAMILY,
    MISTRAL,
    QWEN2,
    QWEN3,
    GEMMA3,
)

GGUF_FAMILIES = {name: family for family in FAMILIES for name in family.gguf}
"""`general.architecture` to family."""

CLASSES = {kind: name for family in FAMILIES for kind, name in family.classes.items()}
"""`model_type` to transformers' class."""

CHECKPOINT_FAMILIES = {kind: family for family in FAMILIES for kind in family.classes}
"""`model_type` to family."""
