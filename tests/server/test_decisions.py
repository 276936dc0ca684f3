"""`POST /v1/decisions`: predicates, choices and scores, in the shape of OpenAI's endpoint."""

import base64
import math
from dataclasses import replace

import httpx
import openai
import pytest
from tokenizers import normalizers

from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import Policy, mode_actions
from app.server.calls.deciding import rows_at_once
from engine.api.decisions import MAX_OPTIONS, MAX_QUESTIONS
from engine.api.request import FinishReason
from engine.decisions.prompts import INSTRUCTION
from tests.fakes.image_parser import ImageParser
from tests.fakes.images import whole_png
from tests.server.byte_engine import byte_engine, wait_until
from tests.server.live import live, post_and_stay
from tests.server.scripted_engine import ScriptedEngine, batch
from tests.server.toy_tokenizer import IM_END, byte_tokenizer

TEXT = "The parcel came two weeks late, and the box was broken. " * 3
PREDICATE = {"type": "predicate", "instructions": "The writer is content.", "name": "content"}
CHOICE = {
    "type": "choice",
    "instructions": "What is it about?",
    "choices": [
        {"value": "delivery"},
        {"value": "price"},
        {"value": "taste", "description": "food"},
    ],
    "name": "topic",
}
SCORE = {
    "type": "score",
    "instructions": "How angry is the writer?",
    "levels": [{"label": "calm"}, {"label": "annoyed"}, {"label": "angry"}],
}
SEEING_TEMPLATE = """
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}{{- message.content }}{%- else %}
        {%- for part in message.content %}
            {{- part.text if part.type == 'text' else '<|endoftext|>' }}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
"""A template that writes one token for an image."""
PNG = "data:image/png;base64,iVBORw0KGgo="


def shown(request):
    """The text of a prompt."""
    return bytes(one for one in request.prompt_ids if one < 256).decode()


def labels(request):
    """What stands behind each label of the question, and how far the answer is begun."""
    lines = [line.split(") ", 1) for line in shown(request).split("\n") if ") " in line[:4]]
    begun = bytes(request.prompt_ids[-1:]).decode() if request.prompt_ids[-1] != ord("\n") else ""
    return {label: option.split(":")[0] for label, option in lines}, begun


def preferring(**weights):
    """A model that gives options these weights, and others the weight 1, whatever their labels are."""

    def script(request):
        options, begun = labels(request)
        row = []
        for token in request.sampling.logprob_token_ids:
            starts = [
                option for label, option in options.items() if label.startswith(begun + chr(token))
            ]
            behind = [option for label, option in options.items() if label.startswith(begun)]
            share, total = (sum(weights.get(one, 1.0) for one in some) for some in (starts, behind))
            row.append(math.log(share / total) if share else -math.inf)
        return [replace(batch(request, "A", FinishReason.LENGTH), token_id_logprobs=(tuple(row),))]

    return script


class Served:
    """A server whose engine answers by a script."""

    def __init__(self, engine, server, api):
        self.engine, self.server, self.api = engine, server, api
        self.http = httpx.Client(base_url=server.url, timeout=60)

    def post(self, **fields):
        body = {"model": "toy", "input": TEXT, "questions": [PREDICATE]} | fields
        return self.http.post("/v1/decisions", json=body)

    def refusal(self, **fields):
        answer = self.post(**fields)
        assert answer.status_code == 400, answer.text
        return answer.json()["error"]


@pytest.fixture(scope="module")
def scripted():
    engine = ScriptedEngine(preferring(yes=3.0, delivery=8.0, angry=2.0, v200=745.0))
    engine.info = replace(engine.info, context_length=8192)
    with (
        live(engine) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as api,
    ):
        yield Served(engine, server, api)


def test_the_official_client_gets_an_answer_of_each_type_in_order(scripted):
    questions = [SCORE, PREDICATE, CHOICE]
    found = scripted.api.decisions.create(model="toy", input=TEXT, questions=questions)
    score, predicate, choice = found.answers
    assert found.model == "toy"
    assert (predicate.type, predicate.name) == ("predicate", "content")
    assert predicate.probability == pytest.approx(0.75)
    assert (choice.type, choice.name, choice.choice) == ("choice", "topic", "delivery")
    assert choice.confidence == pytest.approx(0.8)
    assert [one.value for one in choice.probabilities] == ["delivery", "price", "taste"]
    assert [one.probability for one in choice.probabilities] == pytest.approx([0.8, 0.1, 0.1])
    assert (score.type, score.name) == ("score", None)
    assert [(one.value, one.label) for one in score.probabilities] == [
        (0, "calm"), (1, "annoyed"), (2, "angry"),
    ]  # fmt: skip
    assert score.score == pytest.approx(0.25 * 1 + 0.5 * 2)
    assert score.confidence == pytest.approx(0.5)
    assert found.usage.output_tokens == 6
    assert found.usage.output_tokens_details.reasoning_tokens == 0
    assert found.usage.total_tokens == found.usage.input_tokens + 6


async def test_the_asynchronous_client_gets_the_same(scripted):
    async with openai.AsyncOpenAI(base_url=f"{scripted.server.url}/v1", api_key="none") as api:
        found = await api.decisions.create(model="toy", input=TEXT, questions=[PREDICATE])
    assert found.answers[0].probability == pytest.approx(0.75)


def test_most_choices_are_told_apart_whatever_they_begin_with(scripted):
    values = [f"v{number}" for number in range(MAX_OPTIONS)]
    question = {"type": "choice", "instructions": "x", "choices": [{"value": v} for v in values]}
    (answer,) = scripted.post(questions=[question]).json()["answers"]
    assert (answer["choice"], answer["confidence"]) == ("v200", pytest.approx(745 / 999))
    assert [one["value"] for one in answer["probabilities"]] == values
    shares = {one["value"]: one["probability"] for one in answer["probabilities"]}
    assert math.fsum(shares.values()) == pytest.approx(1)
    assert shares["v0"] == shares["v254"] == pytest.approx(1 / 999)


@pytest.mark.parametrize("count", [2, 26, 27, 30, 31])
def test_every_number_of_levels_has_a_label_for_each(scripted, count):
    levels = [{"label": f"level {number}"} for number in range(count)]
    question = {"type": "score", "instructions": "x", "levels": levels}
    (answer,) = scripted.post(questions=[question]).json()["answers"]
    shares = [one["probability"] for one in answer["probabilities"]]
    assert shares == pytest.approx([1 / count] * count)
    assert answer["score"] == pytest.approx((count - 1) / 2)


def test_a_boolean_and_the_text_of_the_same_spelling_are_two_choices(scripted):
    choices = [{"value": True}, {"value": "true"}, {"value": False}]
    question = {"type": "choice", "instructions": "x", "choices": choices}
    (answer,) = scripted.post(questions=[question]).json()["answers"]
    assert [one["value"] for one in answer["probabilities"]] == [True, "true", False]
    options = set(labels(scripted.engine.requests[-1])[0].values())
    assert options == {"true", '"true"', "false"}


def test_the_model_reads_the_input_once_before_the_question(scripted):
    parts = [
        {"type": "input_text", "text": "Is this so:"},
        {"type": "input_json", "data": {"late": True}},
    ]
    scripted.post(questions=[PREDICATE | {"instructions": parts}])
    text = shown(scripted.engine.requests[-1])
    assert text.count(TEXT.strip()) == 1
    assert text.endswith('assistant\nIs this so:\n{"late":true}\nA) no\nB) yes\n')
    assert text.index(INSTRUCTION) < text.index("assistant")


def test_a_conversation_with_calls_of_tools_is_an_input(scripted):
    conversation = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_json", "data": [{"id": 7}]}]},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "seven"},
        {"type": "custom_tool_call", "call_id": "b", "name": "run", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "b",
         "output": [{"type": "input_text", "text": "a.txt"}]},
        {"type": "message", "role": "assistant", "phase": "final_answer",
         "content": [{"type": "output_text", "text": "Done."}, {"type": "refusal", "refusal": "No."}]},
    ]  # fmt: skip
    answer = scripted.post(input=conversation)
    assert answer.status_code == 200, answer.text
    text = shown(scripted.engine.requests[-1])
    places = [text.index(one) for one in ("Be kind.", '[{"id":7}]', "seven", "a.txt", "Done.No.")]
    assert places == sorted(places)
    assert f"user\n{INSTRUCTION}" in text


def weighing(mass, **weights):
    """As `preferring`, for a model whose labels have a probability of `mass` together."""
    script = preferring(**weights)

    def less(request):
        (one,) = script(request)
        row = tuple(value + math.log(mass) for value in one.token_id_logprobs[0])
        return [replace(one, token_id_logprobs=(row,))]

    return less


def test_a_question_that_the_model_would_answer_otherwise_is_a_refusal():
    engine = ScriptedEngine(weighing(0.001, yes=3.0))
    with live(engine) as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="-") as api:
        (refused,) = api.decisions.create(model="toy", input="x", questions=[PREDICATE]).answers
        (read,) = api.decisions.create(
            model="toy", input="x", questions=[PREDICATE], extra_body={"min_label_mass": 0.0005}
        ).answers
    assert (refused.type, refused.name) == ("refusal", "content")
    assert refused.label_mass == pytest.approx(0.001)
    assert (read.type, read.probability) == ("predicate", pytest.approx(0.75))


def test_answers_that_are_too_close_are_marked():
    engine = ScriptedEngine(weighing(0.5, yes=1.1))
    with live(engine) as server:
        served = Served(engine, server, None)
        (close,) = served.post().json()["answers"]
        (apart,) = served.post(margin=0.01).json()["answers"]
    assert close["abstained"]
    assert not apart["abstained"]
    assert close["probability"] == pytest.approx(1.1 / 2.1)
    assert close["label_mass"] == pytest.approx(0.5)


def test_confidence_is_a_share_of_all_tokens():
    engine = ScriptedEngine(weighing(0.5, delivery=8.0))
    with live(engine) as server:
        (answer,) = Served(engine, server, None).post(questions=[CHOICE]).json()["answers"]
    assert answer["confidence"] == pytest.approx(0.8 * 0.5)
    assert answer["probabilities"][0]["probability"] == pytest.approx(0.8)


def test_calibration_subtracts_what_is_said_about_nothing_and_asks_it_once():
    def biased(request):
        about_nothing = "N/A" in shown(request)
        weights = {"yes": 2.0} if about_nothing else {"yes": 6.0}
        return preferring(**weights)(request)

    engine = ScriptedEngine(biased)
    with live(engine) as server:
        served = Served(engine, server, None)
        (raw,) = served.post().json()["answers"]
        (first,) = served.post(calibrate=True).json()["answers"]
        after = len(engine.requests)
        answer = served.post(input="Another text.", calibrate=True).json()
        kept = len(engine.requests) - after
        (scale,) = served.post(questions=[SCORE], calibrate=True).json()["answers"]
    assert raw["probability"] == pytest.approx(6 / 7)
    assert first["probability"] == pytest.approx(3 / 4)  # odds of 6 less odds of 2
    assert answer["answers"][0]["probability"] == pytest.approx(3 / 4)
    assert (after, kept) == (2 + 4, 2)
    assert scale["score"] == pytest.approx(1)
    assert len(engine.requests) == after + kept + 2  # a scale is not calibrated


BY_ID = [
    {"id": "happy", "type": "yes_no", "question": "The writer is content.", "yes": "at all", "no": {"a": 1}},
    {"id": "topic", "type": "choice", "question": {"what": "topic"},
     "options": [{"name": "delivery", "description": ["late"]}, {"name": "price"}, {"name": "taste"}]},
    {"id": "anger", "type": "score", "question": "How angry?", "levels": ["calm", "annoyed", "angry"]},
]  # fmt: skip


def test_questions_with_ids_are_answered_by_them(scripted):
    answer = scripted.post(questions=BY_ID, input={"text": "Late!"}, temperature=1.0).json()
    assert (answer["object"], answer["model"]) == ("decisions", "toy")
    happy, topic, anger = (answer["answers"][one["id"]] for one in BY_ID)
    assert happy == {
        "type": "yes_no", "label_mass": pytest.approx(1),
        "probabilities": {"yes": pytest.approx(0.75), "no": pytest.approx(0.25)},
    }  # fmt: skip
    assert (topic["choice"], topic["probabilities"]["delivery"]) == ("delivery", pytest.approx(0.8))
    assert (anger["score"], list(anger["probabilities"])) == (pytest.approx(1.25), ["0", "1", "2"])
    usage = answer["usage"]
    assert usage["prompt_tokens"] == usage["total_tokens"] > 0
    texts = [shown(one) for one in scripted.engine.requests[-6:]]
    assert all('{"text":"Late!"}' in text for text in texts)
    assert 'The writer is content.\nyes: at all\nno: {"a":1}\n' in texts[0]
    assert '{"what":"topic"}\nA) delivery: ["late"]' in texts[2]


def test_the_first_model_decides_where_none_is_named(scripted):
    body = {"input": TEXT, "questions": [PREDICATE]}
    assert scripted.http.post("/v1/decisions", json=body).json()["model"] == "toy"


def test_questions_with_ids_are_never_refused():
    engine = ScriptedEngine(weighing(0.001, yes=3.0))
    with live(engine) as server:
        answer = Served(engine, server, None).post(questions=BY_ID[:1]).json()
    assert answer["answers"]["happy"]["label_mass"] == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("questions", "words"),
    [
        ([BY_ID[0], PREDICATE], "questions[1].id"),
        ([BY_ID[0], BY_ID[0]], "the same id"),
        ([BY_ID[0] | {"id": ""}], "questions[0].id"),
        ([BY_ID[0] | {"surprise": 1}], "'surprise'"),
        ([BY_ID[0] | {"type": "predicate"}, 5], "questions[1].id"),
        ([BY_ID[0] | {"question": None}], "questions[0].instructions"),
        ([BY_ID[1] | {"options": ["a", "b"]}], "questions[0].choices[0]"),
        ([BY_ID[1] | {"options": [{"name": "a", "size": 1}, {"name": "b"}]}], "choices[0].size"),
        ([BY_ID[2] | {"levels": 7}], "questions[0].levels"),
        ([BY_ID[2] | {"levels": ["a"]}], "at least 2"),
    ],
)
def test_a_refusal_of_questions_with_ids_says_what_is_wrong(scripted, questions, words):
    assert words in scripted.refusal(questions=questions)["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0.5}, {"images": ["data:,"]}, {"return_prompt_token_ids": True},
        {"prompt_format_version": 1}, {"chat_template_kwargs": {"enable_thinking": True}},
    ],
)  # fmt: skip
def test_what_the_other_servers_take_and_this_one_does_not_is_refused(scripted, fields):
    (param,) = fields
    assert scripted.refusal(**fields)["param"] == param


def test_a_salt_is_that_of_all_rows(scripted):
    before = len(scripted.engine.requests)
    scripted.post(cache_salt="mine", calibrate=True)
    assert {one.cache_salt for one in scripted.engine.requests[before:]} == {"mine"}


def test_control_tokens_in_input_and_questions_stay_text(scripted):
    scripted.post(input="a<|im_end|>b", questions=[PREDICATE | {"instructions": "c<|im_end|>d"}])
    request = scripted.engine.requests[-1]
    assert "a<|im_end|>b" in shown(request)
    assert "c<|im_end|>d" in shown(request)
    assert request.prompt_ids.count(IM_END) == 1


def test_fields_without_effect_are_listed(scripted):
    answer = scripted.post(
        safety_identifier="u", prompt_cache_key="k", prompt_cache_options={"mode": "explicit"}
    )
    assert answer.status_code == 200
    assert set(answer.headers["x-pravaha-without-effect"].split(",")) == {
        "safety_identifier", "prompt_cache_key", "prompt_cache_options",
    }  # fmt: skip


def of_type(**fields):
    return {"questions": [{"instructions": "x"} | fields]}


def nested(depth):
    value = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"questions": []}, "questions"),
        ({"questions": [PREDICATE] * (MAX_QUESTIONS + 1)}, "questions"),
        ({"questions": [PREDICATE, {"type": "rank", "instructions": "x"}]}, "questions[1].type"),
        ({"questions": [{"type": "predicate"}]}, "questions[0].instructions"),
        ({"questions": [PREDICATE | {"instructions": " "}]}, "questions[0].instructions"),
        ({"questions": [PREDICATE | {"instructions": []}]}, "questions[0].instructions"),
        ({"questions": [PREDICATE | {"surprise": 1}]}, "questions[0].surprise"),
        ({"questions": [PREDICATE | {"choices": CHOICE["choices"]}]}, "questions[0].choices"),
        (of_type(type="choice"), "questions[0].choices"),
        (of_type(type="choice", choices=[{"value": "a"}]), "questions[0].choices"),
        (of_type(type="choice", choices=[{"value": "a"}] * 2), "questions[0].choices"),
        (of_type(type="choice", choices=[{"value": True}] * 2), "questions[0].choices"),
        (of_type(type="choice", choices=[{"value": 1}, {"value": "a"}]), "questions[0].choices[0].value"),
        (
            of_type(type="choice", choices=[{"value": str(n)} for n in range(MAX_OPTIONS + 1)]),
            "questions[0].choices",
        ),
        (of_type(type="score"), "questions[0].levels"),
        (of_type(type="score", levels=[{"label": "a"}]), "questions[0].levels"),
        (of_type(type="score", levels=[{"label": "a"}] * 2), "questions[0].levels"),
        (of_type(type="score", levels=[{"label": ""}] * 2), "questions[0].levels[0].label"),
        (
            of_type(type="predicate", instructions=[{"type": "input_image", "image_url": PNG}]),
            "questions[0].instructions[0]",
        ),
        (of_type(type="predicate", instructions=[{"type": "text"}]), "questions[0].instructions[0]"),
        (
            of_type(type="predicate", instructions=[{"type": "input_json", "data": [1]}]),
            "questions[0].instructions[0].data",
        ),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input[0].type"),
        ({"input": [{"role": "assistant", "content": ""}]}, "input"),
        ({"input": [{"type": "function_call_output", "call_id": "a", "output": "x"}]}, "input[0].call_id"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_json", "data": nested(33)}]}]},
            "input[0].content[0].data",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": PNG}]}]},
            "input[0].content[0].image_url",
        ),
        ({"input": "x" * 9000}, "input"),
        ({"joint": True}, "joint"),
        ({"margin": 1.5}, "margin"),
        ({"min_label_mass": -1}, "min_label_mass"),
        ({"calibrate": "yes"}, "calibrate"),
        ({"cache_salt": ""}, "cache_salt"),
        (of_type(type="predicate", instructions="x" * 9000), "questions[0]"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_member(scripted, fields, param):
    before = len(scripted.engine.requests)
    assert scripted.refusal(**fields)["param"] == param
    assert len(scripted.engine.requests) == before


def test_json_of_the_deepest_level_is_read(scripted):
    content = [{"type": "input_json", "data": nested(32)}]
    assert scripted.post(input=[{"role": "user", "content": content}]).status_code == 200


def test_an_unknown_model_is_a_404(scripted):
    answer = scripted.post(model="gpt-6-luna")
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "model")


def test_a_row_that_fails_is_an_error_of_the_engine():
    engine = ScriptedEngine(lambda request: [batch(request, "", FinishReason.ERROR, "broken")])
    with live(engine) as server:
        body = {"model": "toy", "input": "x", "questions": [PREDICATE]}
        answer = httpx.post(f"{server.url}/v1/decisions", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "engine_error")


def test_a_tokenizer_without_tokens_for_labels_is_a_400():
    engine = ScriptedEngine(preferring())
    choices = [{"value": str(number)} for number in range(27)]
    with live(engine) as server:
        served = Served(engine, server, None)
        engine.tokenizer = byte_tokenizer(normalizer=normalizers.Replace("1", "0"))
        assert served.post(**of_type(type="choice", choices=choices[:26])).status_code == 200
        error = served.refusal(**of_type(type="choice", choices=choices))
        assert (error["param"], error["code"]) == ("model", "model_not_supported")
        engine.tokenizer = byte_tokenizer(normalizer=normalizers.Replace("B", "A"))
        error = served.refusal()
        assert (error["param"], error["code"]) == ("model", "model_not_supported")


def test_guardrails_check_input_and_questions():
    guardrails = Guardrails(Policy(*mode_actions("redact"), blocklist=("secret plan",)))
    engine = ScriptedEngine(preferring())
    with live(engine, guardrails=guardrails) as server:
        served = Served(engine, server, None)
        error = served.refusal(input="The secret plan.")
        assert (error["param"], error["code"]) == ("input", "content_filter")
        error = served.refusal(questions=[PREDICATE, PREDICATE | {"instructions": "secret plan"}])
        assert (error["param"], error["code"]) == ("questions[1].instructions", "content_filter")
        choices = [{"value": "a"}, {"value": "the secret plan"}]
        error = served.refusal(**of_type(type="choice", choices=choices))
        assert (error["param"], error["code"]) == ("questions[0]", "content_filter")
        flagged = served.post(input="Write to bob.smith@gmail.com.")
        assert "email" in flagged.headers["x-pravaha-guardrails"]
    assert len(engine.requests) == 2


BLOCK = 16


def test_many_questions_compute_the_input_once():
    questions = [PREDICATE | {"name": str(number)} for number in range(40)]
    questions = [one | {"instructions": f"It is number {one['name']}."} for one in questions]
    text = "Twenty-one parcels came late. " * 40
    with byte_engine(context=2048, blocks=2048, block_size=BLOCK) as engine, live(engine) as server:
        served = Served(engine, server, None)
        answer = served.post(input=text, questions=questions).json()
        computed = engine.snapshot().totals.prompt_tokens
        again = served.post(input=text, questions=questions).json()
    assert [one["name"] for one in answer["answers"]] == [str(number) for number in range(40)]
    usage = answer["usage"]
    shared = -(-(len(text) + len(INSTRUCTION)) // BLOCK) * BLOCK
    tails = usage["input_tokens"] - shared
    # Each question is asked twice, and nothing else is computed twice.
    assert len(text) < computed <= shared + 2 * tails + BLOCK
    assert usage["input_tokens_details"] == {
        "cached_tokens": 0,
        "cache_write_tokens": usage["input_tokens"],
    }
    assert usage["output_tokens"] == 80
    details = again["usage"]["input_tokens_details"]
    assert len(text) < details["cached_tokens"] < len(text) + len(INSTRUCTION) + 3 * BLOCK
    assert again["answers"] == answer["answers"]


def test_answers_are_those_of_the_questions_asked_alone():
    with byte_engine(context=2048, blocks=1024) as engine, live(engine, max_choices=4) as server:
        served = Served(engine, server, None)
        questions = [SCORE, PREDICATE, CHOICE, SCORE, PREDICATE]
        together = served.post(questions=questions).json()["answers"]
        alone = [served.post(questions=[one]).json()["answers"][0] for one in questions]
    assert together == alone
    for answer in together:
        if "probabilities" in answer:
            assert sum(one["probability"] for one in answer["probabilities"]) == pytest.approx(1)


def test_a_client_that_leaves_ends_its_rows():
    engine = ScriptedEngine(lambda request: [])
    with live(engine, max_choices=4) as server:
        body = {"model": "toy", "input": TEXT, "questions": [PREDICATE] * 40}
        with post_and_stay(server.url, "/v1/decisions", body):
            assert engine.submitted.acquire(timeout=60)
        wait_until(lambda: len(engine.aborted) == 4)
        wait_until(lambda: not server.context.drain.active)
    assert len(engine.requests) == 4  # no row of the next ones was begun


def test_the_text_of_an_image_is_read():
    image = whole_png(4, 2)
    url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    parts = [{"type": "input_image", "image_url": url}]
    engine = ScriptedEngine(preferring(yes=3.0))
    with (
        ImageParser({image: "Invoice 4711"}).reader() as reader,
        live(engine, image_reader=reader) as server,
    ):
        served = Served(engine, server, None)
        answer = served.post(input=[{"role": "user", "content": parts}])
        error = served.refusal(
            input=[
                {"role": "user", "content": [parts[0] | {"image_url": "https://a.example/b.png"}]}
            ]
        )
    assert answer.json()["answers"][0]["probability"] == pytest.approx(0.75)
    assert answer.headers["x-pravaha-images"] == "ocr"
    assert "Invoice 4711" in shown(engine.requests[0])
    assert error["param"] == "input[0].content[0].image_url"


def test_a_model_that_sees_images_is_asked_behind_them():
    url = f"data:image/png;base64,{base64.b64encode(whole_png(4, 2)).decode()}"
    content = [{"type": "input_image", "image_url": url}]
    engine = ScriptedEngine(preferring(yes=3.0), template=SEEING_TEMPLATE)
    engine.info = replace(engine.info, sees_images=True)
    engine.place_images = lambda prompt, images: (prompt, ("placed",) * len(images))
    with live(engine) as server:
        answer = Served(engine, server, None).post(input=[{"role": "user", "content": content}])
    assert answer.status_code == 200, answer.text
    assert answer.json()["answers"][0]["probability"] == pytest.approx(0.75)
    assert answer.headers["x-pravaha-images"] == "model"
    assert [request.images for request in engine.requests] == [("placed",)] * 2
    assert INSTRUCTION in shown(engine.requests[0])


def test_a_draining_server_takes_none():
    engine = ScriptedEngine(preferring())
    with live(engine) as server:
        server.context.drain.begin()
        body = {"model": "toy", "input": "x", "questions": [PREDICATE]}
        answer = httpx.post(f"{server.url}/v1/decisions", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")


@pytest.mark.parametrize(
    ("length", "rows"), [(0, 64), (100, 64), (2048, 64), (8192, 16), (30_000, 4), (10**6, 4)]
)
def test_rows_of_a_long_input_are_submitted_a_few_at_a_time(length, rows):
    assert rows_at_once(length, 64) == rows
    assert rows_at_once(length, 2) == 2
