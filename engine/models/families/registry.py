"""The families that the native executor runs, one line each."""

from engine.models.families.family import Family
from engine.models.families.gemma2 import GEMMA2
from engine.models.families.gemma3 import GEMMA3
from engine.models.families.gemma3n import GEMMA3N
from engine.models.families.gemma4 import GEMMA4
from engine.models.families.glm4 import GLM4
from engine.models.families.glm4moe import GLM4_MOE
from engine.models.families.gpt2 import GPT2
from engine.models.families.gpt_oss import GPT_OSS
from engine.models.families.granite import GRANITE
from engine.models.families.granitehybrid import GRANITE_HYBRID
from engine.models.families.granitemoe import GRANITE_MOE
from engine.models.families.lfm2 import LFM2
from engine.models.families.llama import LLAMA_FAMILY, MISTRAL
from engine.models.families.mistral3 import MISTRAL3
from engine.models.families.mixtral import MIXTRAL
from engine.models.families.nemotron_h import NEMOTRON_H
from engine.models.families.olmo2 import OLMO2, OLMO3
from engine.models.families.olmoe import OLMOE
from engine.models.families.phi3 import PHI3
from engine.models.families.qwen2 import QWEN2
from engine.models.families.qwen3 import QWEN3
from engine.models.families.qwen3moe import QWEN3_MOE
from engine.models.families.qwen3next import QWEN3_NEXT
from engine.models.families.qwen35 import QWEN35
from engine.models.families.qwen35moe import QWEN35_MOE
from engine.models.families.smollm3 import SMOLLM3
from engine.models.families.stablelm import STABLELM

FAMILIES: tuple[Family, ...] = (
    LLAMA_FAMILY,
    MISTRAL,
    QWEN2,
    QWEN3,
    GEMMA2,
    GEMMA3,
    GEMMA3N,
    GEMMA4,
    PHI3,
    SMOLLM3,
    GRANITE,
    OLMO2,
    OLMO3,
    MISTRAL3,
    GPT2,
    STABLELM,
    GLM4,
    LFM2,
    QWEN35,
    GRANITE_HYBRID,
    NEMOTRON_H,
    MIXTRAL,
    QWEN3_MOE,
    QWEN35_MOE,
    QWEN3_NEXT,
    OLMOE,
    GPT_OSS,
    GRANITE_MOE,
    GLM4_MOE,
)

GGUF_FAMILIES = {name: family for family in FAMILIES for name in family.gguf}
"""`general.architecture` to family."""

CLASSES = {kind: name for family in FAMILIES for kind, name in family.classes.items()}
"""`model_type` to transformers' class."""

CHECKPOINT_FAMILIES = {kind: family for family in FAMILIES for kind in family.classes}
"""`model_type` to family."""
