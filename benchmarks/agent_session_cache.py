"""Tokens computed per request of an agent's session: Pravāha's server beside llama.cpp's, on the same file.

    python benchmarks/agent_session_cache.py --model FILE --llama-server BINARY [--llama-flags "..."]
        [--trace opencode] [--head-tokens 4096] [--json FILE]

Meant for models with a recurrent state, such as a file of `families.py`: its sizes decide, not its weights.
The session is a recorded one (`tests/traces`), one request after the other: of its main agent with a long
head, which gets tasks of the user, after each of which it thinks, calls tools and reads results, and between
them those of its sub-agents. Prompts have the form of ChatML with a template
that drops the reasoning of earlier tasks, as those of Qwen3 and Qwen3.5 do: within a task each prompt goes on
from the last answer, and with the next task all answers since the last one change. Answers are what the
server generates, greedy and of a fixed length, and their first tokens count as reasoning. They are sent back
as token ids, so that both servers get the same requests up to the tokens of the answers.

Prints for each request, and for all:

* *prompt*: its tokens;
* *new*: those after the longest common beginning with any earlier prompt and its answer;
* those that each server has computed, by its own `timings.prompt_n`, and the seconds that it took.

Both have the whole session in memory. llama.cpp's server has one slot and its default settings besides;
`--llama-flags` gives it others, such as "--checkpoint-min-step 256". `peers_setup.sh DIR llama_server` builds
it.
"""

import argparse
import json
import shlex
import signal
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.llama_server import free_port
from benchmarks.machine import say, write_result
from benchmarks.serve_rates import Server, our_command, start, their_command
from engine.executors.open_model import open_model
from engine.text.common_prefix import common_prefix
from engine.text.tokenizer import Tokenizer
from tests.traces.replay import ROOT, load, names

RESULT_CHARS = 6000
"""Most characters of a file in a result."""
REASONING_TOKENS, ANSWER_TOKENS = 48, 80
"""Tokens of an answer that are reasoning, and all of them."""
CONTEXT = 32_768


@dataclass(frozen=True, slots=True)
class Turn:
    """What the client adds before a request.

    Attributes:
        agent: which agent of the trace sends the request.
        texts: of the messages.
        new_task: whether they are the user's, so that the reasoning before them is dropped; else results.
    """

    agent: str
    texts: tuple[str, ...]
    new_task: bool


@dataclass(frozen=True, slots=True)
class Cost:
    """The tokens of one request, and the seconds until its first token."""

    prompt: int
    new: int
    computed: int
    seconds: float


def turns_of(trace: dict[str, Any]) -> list[Turn]:
    """The turns of a trace's agents; nothing that its client forgets or clears."""
    found = []
    for group in trace["steps"]:
        for step in group if isinstance(group, list) else [group]:
            added = [one for adds in step["adds"] for one in _contents(adds)]
            user = any("results" not in adds for adds in step["adds"])
            found.append(Turn(step["agent"], tuple(map(_text, added)), user))
    return found


def _contents(adds: dict[str, Any]) -> list[Any]:
    if "results" in adds:
        return list(adds["results"])
    content = adds["content"]
    return [part["text"] for part in content] if isinstance(content, list) else [content]


def _text(content: str | dict[str, Any]) -> str:
    if isinstance(content, str):
        return content
    return (ROOT / content["file"]).read_text()[: min(content["chars"], RESULT_CHARS)]


def head_text() -> str:
    """The project's documents, which stand for an agent's system prompt and tools."""
    return "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))


class Session:
    """The client's side of one agent: the history as token ids, without the reasoning that is dropped."""

    def __init__(self, tokenizer: Tokenizer, head: str, head_tokens: int) -> None:
        """Begin with a head, cut to so many tokens."""
        self._tokenizer = tokenizer
        self._end = self._marked("<|im_end|>\n")
        system = tokenizer.encode(head[: 8 * head_tokens])[:head_tokens]
        self._parts = [[*self._marked("<|im_start|>system\n"), *system, *self._end]]
        self._answers: list[tuple[int, list[int]]] = []  # place in `_parts`, without reasoning

    def _marked(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, special=True)

    def prompt(self, turn: Turn) -> list[int]:
        """The prompt after a turn."""
        if turn.new_task:
            for place, answer in self._answers:
                self._parts[place] = answer
            self._answers = []
        for text in turn.texts:
            begin = self._marked("<|im_start|>user\n")
            self._parts.append([*begin, *self._tokenizer.encode(text), *self._end])
        self._parts.append(self._marked("<|im_start|>assistant\n"))
        return [token for part in self._parts for token in part]

    def take(self, answer: Sequence[int]) -> None:
        """Add the answer to the history."""
        self._answers.append((len(self._parts), [*answer[REASONING_TOKENS:], *self._end]))
        self._parts.append([*answer, *self._end])


def sessions_of(
    trace: dict[str, Any], tokenizer: Tokenizer, head_tokens: int
) -> dict[str, Session]:
    """A session for each agent of a trace. Long heads have the project's documents after their own text."""
    found = {}
    for name, agent in trace["agents"].items():
        head = "\n\n".join([*agent["system"], head_text() if agent.get("fills_head") else ""])
        found[name] = Session(tokenizer, head, head_tokens)
    return found


def replay(
    server: Server, sessions: Mapping[str, Session], turns: Sequence[Turn]
) -> Iterator[Cost]:
    """The costs of the requests, one after the other."""
    seen: list[NDArray[np.int32]] = []
    for turn in turns:
        session = sessions[turn.agent]
        prompt = session.prompt(turn)
        with server.running():
            answer = complete(server.port, prompt)
        timings = answer["timings"]
        session.take(answer["tokens"])
        tokens = np.array([*prompt, *answer["tokens"]], np.int32)
        new = len(prompt) - max(
            (common_prefix(tokens[: len(prompt)], one) for one in seen), default=0
        )
        seen.append(tokens)
        yield Cost(len(prompt), new, timings["prompt_n"], timings["prompt_ms"] / 1000)


def complete(port: int, prompt: Sequence[int]) -> dict[str, Any]:
    """The answer of `/completion`, which both servers have."""
    body = {
        "prompt": list(prompt),
        "n_predict": ANSWER_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "cache_prompt": True,
        "return_tokens": True,
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/completion",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=3600) as response:
        answer: dict[str, Any] = json.load(response)
    if len(answer["tokens"]) != ANSWER_TOKENS:
        raise RuntimeError(f"got {len(answer['tokens'])} of {ANSWER_TOKENS} tokens")
    return answer


def table(costs: dict[str, list[Cost]]) -> str:
    """A line for each request, and their sums. The prompts are those of the first server."""
    servers = list(costs)
    columns = ["request", "prompt", "new", *servers, *(f"{name}, s" for name in servers)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    first = costs[servers[0]]
    lines += [
        _line(str(number), first[number - 1], found)
        for number, found in enumerate(zip(*costs.values(), strict=True), 1)
    ]
    sums = [total(one) for one in costs.values()]
    return "\n".join([*lines, _line("all", sums[0], sums)])


def _line(name: str, prompt: Cost, found: Sequence[Cost]) -> str:
    counts = (f"{one.computed:,}" for one in found)
    seconds = (f"{one.seconds:.1f}" for one in found)
    return (
        "| " + " | ".join([name, f"{prompt.prompt:,}", f"{prompt.new:,}", *counts, *seconds]) + " |"
    )


def total(costs: Sequence[Cost]) -> Cost:
    """The sums."""
    return Cost(
        sum(one.prompt for one in costs),
        sum(one.new for one in costs),
        sum(one.computed for one in costs),
        sum(one.seconds for one in costs),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="GGUF file with ChatML's tokens")
    parser.add_argument("--llama-server", type=Path, help="binary; without it only ours")
    parser.add_argument("--llama-flags", default="", help="further flags of llama.cpp's server")
    parser.add_argument("--trace", default="opencode", choices=names())
    parser.add_argument(
        "--head-tokens", type=int, default=4096, help="most tokens of a system prompt"
    )
    parser.add_argument("--turns", type=int, help="only so many requests")
    parser.add_argument("--threads", type=int, default=2, help="threads of each server")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    # So that a run that is cut ends its servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    tokenizer = open_model(options.model).tokenizer
    trace = load(options.trace)
    turns = turns_of(trace)[: options.turns]
    # Without what an earlier run has left on disk, which ours would find.
    ours = [*our_command(options.model, port := free_port(), options.threads), "--swap-bytes", "0"]
    commands = {"pravaha": ours}
    ports = {"pravaha": port}
    if options.llama_server:
        ports["llama.cpp"] = free_port()
        commands["llama.cpp"] = [
            *their_command(
                options.llama_server,
                options.model,
                ports["llama.cpp"],
                slots=1,
                threads=options.threads,
                context=CONTEXT,
            ),
            *shlex.split(options.llama_flags),
        ]
    costs: dict[str, list[Cost]] = {}
    for name, command in commands.items():
        say(f"starting {name}")
        server = start(name, command, ports[name])
        try:
            costs[name] = []
            sessions = sessions_of(trace, tokenizer, options.head_tokens)
            for cost in replay(server, sessions, turns):
                costs[name].append(cost)
                say(f"{name}: {cost.computed:,} of {cost.prompt:,} computed, {cost.new:,} new")
        finally:
            server.process.kill()
            server.process.wait()
    print(table(costs))
    if options.json:
        result = {
            "model": options.model.name,
            "trace": options.trace,
            "llama_flags": options.llama_flags,
            "threads": options.threads,
            "requests": {name: [asdict(one) for one in found] for name, found in costs.items()},
        }
        write_result(options.json, result)


if __name__ == "__main__":
    main()
