"""The `ModelSpec` of a GGUF file, read from its metadata and tensor table, without the weights."""

from collections.abc import Mapping, Sequence

from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.registry import GGUF_FAMILIES
from engine.models.spec import ModelSpec

SUPPORTED_DTYPES = frozenset(
    {
        *("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"),
        *("IQ4_NL", "IQ4_XS", "MXFP4", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
    }
)


def read_spec(
    metadata: Mapping[str, object],
    tensors: Mapping[str, tuple[int, ...]],
    *,
    source: str,
    rope_tables: Mapping[str, Sequence[float]] | None = None,
) -> ModelSpec:
    """The `ModelSpec` of GGUF metadata.

    Args:
        metadata: the file's key-value pairs.
        tensors: name to shape, slowest-varying dimension first.
        source: names the file in messages.
        rope_tables: values of the tensors in `ROPE_TABLES` (`families.gguf_rope`) that the file has.

    Raises:
        ModelError: a field is missing, damaged or not supported.
    """
    general = Fields(metadata, source=source)
    architecture = general.text("general.architecture")
    family = GGUF_FAMILIES.get(architecture)
    if family is None or family.read_gguf is None:
        raise ModelError(
            f"{source} has architecture {architecture[:80]!r}, which the native executor does not "
            f"support (supported: {', '.join(GGUF_FAMILIES)})."
        )
    header = GgufHeader(
        family.name,
        general.under(architecture),
        tensors,
        source=source,
        rope_tables=rope_tables or {},
    )
    has_experts = header.fields.integer("expert_count", default=0) > 0
    if has_experts and not family.reads_experts:
        raise ModelError(
            f"{source} is a mixture of experts, which is not supported for {architecture}."
        )
    return family.read_gguf(header)
