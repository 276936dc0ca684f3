"""How long the first token of an agent's session takes whose head was read before.

    python benchmarks/agent_heads.py --model FILE [--trace NAME ...] [--others N] [--json FILE]

Starts `pravaha --serve` with its defaults in a folder of its own and sends, streamed, the first request of
sessions that have the head (system prompt and tools) of a trace at full size, and a question of their own.
Prints the seconds to the first token, and the tokens of the prompt that were computed, for each head:

* *first*: nothing was read before; also the longest silence of the response meanwhile;
* *second*: another session, in the same process;
* *after others*: after so many requests with long prompts of their own;
* *after restart*: in a new process, after the server was stopped by SIGTERM.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import say, write_result
from tests.server.process import server_process
from tests.traces.replay import CHARS_PER_TOKEN, ROOT, Agent, Size, load, names

OTHER_CHARS = 8000


def command(model: Path, folder: Path) -> list[str]:
    """The server."""
    arguments = ["--serve", "--port=0", f"--model={model}"]
    run = f"import sys; from app.cli import main; sys.argv[1:] = {arguments!r}; sys.exit(main())"
    return ["env", f"PRAVAHA_CACHE_DIR={folder}", sys.executable, "-c", run]


def first_request(trace: dict[str, Any], question: str) -> tuple[str, dict[str, Any]]:
    """Path and body of the first request of a session."""
    size = Size(round(trace["head_tokens"] * CHARS_PER_TOKEN), 6000, 16, free=True)
    agent = Agent("main", trace, size)
    agent.step({"adds": [{"role": "user", "content": question}]})
    body = agent.body("model", 1, 4) | {"stream": True}
    if agent.speaks_messages:
        return "/v1/messages?beta=true", body
    return "/v1/chat/completions", body | {"stream_options": {"include_usage": True}}


def ask(url: str, path: str, body: dict[str, Any]) -> dict[str, float]:
    """Seconds to the first token and of the longest silence, and the computed tokens of the prompt."""
    with httpx.Client(base_url=url, timeout=3600) as http:
        body = body | {"model": http.get("/v1/models").json()["data"][0]["id"]}
        begun = last = time.perf_counter()
        first = silence = 0.0
        prompt = cached = 0
        with http.stream("POST", path, json=body) as response:
            response.raise_for_status()
            for line in response.iter_lines():
                now = time.perf_counter()
                silence, last = max(silence, now - last), now
                if not line.startswith("data: {"):
                    continue
                data = json.loads(line.removeprefix("data: "))
                if not first and _has_token(data):
                    first = now - begun
                usage = data.get("usage") or data.get("message", {}).get("usage") or {}
                if "prompt_tokens" in usage:
                    prompt = usage["prompt_tokens"]
                    cached = usage["prompt_tokens_details"]["cached_tokens"]
                elif usage.get("cache_read_input_tokens") is not None:
                    cached = usage["cache_read_input_tokens"]
                    other = usage["input_tokens"] + usage["cache_creation_input_tokens"]
                    prompt = cached + other
    return {"seconds": first, "silence": silence, "prompt": prompt, "computed": prompt - cached}


def _has_token(data: dict[str, Any]) -> bool:
    if data.get("type"):
        return data["type"] == "content_block_delta" or data["type"] == "content_block_start"
    delta = data["choices"][0]["delta"] if data.get("choices") else {}
    return bool(delta.get("content") or delta.get("tool_calls") or delta.get("reasoning_content"))


def other(number: int) -> tuple[str, dict[str, Any]]:
    """A request whose prompt has nothing in common with others."""
    text = (ROOT / "docs" / "retrieval.md").read_text()
    text = f"{number}: {text[number * 997 :][:OTHER_CHARS]}"
    message = {"role": "user", "content": text}
    return "/v1/chat/completions", {"messages": [message], "max_tokens": 1, "stream": True}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--trace", nargs="*", default=["vibe", "claude_code"], choices=names())
    parser.add_argument("--others", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    traces = {name: load(name) for name in options.trace}
    results: dict[str, dict[str, dict[str, float]]] = {name: {} for name in traces}

    def measure(url: str, when: str) -> None:
        for name, trace in traces.items():
            given = ask(url, *first_request(trace, f"What is this? ({when})"))
            results[name][when] = given
            say(f"{name}, {when}: {given}")

    with tempfile.TemporaryDirectory() as folder:
        with server_process(command(options.model, Path(folder))) as server:
            measure(server.url, "first")
            measure(server.url, "second")
            if options.others:
                for number in range(options.others):
                    ask(server.url, *other(number))
                measure(server.url, "after others")
            server.signal(signal.SIGTERM)
            server.exit_status()
        with server_process(command(options.model, Path(folder))) as server:
            measure(server.url, "after restart")
    print("| head | session | prompt | computed | first token, s | longest silence, s |")
    print("|---|---|---|---|---|---|")
    for name, sessions in results.items():
        for when, one in sessions.items():
            counts = f"{one['prompt']:,} | {one['computed']:,}"
            print(f"| {name} | {when} | {counts} | {one['seconds']:.2f} | {one['silence']:.1f} |")
    if options.json:
        write_result(options.json, {"heads": results})


if __name__ == "__main__":
    main()
