"""How many everyday answers loop or are cut, for several sampling configurations.

    python benchmarks/loop_rate.py --model FILE [--prompts unseen] [--json FILE]
        [--system TEXT] [--seeds 1] [NAME[:FIELD=VALUE,...]] ...

A configuration is a name and the sampling parameters that a request gives; others are the model's own
generation defaults, as on every interface, or with `bare` the API's. Without one, `api` (temperature 1,
`bare`) and `model` are compared. All prompts run at once, in the model's chat template.

* *loop*: the answer repeats the same tokens without end (`engine.text.repetition`); it is stopped there.
* *cut*: it does not end within 1,500 tokens.
* *repetitive*: over 30 % of its 8-grams of tokens occurred in it before; a stricter measure.
* *distinct-2*: distinct pairs of tokens, as a share of all; the mean over the answers.
* *logprob*: mean log-probability of a token under the model, before penalties and temperature.
* *facts*: answers to 40 questions that contain the right word, a rough measure of quality.
"""

import argparse
import itertools
import json
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import say, write_result
from engine.api.config import EngineConfig
from engine.api.generation_defaults import GenerationDefaults, SamplingChoice
from engine.api.request import FinishReason, Request, SamplingParams
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.request_handle import RequestHandle
from engine.text.repetition import RepetitionDetector

PROMPTS = Path(__file__).parent / "data" / "everyday_prompts.json"
MAX_TOKENS = 1500
FACT_TOKENS = 60
NGRAM = 8
REPETITIVE = 0.3
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Configuration:
    """Sampling parameters under a name.

    Attributes:
        given: those that a request gives.
        bare: ignore the model's generation defaults.
    """

    name: str
    given: dict[str, float]
    bare: bool = False

    def params(self, defaults: GenerationDefaults) -> SamplingParams:
        """The parameters to use."""
        choice = SamplingChoice(SamplingParams(**self.given), frozenset(self.given))
        return choice.for_model(GenerationDefaults() if self.bare else defaults)


@dataclass(slots=True)
class Answer:
    """One answer so far."""

    handle: RequestHandle
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    text: str = ""
    detector: RepetitionDetector = field(default_factory=RepetitionDetector)
    finish: FinishReason | None = None

    def pump(self) -> None:
        """Take new tokens; an answer that loops is stopped."""
        batch = self.handle.drain()
        if batch is None:
            return
        self.token_ids += batch.token_ids
        self.logprobs += batch.logprobs
        self.text += batch.text
        self.finish = batch.finish_reason
        for token in batch.token_ids:
            if not self.detector.found and self.detector.feed([token]):
                self.handle.abort()

    @property
    def cut(self) -> bool:
        """Whether it reached the limit without a loop."""
        return self.finish is FinishReason.LENGTH and not self.detector.found

    @property
    def repetitive(self) -> bool:
        """Whether too many of its n-grams occurred before."""
        ids = self.token_ids
        grams = [tuple(ids[at : at + NGRAM]) for at in range(len(ids) - NGRAM + 1)]
        return len(set(grams)) < (1 - REPETITIVE) * len(grams)

    @property
    def distinct_pairs(self) -> float:
        """Distinct pairs of tokens as a share of all; 1 for an answer of one token."""
        pairs = list(itertools.pairwise(self.token_ids))
        return len(set(pairs)) / len(pairs) if pairs else 1.0


def ask(
    engine: AsyncPravahaEngine, prompts: list[str], params: list[SamplingParams], system: str | None
) -> list[Answer]:
    """The complete answers to prompts that all run at once."""
    answers = []
    head = [{"role": "system", "content": system}] if system else []
    for prompt, sampling in zip(prompts, params, strict=True):
        messages = [*head, {"role": "user", "content": prompt}]
        ids = tuple(engine.tokenizer.encode_chat(messages))
        answers.append(Answer(engine.submit(Request(ids, sampling))))
    while any(answer.finish is None for answer in answers):
        time.sleep(POLL_S)
        for answer in answers:
            if answer.finish is None:
                answer.pump()
    return answers


def measure(
    engine: AsyncPravahaEngine,
    configuration: Configuration,
    prompts: list[str],
    facts: list[tuple[str, list[str]]],
    *,
    system: str | None,
    seeds: int,
) -> dict[str, object]:
    """The rates of one configuration."""
    model = engine.snapshot().model
    assert model is not None
    params = configuration.params(model.generation_defaults)
    fields = {name: getattr(params, name) for name in SamplingParams.__dataclass_fields__}

    def seeded(count: int, limit: int) -> list[SamplingParams]:
        changes = {"logprobs": 0, "max_tokens": limit}
        return [SamplingParams(**{**fields, **changes, "seed": seed}) for seed in range(count)]

    repeated = [prompt for prompt in prompts for _ in range(seeds)]
    answers = ask(engine, repeated, seeded(len(repeated), MAX_TOKENS), system)
    questions = [question for question, _ in facts]
    replies = ask(engine, questions, seeded(len(questions), FACT_TOKENS), system)
    right = [
        any(word in f" {reply.text.lower()}" for word in words)
        for reply, (_, words) in zip(replies, facts, strict=True)
    ]
    looped = [prompt for prompt, a in zip(repeated, answers, strict=True) if a.detector.found]
    cut = [prompt for prompt, a in zip(repeated, answers, strict=True) if a.cut]
    tokens = sum(len(answer.token_ids) for answer in answers)
    return {
        "answers": len(answers),
        "loop": len(looped) / len(answers),
        "cut": len(cut) / len(answers),
        "repetitive": statistics.mean(answer.repetitive for answer in answers),
        "median_tokens": statistics.median(len(answer.token_ids) for answer in answers),
        "distinct_2": statistics.mean(answer.distinct_pairs for answer in answers),
        "logprob": sum(sum(answer.logprobs) for answer in answers) / tokens,
        "facts": statistics.mean(right),
        "looped_prompts": looped,
        "cut_prompts": cut,
        "params": {name: value for name, value in fields.items() if name in _SHOWN},
    }


_SHOWN = frozenset(GenerationDefaults.__dataclass_fields__)
_COLUMNS = ("loop", "cut", "repetitive", "median_tokens", "distinct_2", "logprob", "facts")


def row(name: str, rates: dict[str, object]) -> str:
    """One line of the table."""
    shown = {"median_tokens": "{:.0f}", "distinct_2": "{:.2f}", "logprob": "{:.2f}"}
    cells = [shown.get(column, "{:.1%}").format(rates[column]) for column in _COLUMNS]
    return f"{name:28}" + "".join(f"{cell:>14}" for cell in cells)


def configuration(text: str) -> Configuration:
    """Parse `NAME[:FIELD=VALUE,...]`; the field `bare` has no value."""
    name, _, rest = text.partition(":")
    words = [word for word in rest.split(",") if word]
    given: dict[str, float] = {}
    for word in words:
        if word != "bare":
            key, _, value = word.partition("=")
            given[key] = json.loads(value)
    return Configuration(name, given, bare="bare" in words)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="GGUF file or directory")
    parser.add_argument("--prompts", choices=("tuning", "unseen"), default="unseen")
    parser.add_argument("--system", help="a system prompt; by default the chat template's own")
    parser.add_argument("--seeds", type=int, default=1, help="answers per prompt")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    parser.add_argument(
        "configurations", nargs="*", type=configuration, metavar="NAME[:FIELD=VALUE,...]"
    )
    options = parser.parse_args()
    chosen = options.configurations or [
        Configuration("api", {}, bare=True),
        Configuration("model", {}),
    ]
    data = json.loads(PROMPTS.read_text())
    facts = [(question, words) for question, words in data["facts"]]
    engine = AsyncPravahaEngine(EngineConfig(model=options.model, name=options.model.stem))
    engine.start()
    result: dict[str, object] = {}
    try:
        engine.wait_ready()
        print(f"{'':28}" + "".join(f"{column.replace('_', ' '):>14}" for column in _COLUMNS))
        for one in chosen:
            began = time.monotonic()
            result[one.name] = rates = measure(
                engine,
                one,
                data[options.prompts],
                facts,
                system=options.system,
                seeds=options.seeds,
            )
            print(row(one.name, rates), flush=True)
            say(f"{one.name}: {time.monotonic() - began:.0f} s")
    finally:
        engine.shutdown()
    if options.json:
        values = {"prompts": options.prompts, "system": options.system, "seeds": options.seeds}
        write_result(options.json, values | {"max_tokens": MAX_TOKENS, "configurations": result})


if __name__ == "__main__":
    main()
