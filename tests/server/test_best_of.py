"""`best_of` on `/v1/completions`: the candidates that `n` gives, ranked by mean logprob."""

import httpx
import pytest

from app.server.calls.best_of import best_candidates
from app.server.process.config import ServerConfig
from engine.api.request import FinishReason, RequestOutput, Timings
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

ASK = {
    "model": "toy",
    "prompt": "Once upon a time",
    "max_tokens": 9,
    "temperature": 1.5,
    "seed": 11,
    "ignore_eos": True,
}
TIMINGS = Timings(0.0, 0.0, 0.0, 0.0)


def post(client, **fields):
    return client.post("/v1/completions", json=ASK | fields)


def complete(client, **fields):
    response = post(client, **fields)
    assert response.status_code == 200, response.text
    return response.json()


def mean(choice):
    logprobs = choice["logprobs"]["token_logprobs"]
    return sum(logprobs) / len(logprobs)


def ranked(choices):
    return sorted(choices, key=mean, reverse=True)


def test_the_likeliest_candidates_are_the_choices_best_first(client):
    candidates = complete(client, n=6, logprobs=2)["choices"]
    best = complete(client, n=2, best_of=6, logprobs=2)["choices"]
    expected = ranked(candidates)
    assert [one["text"] for one in best] == [one["text"] for one in expected[:2]]
    assert [one["logprobs"] for one in best] == [one["logprobs"] for one in expected[:2]]
    assert [one["index"] for one in best] == [0, 1]
    # Otherwise the order of generation would pass, too.
    assert expected[:2] != candidates[:2]
    assert len({one["text"] for one in candidates}) == 6


def test_logprobs_are_returned_only_on_request(client):
    shown = complete(client, best_of=6, logprobs=0)["choices"]
    hidden = complete(client, best_of=6)["choices"]
    assert len(hidden) == 1
    assert hidden[0]["logprobs"] is None
    assert hidden[0]["text"] == shown[0]["text"]


def test_each_prompt_has_candidates_of_its_own(client):
    prompts = ["abc", "Hello there", "x"]
    together = complete(client, prompt=prompts, n=2, best_of=4, echo=True)["choices"]
    alone = [
        choice["text"]
        for prompt in prompts
        for choice in complete(client, prompt=prompt, n=2, best_of=4, echo=True)["choices"]
    ]
    assert [choice["text"] for choice in together] == alone
    assert [choice["index"] for choice in together] == list(range(6))
    starts = [prompt for prompt in prompts for _ in range(2)]
    for choice, prompt in zip(together, starts, strict=True):
        assert choice["text"].startswith(prompt)


def test_usage_counts_every_candidate_and_the_prompt_once(client, engine):
    before = engine.snapshot().totals
    prompt = "candidates of one prompt " * 4
    answer = complete(client, prompt=prompt, best_of=5)
    usage, totals = answer["usage"], engine.snapshot().totals
    assert len(answer["choices"]) == 1
    assert usage["completion_tokens"] == 5 * 9
    assert usage["prompt_tokens"] == len(prompt)
    assert usage["total_tokens"] == len(prompt) + 5 * 9
    assert totals.generation_tokens - before.generation_tokens == 5 * 9
    # Each candidate but the first computes the last token again, to sample from its logits.
    assert totals.prompt_tokens - before.prompt_tokens == len(prompt) + 4


def test_a_seed_replays_the_choice_and_names_the_candidate(client):
    first, again = (complete(client, best_of=6, return_timings=True) for _ in range(2))
    (choice,), (other,) = first["choices"], again["choices"]
    assert choice["text"] == other["text"]
    assert complete(client, seed=choice["seed"])["choices"][0]["text"] == choice["text"]


def test_as_many_candidates_as_choices_changes_nothing(client):
    plain = complete(client, n=3)["choices"]
    assert complete(client, n=3, best_of=3)["choices"] == plain
    assert complete(client, n=3, best_of=None)["choices"] == plain
    assert post(client, best_of=1, stream=True).status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"best_of": 2, "n": 3},
        {"best_of": 2, "stream": True},
        {"best_of": 3, "n": 2, "stream": True},
        {"best_of": 0},
        {"best_of": -1},
        {"best_of": True},
        {"best_of": "2"},
        {"best_of": ServerConfig().max_choices + 1},
        {"best_of": ServerConfig().max_choices, "prompt": ["a", "b"]},
    ],
)
def test_refused_by_name(client, fields):
    response = post(client, **fields)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "best_of"


def test_chats_do_not_have_it(client):
    body = {"model": "toy", "messages": [{"role": "user", "content": "hi"}], "best_of": 2}
    error = client.post("/v1/chat/completions", json=body).json()["error"]
    assert (error["param"], error["code"]) == ("best_of", "unsupported_parameter")


def test_a_failed_candidate_fails_the_call():
    def script(request):
        ending = FinishReason.ERROR if request.request_id.endswith("-1") else FinishReason.STOP
        return words("ok", finish=ending)(request)

    with live(ScriptedEngine(script)) as server, httpx.Client(base_url=server.url) as http:
        assert post(http, best_of=3).status_code == 500


def output(*logprobs):
    ids = tuple(range(len(logprobs)))
    return RequestOutput(
        "r", 1, ids, "", FinishReason.STOP, TIMINGS, seed=0, logprobs=tuple(logprobs)
    )


def test_the_mean_counts_not_the_sum_and_equals_keep_their_order():
    long, short, equal = output(-1.0, -1.0, -1.0), output(-2.0), output(-1.0)
    best = best_candidates([short, long, equal], n=2, candidates=3)
    assert best[0] is long
    assert best[1] is equal


def test_candidates_without_tokens_are_given_as_they_came():
    empty, other = output(), output()
    (best,) = best_candidates([empty, other], n=1, candidates=2)
    assert best is empty
