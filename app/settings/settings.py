"""All settings with their types, ranges and defaults.

Precedence, highest first: command-line flags, the environment (`PRAVAHA_*`), `pravaha.toml` in the
current folder, `pravaha.toml` in the user's configuration folder, and the defaults here.
`app.settings.sources.load_settings` reads them in this order.
"""

from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from agents.guardrails.detection import Action, Kind
from agents.guardrails.policy import MAX_ENTRY_CHARS, Mode, mode_actions
from agents.guardrails.policy import Policy as GuardrailPolicy
from agents.tools.web_domains import check_domain
from app.settings.mcp import McpSettings
from app.text.byte_size import parse_size
from engine.api.config import (
    AttentionBackend,
    Device,
    DispatchLevel,
    DtypeChoice,
    EngineConfig,
    ExecutorChoice,
    GenerationConfig,
    KvDtype,
    WeightMode,
)
from engine.api.generation_defaults import DEFAULTED_PARAMETERS, SamplingChoice
from engine.api.request import SamplingParams
from engine.api.scheduling import (
    MAX_STEP_TARGET_MS,
    MIN_STEP_TARGET_MS,
    BatchFormerName,
    Policy,
    Scheduling,
)

ENV_PREFIX = "PRAVAHA_"
DEMO_MODEL = "smollm2"
DEFAULT_SYSTEM = "You are a helpful assistant. Answer clearly and correctly."
"""Deliberately plain: small models answer worse with a persona in their system prompt."""
MIB = 1024**2
DEFAULT_SWAP = 2 * 1024**3
DEFAULT_WEIGHT_CACHE = 20 * 1024**3


def _size(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else value


def _folder(value: object) -> object:
    return Path(value).expanduser() if isinstance(value, str) else value


def _rules(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(rule for rule in (part.strip() for part in value.split(";")) if rule)


def _names(value: object) -> object:
    return tuple(filter(None, value.replace(",", " ").split())) if isinstance(value, str) else value


def _flattened(value: object) -> object:
    """TOML parses `pane.kv = "f4"` as a nested table; join it to one name."""
    if not isinstance(value, dict):
        return value
    flat: dict[str, object] = {}
    for name, entry in value.items():
        if isinstance(entry, dict):
            flat |= {f"{name}.{inner}": keys for inner, keys in entry.items()}
        else:
            flat[name] = entry
    return flat


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


def _none_if_none(value: object) -> object:
    return None if value in ("", "none") else value


_SAMPLING = {*DEFAULTED_PARAMETERS, "seed", "max_tokens"}
"""Settings with the name of a sampling parameter."""

ByteSize = Annotated[int, BeforeValidator(_size)]
Folder = Annotated[Path, BeforeValidator(_folder)]
KeyMap = Annotated[dict[str, str], BeforeValidator(_flattened)]
BlocklistEntry = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_ENTRY_CHARS)
]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]
Rules = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_rules)]


class Settings(BaseSettings):
    """Validated settings, frozen. `app.settings.help.HELP` explains each one."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="forbid", frozen=True)

    # The model and the engine.
    model: str = Field(DEMO_MODEL, min_length=1)
    ctx: int | None = Field(None, ge=16, le=2**24)
    kv_cache: ByteSize | None = Field(None, ge=MIB, le=2**46)
    weights: WeightMode = "stored"
    kv_dtype: KvDtype = "auto"
    block_size: int = Field(32, ge=1, le=256)
    threads: int | None = Field(None, ge=1, le=1024)
    dispatch: DispatchLevel = "auto"
    executor: ExecutorChoice = "auto"
    device: Device = "auto"
    dtype: DtypeChoice = "auto"
    attention: AttentionBackend = "auto"
    cuda_graphs: bool | None = None
    dummy_weights: bool = False
    max_num_seqs: int = Field(64, ge=1, le=4096)
    max_num_batched_tokens: int = Field(512, ge=1, le=65536)
    generation_config: GenerationConfig = "auto"
    max_queue: int = Field(1024, ge=1, le=10**6)
    prefix_caching: bool = True
    speculation: bool | None = None
    draft_model: Annotated[str | None, BeforeValidator(_none_if_none)] = None
    scheduling_policy: Policy = "fcfs"
    batch_former: BatchFormerName = "fixed"
    step_target_ms: float = Field(60.0, ge=MIN_STEP_TARGET_MS, le=MAX_STEP_TARGET_MS)
    swap_bytes: ByteSize | None = Field(None, ge=0, le=2**46)
    weight_cache_bytes: ByteSize = Field(DEFAULT_WEIGHT_CACHE, ge=0, le=2**46)

    # Sampling. The defaults suit small chat models that have none of their own.
    temperature: float = Field(0.2, ge=0, le=10)
    top_k: int = Field(0, ge=0, le=10**6)
    top_p: float = Field(0.9, gt=0, le=1)
    min_p: float = Field(0.0, ge=0, le=1)
    repetition_penalty: float = Field(1.0, gt=0, le=10)
    presence_penalty: float = Field(0.0, ge=-2, le=2)
    frequency_penalty: float = Field(0.0, ge=-2, le=2)
    dry_multiplier: float = Field(0.0, ge=0, le=100)
    dry_base: float = Field(1.75, ge=1, le=100)
    dry_allowed_length: int = Field(2, ge=0, lt=2**31)
    dry_penalty_last_n: int = Field(-1, ge=-1, lt=2**31)
    seed: int | None = Field(None, ge=0, lt=2**64)
    max_tokens: int | None = Field(None, ge=1, le=2**24)
    stop_repetition: bool = True
    system: Annotated[str | None, BeforeValidator(_none_if_empty)] = DEFAULT_SYSTEM

    # The server.
    host: str = Field("127.0.0.1", min_length=1)
    port: int = Field(8000, ge=0, le=65535)
    api_key: SecretStr | None = None
    allowed_hosts: Names = ()
    strict_fields: bool = False
    max_body_bytes: ByteSize = Field(4 * MIB, ge=1024, le=2**32)
    max_upload_bytes: ByteSize = Field(512 * MIB, ge=1024, le=2**40)
    drain_seconds: float = Field(30.0, ge=0, le=86400)
    agents_root: Folder | None = None

    # The agents' tools. A project's pravaha.toml may not set those of `sources.USER_ONLY`.
    sandbox: Literal["auto", "bubblewrap", "landlock", "off"] = "auto"
    allow: Rules = ()
    http_domains: Names = ()
    mcp: McpSettings = Field(default_factory=McpSettings)

    # The table [guardrails].
    guardrails_mode: Mode = "check"
    guardrails_input: dict[Kind, Action] = Field(default_factory=dict)
    guardrails_output: dict[Kind, Action] = Field(default_factory=dict)
    guardrails_blocklist: tuple[BlocklistEntry, ...] = ()
    guardrails_allowed_hosts: Names = ()
    guardrails_phone_regions: Names = ("US", "GB", "IN", "DE")
    guardrails_agents: bool = True
    guardrails_judge: bool = False

    # The table [memory].
    memory_episodes: Literal["auto", "always", "never"] = "auto"
    memory_recall_tokens: int = Field(400, ge=0, le=4000)

    # The screen.
    attach: str | None = None
    theme: str | None = None
    avatar: str = "bindu"
    charset: Literal["auto", "unicode", "ascii"] = "auto"
    notify: Literal["auto", "bell", "off"] = "auto"
    mouse: bool = True
    keymap: KeyMap = Field(default_factory=dict)

    # Folders.
    data_dir: Folder = Field(default_factory=lambda: platformdirs.user_data_path("pravaha"))
    cache_dir: Folder = Field(default_factory=lambda: platformdirs.user_cache_path("pravaha"))
    config_dir: Folder = Field(default_factory=lambda: platformdirs.user_config_path("pravaha"))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only explicit values: `sources.load_settings` reads all sources and merges them."""
        return (init_settings,)

    @field_validator("attach")
    @classmethod
    def _attach_is_a_url(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("should be a URL such as http://127.0.0.1:8000")
        return value

    @field_validator("http_domains")
    @classmethod
    def _domains_are_domains(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_domain(domain) for domain in value)

    @field_validator("swap_bytes")
    @classmethod
    def _swap_needs_prefix_caching(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value and not info.data.get("prefix_caching", True):
            raise ValueError("should be 0 without prefix_caching, which looks swapped blocks up")
        return value

    @property
    def conversations(self) -> Path:
        """The conversation database."""
        return self.data_dir / "conversations.db"

    @property
    def memory(self) -> Path:
        """The agents' memory."""
        return self.data_dir / "memory.db"

    @property
    def retrieval(self) -> Path:
        """The folder of collections: their database and vector files."""
        return self.data_dir / "retrieval"

    @property
    def redactions(self) -> Path:
        """What the placeholders of conversations stand for."""
        return self.data_dir / "redactions.db"

    @property
    def vector_stores(self) -> Path:
        """Files and vector stores of clients of the HTTP API."""
        return self.data_dir / "retrieval" / "http"

    @property
    def artifacts(self) -> Path:
        """Outputs of agents' tools that are too long to be returned."""
        return self.data_dir / "artifacts"

    @property
    def mcp_approved(self) -> Path:
        """The file of approved MCP servers.

        In the folder that no `pravaha.toml` can name: a project that could name it would approve its own.
        """
        return self.config_dir / "mcp-approved.json"

    @property
    def preferences(self) -> Path:
        """The file of `Preferences`."""
        return self.data_dir / "preferences.json"

    @property
    def log(self) -> Path:
        """The log file of the interactive commands."""
        return self.data_dir / "pravaha.log"

    @property
    def models(self) -> Path:
        """The model store."""
        return self.cache_dir / "models"

    @property
    def swap(self) -> Path:
        """The folder of swapped KV blocks, with one file for each model."""
        return self.cache_dir / "swap"

    @property
    def weight_cache(self) -> Path:
        """The folder of packed weights, with one file for each model and way of packing."""
        return self.cache_dir / "weights"

    @property
    def swap_limit(self) -> int:
        """Maximum size of a model's swap tier in bytes; 0 for none."""
        if not self.prefix_caching:
            return 0
        return DEFAULT_SWAP if self.swap_bytes is None else self.swap_bytes

    @property
    def avatars(self) -> Path:
        """The user's own figures."""
        return self.config_dir / "avatars"

    @property
    def themes(self) -> Path:
        """The user's own themes."""
        return self.config_dir / "themes"

    def is_set(self, field: str) -> bool:
        """Whether any source set the field, as opposed to its default."""
        return field in self.model_fields_set

    def engine_config(
        self, model: Path, name: str, draft_model: Path | None = None
    ) -> EngineConfig:
        """The engine's configuration for a model.

        Args:
            model: the model's file or directory.
            name: its name.
            draft_model: the file of the model that `draft_model` names.
        """
        return EngineConfig(
            model=model,
            name=name,
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_model_len=self.ctx,
            block_size=self.block_size,
            kv_cache_bytes=self.kv_cache,
            weights=self.weights,
            kv_dtype=self.kv_dtype,
            generation_config=self.generation_config,
            max_queue=self.max_queue,
            prefix_caching=self.prefix_caching,
            speculation=self.speculation,
            draft_model=draft_model,
            scheduling=Scheduling(self.scheduling_policy, self.batch_former, self.step_target_ms),
            swap_bytes=self.swap_limit,
            swap_dir=self.swap,
            weight_cache_bytes=self.weight_cache_bytes,
            weight_cache_dir=self.weight_cache,
            threads=self.threads,
            dispatch=self.dispatch,
            executor=self.executor,
            device=self.device,
            dtype=self.dtype,
            attention=self.attention,
            cuda_graphs=self.cuda_graphs,
            dummy_weights=self.dummy_weights,
        )

    def guardrail_policy(self, mode: Mode | None = None) -> GuardrailPolicy:
        """The policy of the guardrails.

        Args:
            mode: which actions apply where the settings name none; None takes `guardrails_mode`.
        """
        given, written = mode_actions(mode or self.guardrails_mode)
        return GuardrailPolicy(
            input_actions={**given, **self.guardrails_input},
            output_actions={**written, **self.guardrails_output},
            blocklist=self.guardrails_blocklist,
            allowed_hosts=self.guardrails_allowed_hosts,
            phone_regions=self.guardrails_phone_regions,
        )

    def sampling(self) -> SamplingChoice:
        """Sampling parameters of chat answers.

        Those that no source sets are left to the model.
        """
        values = {name: getattr(self, name) for name in _SAMPLING}
        return SamplingChoice(
            SamplingParams(**values), frozenset(_SAMPLING & self.model_fields_set)
        )
