"""The settings that are also options of the command line, each with its type, range, default and help.

One class for each group of options that commands take. Imports no pydantic (see `Row`); the settings without
an option are in `app.settings.settings`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from agents.guardrails.policy import Mode
from app.settings.row import Row, duration, folder, names, none_if_empty, none_if_none, rules, size
from engine.api.config import (
    DEFAULT_MAX_HOLD_S,
    DEFAULT_STATE_INTERVAL,
    AttentionBackend,
    Device,
    DispatchLevel,
    DtypeChoice,
    ExecutorChoice,
    GenerationConfig,
    KvDtype,
    WeightMode,
)
from engine.api.scheduling import (
    MAX_STEP_TARGET_MS,
    MIN_STEP_TARGET_MS,
    BatchFormerName,
    Policy,
)
from engine.api.tools import CallFormName, ToolDecision

DEMO_MODEL = "smollm2"
DEFAULT_SYSTEM = "You are a helpful assistant. Answer clearly and correctly."
"""Deliberately plain: small models answer worse with a persona in their system prompt."""
MIB = 1024**2
DEFAULT_WEIGHT_CACHE = 20 * 1024**3

# fmt: off


class EngineOptions:
    """The model and the engine."""

    model: Annotated[str, Row(
        "Name of an installed model, or a path to a model; the screen and --serve take several.",
        min_length=1, short="-m", more="further_models", words="gguf weights llm")] = DEMO_MODEL
    ctx: Annotated[int | None, Row(
        "Context length in tokens; by default the model's own.", ge=16, le=2**24,
        words="window n_ctx size")] = None
    kv_cache: Annotated[int | None, Row(
        "Size of the KV pool, such as 512MiB; by default a share of free memory.",
        ge=MIB, le=2**46, read=size,
        words="memory ram")] = None
    weights: Annotated[WeightMode, Row(
        "Weights in memory: stored (as in the file), or q8 or q4, which quantize float weights to 8 or 4 "
        "bits while they are loaded.",
        words="quantization quantize precision")] = "stored"
    kv_dtype: Annotated[KvDtype, Row(
        "Element type of the KV cache: auto, f16, f32, int8 (native) or bf16 (torch).",
        words="quantization precision")] = "auto"
    block_size: Annotated[int, Row("Tokens in a KV block.", ge=1, le=256)] = 32
    threads: Annotated[int | None, Row(
        "Compute threads; by default the physical cores this process may use.", ge=1, le=1024,
        words="cpu cores processors")] = None
    dispatch: Annotated[DispatchLevel, Row(
        "Instruction-set level: auto, amx, avx512, avxvnni, avx2 or portable.")] = "auto"
    executor: Annotated[ExecutorChoice, Row(
        "Executor: auto, native (CPU, in Rust), torch or onnx.")] = "auto"
    device: Annotated[Device, Row("Device of the torch executor: auto, cpu or cuda.",
        words="gpu cuda graphics card")] = "auto"
    dtype: Annotated[DtypeChoice, Row("Data type of the torch executor: auto, f32, f16 or bf16.",
        words="precision float")] = "auto"
    attention: Annotated[AttentionBackend, Row(
        "Attention backend of the torch executor: auto, reference or triton.")] = "auto"
    cuda_graphs: Annotated[bool | None, Row(
        "Replay decode steps as CUDA graphs; by default on a GPU (torch).")] = None
    dummy_weights: Annotated[bool, Row(
        "Seeded random weights, for benchmarks without a checkpoint (torch).")] = False
    max_num_seqs: Annotated[int, Row("Maximum number of running requests.", ge=1, le=4096,
        words="parallel concurrency concurrent")] = 64
    max_num_batched_tokens: Annotated[int, Row("Token budget of one step.", ge=1, le=65536,
        words="batch prefill chunk")] = 512
    generation_config: Annotated[GenerationConfig, Row(
        "auto applies the model's own sampling defaults to what is not given; none does not.")] = "auto"
    max_queue: Annotated[int, Row(
        "Maximum number of waiting requests; further ones are refused.", ge=1, le=10**6)] = 1024
    prefix_caching: Annotated[bool, Row(
        "Reuse the KV blocks of prompt prefixes that were computed before.",
        words="cache kv reuse")] = True
    speculation: Annotated[bool | None, Row(
        "Draft repeated text and verify several tokens in a step; answers do not change. On by default, "
        "except with CUDA graphs and recurrent layers.",
        words="speculative draft")] = None
    draft_model: Annotated[str | None, Row(
        "Smaller model with the same vocabulary that drafts tokens for one or two requests at a time: a "
        "name, a path, or none; answers do not change.", read=none_if_none,
        words="speculative speculation")] = None
    scheduling_policy: Annotated[Policy, Row("Order of requests: fcfs, priority, sjf, edf or lrs.",
        words="order fairness")] = "fcfs"
    batch_former: Annotated[BatchFormerName, Row(
        "Size of a step: fixed (the token budget) or timed (a target time).")] = "fixed"
    step_target_ms: Annotated[float, Row(
        "Target in milliseconds of steps with decodes, with --batch-former timed.",
        ge=MIN_STEP_TARGET_MS, le=MAX_STEP_TARGET_MS)] = 60.0
    max_hold_s: Annotated[float, Row(
        "Seconds after which a run of an agent that is held, because older ones need the KV pool, becomes "
        "one of the oldest, or is let in if nothing runs; 0 holds none.",
        ge=0, le=86_400, words="agents sessions fairness")] = DEFAULT_MAX_HOLD_S
    state_slots: Annotated[int | None, Row(
        "Recurrent states in memory, of running requests and checkpoints; by default as many as half of the "
        "KV cache holds. Models with recurrent layers.",
        ge=1, le=2**20, words="hybrid recurrent checkpoints")] = None
    state_interval: Annotated[int, Row(
        "Tokens between checkpoints of a recurrent state or sliding window, which a fork at most computes "
        "again. Models with such layers.",
        ge=1, le=2**20, words="hybrid recurrent checkpoints windows")] = DEFAULT_STATE_INTERVAL
    swap_bytes: Annotated[int | None, Row(
        "Disk space for swapped KV blocks, kept across restarts; by default 2GiB, 0 for none.",
        ge=0, le=2**46, read=size,
        words="disk memory")] = None
    weight_cache_bytes: Annotated[int, Row(
        "Disk space for packed weights, which make the next start faster, and for experts that memory "
        "has no room for; by default 20GiB, 0 for none.",
        ge=0, le=2**46, read=size)] = DEFAULT_WEIGHT_CACHE


class SamplingOptions:
    """Sampling; the defaults suit small chat models that have none of their own."""

    temperature: Annotated[float, Row(
        "Sampling temperature; 0 is greedy. By default the model's own, else 0.2 (run: 0).",
        ge=0, le=10,
        words="creativity creative randomness random")] = 0.2
    top_k: Annotated[int, Row("Keep the k likeliest tokens; 0 keeps all.", ge=0, le=10**6,
        words="creativity candidates")] = 0
    top_p: Annotated[float, Row("Keep the likeliest tokens up to this total probability.", gt=0, le=1,
        words="nucleus creativity")] = 0.9
    min_p: Annotated[float, Row(
        "Drop tokens below this share of the likeliest token's probability.", ge=0, le=1,
        words="creativity threshold")] = 0.0
    repetition_penalty: Annotated[float, Row(
        "Above 1, tokens of the prompt and the answer become less likely.", gt=0, le=10,
        words="repeat loop")] = 1.0
    presence_penalty: Annotated[float, Row(
        "Subtracted once from the logit of each generated token.", ge=-2, le=2,
        words="topics")] = 0.0
    frequency_penalty: Annotated[float, Row(
        "Subtracted from a token's logit for each time it was generated.", ge=-2, le=2,
        words="repeat")] = 0.0
    dry_multiplier: Annotated[float, Row(
        "Above 0, tokens that would continue a repetition become less likely (DRY).", ge=0, le=100)] = 0.0
    dry_base: Annotated[float, Row(
        "Growth of the DRY penalty with each repeated token.", ge=1, le=100)] = 1.75
    dry_allowed_length: Annotated[int, Row(
        "Longest repetition without a DRY penalty, in tokens.", ge=0, lt=2**31)] = 2
    dry_penalty_last_n: Annotated[int, Row(
        "Last tokens in which DRY looks for repetitions; -1 for all, 0 for none.", ge=-1, lt=2**31)] = -1
    seed: Annotated[int | None, Row(
        "Random seed, which makes answers reproducible; by default, and with -1, a new one each time.",
        ge=-(2**63), lt=2**64,
        words="random reproducible deterministic")] = None
    max_tokens: Annotated[int | None, Row(
        "Maximum length of an answer in tokens, -1 for the rest of the context; by default 1024 for models "
        "below 1B parameters, else the rest of the context.", ge=-1, le=2**24,
        words="length limit answer long short")] = None
    stop_repetition: Annotated[bool, Row(
        "Stop an answer that repeats itself without end; never over HTTP.",
        words="repeat loop")] = True
    system: Annotated[str | None, Row(
        "System prompt; empty for that of the model's chat template.", read=none_if_empty,
        words="instructions persona role prompt")] = DEFAULT_SYSTEM


class DocumentOptions:
    """Answers from collections of documents."""

    min_evidence: Annotated[float, Row(
        "How close a passage must be to a question, from 0 to 1, for the documents to answer it; -1 always "
        "asks the model. /sources evidence changes it.", ge=-1, le=1,
        words="threshold documents sources decline")] = 0.44


class SeveralModelOptions:
    """Several models side by side, for the screen and the server."""

    further_models: Annotated[tuple[str, ...], Row(
        "Models beside --model, separated by semicolons; --model again does the same.", read=rules,
        words="several gguf llm")] = ()
    model_memory: Annotated[tuple[str, ...], Row(
        "Most memory of a model, its KV pool included, MODEL=SIZE with a size such as 4GiB or 40% of what is "
        "free; may be given several times.", read=rules, words="share limit ram")] = ()
    max_models: Annotated[int | None, Row(
        "Offer every installed model, and keep at most so many loaded: the least recently used idle one "
        "makes room. By default as many as --model names, and --serve offers only those.", ge=1, le=64,
        words="several limit memory lru")] = None
    model_keep_alive: Annotated[float | None, Row(
        "Unload a model that was not used for so long, such as 300 or 5m; 0 at once. By default it stays.",
        read=duration, ge=0, words="idle unload timeout memory")] = None


class ServerOptions:
    """The server."""

    host: Annotated[str, Row(
        "Address to serve on; any but loopback needs a key.", min_length=1,
        words="address server network")] = "127.0.0.1"
    port: Annotated[int, Row("Port to serve on; 0 takes a free one.", ge=0, le=65535,
        words="address server")] = 8000
    alias: Annotated[tuple[str, ...], Row(
        "Further name of a served model, NAME=MODEL, or NAME for the first; may be given several times.",
        read=rules, words="model name")] = ()
    allowed_hosts: Annotated[tuple[str, ...], Row(
        "Further Host names to accept on loopback, separated by commas.", read=names)] = ()
    cors_origin: Annotated[tuple[str, ...], Row(
        "Origin of web pages that may use the API from a browser, such as https://chat.example; may be given "
        "several times. * is every page and needs a key.", read=names, user_only=True,
        words="browser web page cross-origin")] = ()
    strict_fields: Annotated[bool, Row("Refuse unknown request fields.")] = False
    tool_call_form: Annotated[CallFormName, Row(
        "Form in which the model writes calls of tools; auto is that of its chat template.",
        words="function calling parser")] = "auto"
    tool_decision: Annotated[ToolDecision, Row(
        "Who decides whether an answer calls a tool: probabilities (auto), or what the model writes.",
        words="function calling")] = "auto"
    max_body_bytes: Annotated[int, Row(
        "Largest request body but for uploads, such as 4MiB.", ge=1024, le=2**32, read=size)] = 4 * MIB
    max_upload_bytes: Annotated[int, Row(
        "Largest file that a client may upload, such as 512MiB.", ge=1024, le=2**40, read=size)] = 512 * MIB
    drain_seconds: Annotated[float, Row(
        "Time that running requests get after the first SIGTERM.", ge=0, le=86400)] = 30.0
    agents_root: Annotated[Path | None, Row(
        "Folder whose files agents may read for clients of --serve; by default none.", read=folder)] = None


class GuardrailOptions:
    """The guardrails."""

    guardrails_mode: Annotated[Mode, Row(
        "Checks of messages and answers: off, check (hidden characters, links with data), or redact (that, "
        "and personal data and secrets).", user_only=True,
        words="safety privacy redaction secrets")] = "check"


class ToolOptions:
    """The agents' tools."""

    sandbox: Annotated[Literal["auto", "bubblewrap", "landlock", "off"], Row(
        "Where agents' commands run: auto (the first that works), bubblewrap, landlock, or off, which "
        "asks before each.", user_only=True,
        words="confinement isolation")] = "auto"
    allow: Annotated[tuple[str, ...], Row(
        "Calls of tools that need no approval, separated by semicolons, such as 'shell: pytest *'.",
        read=rules, user_only=True,
        words="approval permissions")] = ()
    chat_tools: Annotated[tuple[str, ...], Row(
        "Tools and MCP servers that the model may call in the screen's chat, separated by commas, such as "
        "read,grep,glob; by default none. /tools changes them until the screen is closed.",
        read=names, user_only=True, words="functions calls")] = ()
    http_domains: Annotated[tuple[str, ...], Row(
        "Domains that the tool http_fetch may ask, separated by commas, such as docs.python.org or "
        "*.pypi.org; by default none, which turns it off.", read=names, user_only=True,
        words="web internet network")] = ()


class RunOptions:
    """Runs of agents."""

    guardrails_agents: Annotated[bool, Row("Check what agents read and write.", user_only=True)] = True
    guardrails_judge: Annotated[bool, Row(
        "Let the served model judge whether a tool's output gives agents instructions.",
        user_only=True)] = False
    memory_episodes: Annotated[Literal["auto", "always", "never"], Row(
        "Remember runs of agents: auto (runs with a model, and those of the screen), always or never."
    )] = "auto"


class RemoteOptions:
    """A remote engine."""

    attach: Annotated[str | None, Row("URL of a running `pravaha --serve` to use as the engine.",
        words="remote connect")] = None
    # `Settings` gives it pydantic's type, and the default.
    api_key: Annotated[Any, Row(
        "Key that clients of --serve must send; with --attach, the key to send.", secret=True,
        words="password token secret")]


class ScreenOptions:
    """The screen."""

    theme: Annotated[str | None, Row("Name of the theme.",
        words="colours colors dark light appearance")] = None
    avatar: Annotated[str, Row(
        "The figure on the screen: bindu, kamal, the name of your own, or off.",
        words="figure mascot")] = "bindu"
    charset: Annotated[Literal["auto", "unicode", "ascii"], Row(
        "Characters to draw with: auto, unicode or ascii.",
        words="unicode ascii glyphs")] = "auto"
    notify: Annotated[Literal["auto", "bell", "off"], Row(
        "When a long answer ends unseen: auto (desktop notification), bell or off.",
        words="notification bell sound")] = "auto"
    thinking: Annotated[str | None, Row(
        "How much models think that can, in the words of /think, such as off or 'high 500'.",
        words="reasoning effort budget")] = None
    mouse: Annotated[bool, Row(
        "Use the mouse; without, the terminal selects text. /mouse switches it.",
        words="click selection")] = True

# fmt: on


class Options(
    EngineOptions,
    SamplingOptions,
    DocumentOptions,
    SeveralModelOptions,
    ServerOptions,
    GuardrailOptions,
    ToolOptions,
    RunOptions,
    RemoteOptions,
    ScreenOptions,
):
    """All of them; `Settings` checks and holds the values."""


GROUPS: dict[str, tuple[str, type]] = {
    "engine": ("Model and engine", EngineOptions),
    "sampling": ("Sampling", SamplingOptions),
    "documents": ("Documents", DocumentOptions),
    "models": ("Several models", SeveralModelOptions),
    "server": ("Server", ServerOptions),
    "guardrails": ("Guardrails", GuardrailOptions),
    "agents": ("Agents", ToolOptions),
    "runs": ("Agents", RunOptions),
    "remote": ("Remote engine", RemoteOptions),
    "screen": ("Screen", ScreenOptions),
}
"""The groups that commands take, each with its heading in `--help`."""
