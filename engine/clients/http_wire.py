"""Conversion between the API's JSON and the engine's dataclasses, for `HttpClient`.

Pure functions. Unknown members of an answer are ignored, for compatibility with newer servers; missing
ones raise `WireError`.
"""

import base64
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import orjson

from engine.api.available_model import AvailableModel
from engine.api.embeddings import Embeddings
from engine.api.errors import (
    EngineUnavailable,
    InvalidRequest,
    ModelError,
    ModelNotFound,
    PravahaError,
    QueueFull,
    UnknownRequest,
)
from engine.api.fork_price import ForkPrice
from engine.api.generation_defaults import GenerationDefaults
from engine.api.grammar import Grammar
from engine.api.request import (
    FinishReason,
    PromptLogprobs,
    Request,
    SamplingParams,
    Timings,
    TokenBatch,
    TopLogprob,
)
from engine.api.request_status import RequestState, RequestStatus
from engine.api.scheduling import Scheduling
from engine.api.service_class import ServiceClass
from engine.api.snapshot import (
    BlockCounts,
    EngineSnapshot,
    EngineState,
    ModelInfo,
    Rates,
    SessionCounts,
    StateCounts,
    StepStats,
    SwapCounts,
    Totals,
    WindowCounts,
)
from engine.api.step_costs import StepCosts
from engine.api.step_view import PlannedRow, PlannedStep, RowPhase, StepEntry
from engine.grammar.limits import MAX_SOURCE_CHARS
from engine.grammar.tool_calls import loose_lark

FORKED_AT = "x-pravaha-forked-at"
"""Response header of `POST /fork`: how many of the parent's tokens the children share."""

_TOKEN_ID = "token_id:"  # noqa: S105 - a prefix, not a secret
_NO_LIMIT = 2**31 - 1  # the API's default is 16 tokens; the context length is the actual limit

Shape = TypeVar("Shape")


class WireError(PravahaError):
    """The server's answer is not in the format of Pravāha's API."""


def completion_body(request: Request, model: str) -> dict[str, Any]:
    """The body of `POST /v1/completions` for a request."""
    return {
        "model": model,
        "prompt": list(request.prompt_ids),
        "request_id": request.request_id,
        "priority": request.priority,
        **_service_class(request.service_class),
        "deadline_ms": request.deadline_ms,
        "cache_salt": request.cache_salt,
        "continued_tokens": request.continued_tokens,
        **({} if request.session is None else {"session_id": request.session}),
        **_STREAMED,
        **_sampling_fields(request.sampling),
    }


def fork_body(
    parent: str, *, child: str, at: int | None, sampling: SamplingParams | None
) -> dict[str, Any]:
    """The body of `POST /fork` for one child."""
    fields = {}
    if sampling is not None:
        # An empty list too: without the field the child would have its parent's ids.
        ids = list(sampling.logprob_token_ids)
        fields = {**_sampling_fields(sampling), "logprob_token_ids": ids}
    return {"parent": parent, "request_id": child, "at": at, **_STREAMED, **fields}


_STREAMED = {
    "stream": True,
    "resumable": True,
    "return_token_ids": True,
    "return_timings": True,
    "return_tokens_as_token_ids": True,
}


def _sampling_fields(sampling: SamplingParams) -> dict[str, Any]:
    return {
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        **_dry_fields(sampling),
        "logit_bias": {str(token_id): bias for token_id, bias in sampling.logit_bias},
        "seed": sampling.seed,
        "logprobs": sampling.logprobs,
        "prompt_logprobs": sampling.prompt_logprobs,
        **_logprob_ids(sampling.logprob_token_ids),
        "max_tokens": _NO_LIMIT if sampling.max_tokens is None else sampling.max_tokens,
        "stop": list(sampling.stop),
        "stop_token_ids": list(sampling.stop_token_ids),
        "ignore_eos": sampling.ignore_eos,
        "include_stop_str_in_output": sampling.include_stop,
        **_shown_ids(sampling.shown_control_ids),
        **_grammar_fields(sampling.grammar),
    }


def _service_class(name: ServiceClass) -> dict[str, Any]:
    """The service class; of the default no field, which older servers do not know."""
    return {} if name == "interactive" else {"service_class": name}


def _logprob_ids(token_ids: tuple[int, ...]) -> dict[str, Any]:
    """The chosen token ids; without any no field, which older servers do not know."""
    return {"logprob_token_ids": list(token_ids)} if token_ids else {}


def _shown_ids(token_ids: tuple[int, ...]) -> dict[str, Any]:
    """The control tokens that are shown; without any no field, which older servers do not know."""
    return {"shown_control_ids": list(token_ids)} if token_ids else {}


def _dry_fields(sampling: SamplingParams) -> dict[str, Any]:
    """The DRY penalty; without one only the field that says so, which older servers accept too."""
    if sampling.dry_multiplier == 0:
        return {"dry_multiplier": 0.0}
    return {
        "dry_multiplier": sampling.dry_multiplier,
        "dry_base": sampling.dry_base,
        "dry_allowed_length": sampling.dry_allowed_length,
        "dry_penalty_last_n": sampling.dry_penalty_last_n,
        "dry_sequence_breakers": list(sampling.dry_sequence_breakers),
    }


def _grammar_fields(grammar: Grammar | None) -> dict[str, Any]:
    """The fields of a grammar; None gives the field that removes the grammar of a fork's parent."""
    if grammar is None:
        return {"response_format": {"type": "text"}}
    if grammar.kind == "json_object":
        return {"response_format": {"type": "json_object"}}
    if grammar.kind == "choice":
        return {"guided_choice": orjson.loads(grammar.source)}
    if grammar.kind == "tool_calls":  # there is no field of schemas of calls
        lark = loose_lark(grammar.source)
        return {"guided_grammar": lark} if len(lark) <= MAX_SOURCE_CHARS else {}
    field = {"json_schema": "guided_json", "regex": "guided_regex", "lark": "guided_grammar"}
    return {field[grammar.kind]: grammar.source}


def token_batch(
    choice: Mapping[str, Any], *, request_id: str, queued: float, prompt_alternatives: int = 0
) -> TokenBatch:
    """One streamed choice as a batch; times are relative to `queued` on this machine's clock.

    Prompt logprobs have `prompt_alternatives` tokens beside the prompt's own.

    Raises:
        WireError: members are missing.
    """
    try:
        finish = choice["finish_reason"]
        arrays = choice["logprobs"] or {}
        tops = arrays.get("top_logprobs") or [{} for _ in arrays.get("token_logprobs", ())]
        return TokenBatch(
            request_id=request_id,
            token_ids=tuple(choice["token_ids"]),
            text=choice["text"],
            timings=Timings(
                queued=queued,
                **{
                    name: None if offset is None else queued + offset
                    for name, offset in choice["timings"].items()
                    if name in ("scheduled", "first_token", "last_token")
                },
            ),
            seed=choice["seed"],
            logprobs=tuple(arrays.get("token_logprobs", ())),
            top_logprobs=tuple(
                tuple(
                    TopLogprob(int(name.removeprefix(_TOKEN_ID)), value)
                    for name, value in row.items()
                )
                for row in tops
            ),
            token_id_logprobs=tuple(map(tuple, choice.get("token_id_logprobs", ()))),
            finish_reason=None if finish is None else FinishReason(finish),
            cached_tokens=choice["cached_tokens"],
            drafted=_drafted(choice.get("accepted_drafts"), len(choice["token_ids"])),
            prompt_logprobs=_prompt_logprobs(choice.get("prompt_logprobs"), prompt_alternatives),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise WireError(f"The server's stream is not in Pravāha's format ({error}).") from error


def _drafted(indices: Any, count: int) -> tuple[bool, ...]:
    """Of each of `count` tokens whether its index is among these; empty from an older server (None)."""
    if indices is None:
        return ()
    drafted = [False] * count
    for at in indices:
        drafted[at] = True
    return tuple(drafted)


def _prompt_logprobs(entries: Any, alternatives: int) -> PromptLogprobs | None:
    """From vLLM's format: for each token but the first an object by token id, its own entry first."""
    if entries is None:
        return None
    logprobs, ranks, top = [], [], []
    for entry in entries[1:]:
        values = list(entry.values())
        logprobs.append(float(values[0]["logprob"]))
        ranks.append(int(values[0]["rank"]))
        ranked = sorted(
            (value["rank"], int(name), value["logprob"]) for name, value in entry.items()
        )
        top.append(tuple(TopLogprob(one, value) for _, one, value in ranked[:alternatives]))
    return PromptLogprobs(tuple(logprobs), tuple(ranks), tuple(top))


def engine_snapshot(data: Mapping[str, Any], *, now: float) -> EngineSnapshot:
    """A snapshot whose times are converted to this machine's clock, where it is `now`.

    Raises:
        WireError: members are missing.
    """
    try:
        snapshot = EngineSnapshot(
            **{
                **_known_fields(EngineSnapshot, data),
                "state": EngineState(data["state"]),
                "model": data["model"] and _model_info(data["model"]),
                "blocks": BlockCounts(**_known_fields(BlockCounts, data["blocks"])),
                "swap": SwapCounts(**_known_fields(SwapCounts, data["swap"])),
                "states": StateCounts(**_known_fields(StateCounts, data.get("states", {}))),
                "windows": WindowCounts(**_known_fields(WindowCounts, data.get("windows", {}))),
                "sessions": SessionCounts(**_known_fields(SessionCounts, data.get("sessions", {}))),
                "last_step": StepStats(**_known_fields(StepStats, data["last_step"])),
                "totals": Totals(**_known_fields(Totals, data["totals"])),
                "rates": Rates(**_known_fields(Rates, data["rates"])),
                "scheduling": Scheduling(**_known_fields(Scheduling, data["scheduling"])),
                "step_costs": data["step_costs"]
                and StepCosts(**_known_fields(StepCosts, data["step_costs"])),
            }
        )
        offset = now - snapshot.time
        error_time = snapshot.last_error_time
        return replace(
            snapshot,
            time=now,
            last_error_time=None if error_time is None else error_time + offset,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"The server's snapshot is not in Pravāha's format ({error}).") from error


def _model_info(data: Mapping[str, Any]) -> ModelInfo:
    values = _known_fields(ModelInfo, data)
    defaults = values.pop("generation_defaults", {})  # an older server has none
    return ModelInfo(
        **values,
        generation_defaults=GenerationDefaults(**_known_fields(GenerationDefaults, defaults)),
    )


def request_statuses(data: Mapping[str, Any], *, shift: float) -> tuple[RequestStatus, ...]:
    """The live requests, their instants shifted by `shift` seconds.

    Raises:
        WireError: members are missing.
    """
    try:
        return tuple(_request_status(one, shift) for one in data["requests"])
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"The server's requests are not in Pravāha's format ({error}).") from error


def _request_status(data: Mapping[str, Any], shift: float) -> RequestStatus:
    deadline = data["deadline"]
    return RequestStatus(
        **{
            **_known_fields(RequestStatus, data),
            "state": RequestState(data["state"]),
            "queued_at": data["queued_at"] + shift,
            "deadline": None if deadline is None else deadline + shift,
        }
    )


def step_entries(data: Mapping[str, Any], *, shift: float) -> tuple[StepEntry, ...]:
    """The steps of `GET /steps`, their instants shifted by `shift` seconds.

    Raises:
        WireError: members are missing.
    """
    try:
        entries = [StepEntry(*fields) for fields in data["steps"]]
        return tuple(replace(entry, started=entry.started + shift) for entry in entries)
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"The server's steps are not in Pravāha's format ({error}).") from error


def planned_step(data: Mapping[str, Any], *, shift: float) -> PlannedStep | None:
    """The plan of `GET /steps`, its instant shifted by `shift` seconds.

    Raises:
        WireError: members are missing.
    """
    try:
        plan = data["plan"]
        if plan is None:
            return None
        rows = [
            PlannedRow(**{**_known_fields(PlannedRow, row), "phase": RowPhase(row["phase"])})
            for row in plan["rows"]
        ]
        fields = _known_fields(PlannedStep, plan)
        return PlannedStep(**{**fields, "time": plan["time"] + shift, "rows": tuple(rows)})
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"The server's plan is not in Pravāha's format ({error}).") from error


def available_models(data: Mapping[str, Any]) -> tuple[AvailableModel, ...]:
    """The installed models.

    Raises:
        WireError: members are missing.
    """
    try:
        return tuple(AvailableModel(**_known_fields(AvailableModel, one)) for one in data["data"])
    except (KeyError, TypeError) as error:
        raise WireError(f"The server's models are not in Pravāha's format ({error}).") from error


def embeddings(data: Mapping[str, Any]) -> Embeddings:
    """The vectors of a base64 answer of `/v1/embeddings`.

    Raises:
        WireError: members are missing or invalid.
    """
    try:
        rows = [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in data["data"]]
        return Embeddings(
            model=data["model"],
            vectors=np.stack(rows).astype(np.float32, copy=False),
            tokens=data["usage"]["prompt_tokens"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"The server's vectors are not in Pravāha's format ({error}).") from error


def fork_price(data: Mapping[str, Any]) -> ForkPrice:
    """The predicted cost of a request.

    Raises:
        WireError: members are missing.
    """
    try:
        return ForkPrice(**_known_fields(ForkPrice, data))
    except (KeyError, TypeError) as error:
        raise WireError(f"The server's price is not in Pravāha's format ({error}).") from error


def error_from_response(status: int, body: Any) -> PravahaError:
    """The engine's exception for an HTTP status and error body."""
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    message = str(error.get("message") or f"The server answered with status {status}.")
    if error.get("code") == "model_not_found":
        return ModelNotFound(message)
    if error.get("code") == "model_unusable":
        return ModelError(message)
    if status == 429:
        return QueueFull(message)
    if error.get("code") == "request_not_found":
        return UnknownRequest(message, param="request_id")
    if status in (400, 404, 413, 422):
        return InvalidRequest(message, param=error.get("param"))
    return EngineUnavailable(message)


def _known_fields(shape: type[Shape], data: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: data[field.name] for field in fields(shape) if field.name in data}  # type: ignore[arg-type]
