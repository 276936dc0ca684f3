"""Malformed request bodies, generated from a seed."""

import json
import random
from typing import Any

WRONG_VALUES: list[Any] = [
    None, True, False, 0, -1, 1.5, 10**30, -(10**30), 1e308, "", "x", "5", "\x00", [], [None], [[]],
    {}, {"a": None}, [1, "a"], [True], "NaN", ["a"] * 50, {"0": True}, {"-1": 0}, {"1e3": 1},
]  # fmt: skip

FIELDS = (
    "model", "messages", "prompt", "temperature", "top_p", "top_k", "min_p", "n", "max_tokens",
    "max_completion_tokens", "stop", "stop_token_ids", "logit_bias", "seed", "stream",
    "stream_options", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty",
    "repetition_penalty", "dry_multiplier", "dry_penalty_last_n", "ignore_eos", "request_id",
    "return_token_ids", "echo",
)  # fmt: skip


def valid_body(path: str) -> dict[str, Any]:
    body: dict[str, Any] = {"model": "toy", "max_tokens": 2}
    if path == "/v1/completions":
        return body | {"prompt": "hi"}
    return body | {"messages": [{"role": "user", "content": "hi"}]}


def broken_syntax() -> list[bytes]:
    """Bodies that are not JSON, or JSON of the wrong shape."""
    valid = json.dumps(valid_body("/v1/chat/completions")).encode()
    return [
        b"",
        b" ",
        b"null",
        b"true",
        b"[]",
        b'"text"',
        b"12",
        b"{",
        b"}",
        b"{}",
        b"{]",
        valid[:-1],
        valid + b"}",
        valid + valid,
        b"\xef\xbb\xbf" + valid,
        b"\xff\xfe" + valid,
        valid.decode().encode("utf-16"),
        valid.replace(b'"hi"', b'"\xc3"'),
        valid.replace(b'"hi"', b'"\xed\xa0\x80"'),
        valid.replace(b'"hi"', b'"\\ud800"'),
        valid.replace(b'"hi"', b"NaN"),
        valid.replace(b": 2", b": NaN"),
        valid.replace(b": 2", b": Infinity"),
        valid.replace(b": 2", b": -Infinity"),
        valid.replace(b": 2", b": 1e999"),
        valid.replace(b": 2", b": " + b"9" * 5000),
        valid.replace(b": 2", b": 0x10"),
        valid.replace(b": 2", b": 2,"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"model":"toy","messages":[{"role":"user","content":' + b"[" * 900 + b"]" * 900 + b"}]}",
        b"\x00" * 1000,
        b"--boundary\r\ncontent-disposition: form-data\r\n\r\n",
        b"model=toy&prompt=hi",
    ]


def malformed_bodies(count: int, *, seed: int) -> list[tuple[str, bytes]]:
    """(path, body) pairs, each of which must be answered with a 4xx."""
    cases = [("/v1/chat/completions", body) for body in broken_syntax()]
    draw = random.Random(seed)
    while len(cases) < count:
        path = draw.choice(["/v1/chat/completions", "/v1/completions"])
        body = valid_body(path)
        field = draw.choice(FIELDS)
        body[field] = draw.choice(WRONG_VALUES)
        if not is_harmless(path, field, body[field]):
            cases.append((path, json.dumps(body).encode()))
    return cases


def is_harmless(path: str, field: str, value: Any) -> bool:
    """Whether the value is one the field may have, or the field is not known at this path."""
    if value is None and field not in ("model", "messages", "prompt"):
        return True
    chat = path == "/v1/chat/completions"
    if field in (("prompt", "echo") if chat else ("messages", "max_completion_tokens")):
        return True
    if field == "top_logprobs" and not chat:
        return True
    flags = ("stream", "ignore_eos", "return_token_ids", "echo") + (("logprobs",) if chat else ())
    if field in flags:
        return isinstance(value, bool)
    if field == "prompt":
        return value in ("x", "5", "\x00", "NaN", ["a"] * 50)
    if field == "stop":
        return value in ("x", "5", "\x00", "NaN", "", [], ["a"] * 50)
    if field == "request_id":
        return value in ("x", "5", "NaN")
    if isinstance(value, bool):
        return False
    return {
        "temperature": value in (0, 1.5),
        "top_k": value in (0, -1),
        "min_p": value == 0,
        "repetition_penalty": value == 1.5,
        "presence_penalty": value in (0, -1, 1.5),
        "frequency_penalty": value in (0, -1, 1.5),
        "dry_multiplier": value in (0, 1.5),
        "dry_penalty_last_n": value in (0, -1),
        "seed": value in (0, -1),
        "logprobs": value == 0 and not chat,
        "top_logprobs": value == 0,
        "max_tokens": value == -1 or (value == 0 and not chat),
        "max_completion_tokens": value == -1,
        "logit_bias": value == {},
        "stop_token_ids": value == [],
    }.get(field, False)
