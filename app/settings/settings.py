"""`Settings`: the values of all settings, and what is derived from them.

Precedence, highest first: command-line flags, the environment (`PRAVAHA_*`), `pravaha.toml` in the
current folder, `pravaha.toml` in the user's configuration folder, and the defaults here.
`app.settings.sources.load_settings` reads them in this order.
"""

from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import Field, SecretStr, StringConstraints, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from agents.guardrails.detection import Action, Kind
from agents.guardrails.policy import MAX_ENTRY_CHARS, Mode, mode_actions
from agents.guardrails.policy import Policy as GuardrailPolicy
from agents.tools.web_domains import check_domain
from app.settings.cors_origin import check_origin
from app.settings.mcp import McpSettings
from app.settings.options import Options
from app.settings.row import Row, flattened, folder, names, rows_of
from engine.api.config import EngineConfig
from engine.api.generation_defaults import DEFAULTED_PARAMETERS, SamplingChoice
from engine.api.request import NO_LIMIT, SamplingParams, limit_from, seed_from
from engine.api.scheduling import Scheduling

ENV_PREFIX = "PRAVAHA_"
DEFAULT_SWAP = 2 * 1024**3

_SAMPLING = {*DEFAULTED_PARAMETERS, "seed", "max_tokens"}
"""Settings with the name of a sampling parameter."""

BlocklistEntry = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_ENTRY_CHARS)
]


class Settings(Options, BaseSettings):
    """Validated settings, frozen: the options of the command line, and those that have none."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="forbid", frozen=True)

    api_key: SecretStr | None = None  # declared in `RemoteOptions`, which has not pydantic's type

    mcp: Annotated[
        McpSettings,
        Row(
            "MCP servers whose tools agents may call, as tables [mcp.servers.NAME] of pravaha.toml.",
            secret=True,
        ),
    ] = Field(default_factory=McpSettings)
    guardrails_input: Annotated[
        dict[Kind, Action],
        Row(
            "Under [guardrails.input], the action for a kind of text that a model reads, such as "
            '`email = "redact"`: allow, flag, redact or block.',
            user_only=True,
        ),
    ] = Field(default_factory=dict)
    guardrails_output: Annotated[
        dict[Kind, Action],
        Row("Under [guardrails.output], the same for text that a model writes.", user_only=True),
    ] = Field(default_factory=dict)
    guardrails_blocklist: Annotated[
        tuple[BlocklistEntry, ...],
        Row("Words and phrases that are refused in messages and end an answer.", user_only=True),
    ] = ()
    guardrails_allowed_hosts: Annotated[
        tuple[str, ...],
        Row("Hosts that links in answers may carry data to.", read=names, user_only=True),
    ] = ()
    guardrails_phone_regions: Annotated[
        tuple[str, ...],
        Row(
            "Regions whose national phone numbers are recognized, such as US GB.",
            read=names,
            user_only=True,
        ),
    ] = ("US", "GB", "IN", "DE")
    memory_recall_tokens: Annotated[
        int,
        Row(
            "Most tokens of memories that agents with a memory read in a run; 0 for none.",
            ge=0,
            le=4000,
        ),
    ] = 400
    keymap: Annotated[
        dict[str, str],
        Row(
            'Keys by action name, such as `pane.kv = "f4"` under [keymap]; `preset = "vim"` adds a set.',
            read=flattened,
        ),
    ] = Field(default_factory=dict)
    data_dir: Annotated[Path, Row("Folder of the conversations.", read=folder)] = Field(
        default_factory=lambda: platformdirs.user_data_path("pravaha")
    )
    cache_dir: Annotated[
        Path, Row("Folder of the models, packed weights and swapped KV blocks.", read=folder)
    ] = Field(default_factory=lambda: platformdirs.user_cache_path("pravaha"))
    config_dir: Annotated[
        Path,
        Row(
            "Folder of the user's pravaha.toml, themes and avatars; set only by PRAVAHA_CONFIG_DIR.",
            read=folder,
        ),
    ] = Field(default_factory=lambda: platformdirs.user_config_path("pravaha"))

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

    @field_validator("cors_origin")
    @classmethod
    def _origins_are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_origin(origin) for origin in value)

    @field_validator("max_tokens")
    @classmethod
    def _limit_is_not_zero(cls, value: int | None) -> int | None:
        if value == 0:
            raise ValueError(f"should be at least 1, or {NO_LIMIT} for the rest of the context")
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
    def plain_api_key(self) -> str | None:
        """The API key as it is sent; None without one."""
        return self.api_key.get_secret_value() if self.api_key else None

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
    def responses(self) -> Path:
        """Responses and conversations of clients of the HTTP API."""
        return self.data_dir / "responses.db"

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
            max_hold_s=self.max_hold_s,
            state_slots=self.state_slots,
            state_interval=self.state_interval,
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
        values["seed"] = seed_from(self.seed)
        values["max_tokens"] = limit_from(self.max_tokens)
        return SamplingChoice(
            SamplingParams(**values), frozenset(_SAMPLING & self.model_fields_set)
        )


ROWS: dict[str, Row] = rows_of(Settings)
"""What is said about each setting."""
