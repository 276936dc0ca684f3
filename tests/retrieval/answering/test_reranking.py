from dataclasses import replace

from engine.api.request import FinishReason, PromptLogprobs, Request, TokenBatch
from engine.retrieval.answering.answerer import AnswerOptions, ask
from engine.retrieval.api.passage import Passage
from tests.fakes.scripted_client import ScriptedClient
from tests.retrieval.answering.passages import passage
from tests.retrieval.answering.test_answerer import Documents

QUESTION = "Which port does the server listen on?"


class LikelihoodClient(ScriptedClient):
    """Finds the question likely after prompts with a word, and unlikely after all others."""

    def __init__(self, word: str, script: list[str], *, fails: bool = False) -> None:
        super().__init__(script)
        self._word, self._fails = word, fails

    def _deliver(self, request: Request, text: str, finish: FinishReason, *rest: object) -> None:  # type: ignore[override]
        super()._deliver(request, text, finish, *rest)  # type: ignore[arg-type]

    def _answer(self, request: Request) -> None:
        if request.sampling.prompt_logprobs is None:
            super()._answer(request)
            return
        mail = self._mail[request.request_id]
        self._deliver(request, "", FinishReason.ERROR if self._fails else FinishReason.LENGTH)
        value = -1.0 if self._word in self.detokenize(request.prompt_ids) else -6.0
        count = len(request.prompt_ids) - 1
        batch: TokenBatch = mail.pop()
        logprobs = None if self._fails else PromptLogprobs((value,) * count, (1,) * count, ())
        mail.append(replace(batch, prompt_logprobs=logprobs))


def found() -> list[Passage]:
    texts = [f"Text number {n} about {'ports' if n == 3 else 'queues'}." for n in range(7)]
    return [passage(text, chunk_id=n, dense=0.6) for n, text in enumerate(texts)]


def order(client: ScriptedClient, k: int) -> list[int]:
    options = AnswerOptions(k=k, rerank=True)
    return [
        one.chunk_id for one in ask(Documents(*found()), QUESTION, client, options=options).passages
    ]


def test_the_passage_that_makes_the_question_likely_comes_first():
    assert order(LikelihoodClient("ports", ["Yes."]), 3) == [3, 0, 1]


def test_what_is_behind_the_first_five_keeps_its_place():
    assert order(LikelihoodClient("number 6", ["Yes."]), 7) == [0, 1, 2, 3, 4, 5, 6]


def test_nothing_is_generated_to_compare_passages():
    client = LikelihoodClient("ports", ["Yes."])
    order(client, 3)
    *compared, _ = client.requests
    assert len(compared) == 5
    assert {one.sampling.max_tokens for one in compared} == {0}
    assert all(client.detokenize(one.prompt_ids).endswith(QUESTION) for one in compared)


def test_a_failed_comparison_leaves_the_order():
    assert order(LikelihoodClient("ports", ["Yes."], fails=True), 3) == [0, 1, 2]


def test_without_rerank_the_model_is_asked_once():
    client = LikelihoodClient("ports", ["Yes."])
    ask(Documents(*found()), QUESTION, client)
    assert len(client.requests) == 1


def test_a_single_passage_is_not_compared():
    client = LikelihoodClient("ports", ["Yes."])
    ask(Documents(found()[0]), QUESTION, client, options=AnswerOptions(rerank=True))
    assert len(client.requests) == 1
