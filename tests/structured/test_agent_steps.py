"""Agents on the demo model: the cost of sharing, and steps that are always valid and always end."""

import asyncio
import random

import pytest

from agents.api.errors import BudgetExhausted
from agents.api.events import RunEventType
from agents.model.ask_all import ask_all
from agents.model.decisions import Decider
from agents.model.layout import SharedLayout, system_text
from agents.model.question import Question
from agents.model.session import ModelSession
from agents.steps.measures.answer_items import ANSWERS
from agents.steps.measures.label_items import LABELS
from agents.steps.measures.measure import Measurement
from agents.steps.react import ReactLoop
from agents.workspace.workspace import Workspace
from engine.api.request import Request, SamplingParams
from engine.clients.in_process import InProcessClient
from tests.fakes.step_run import FakeStepRun
from tests.fakes.step_tools import step_tools
from tests.parity.real_engine import BLOCK, TEXT, running

WORDS = ("engine", "cache", "token", "block", "prompt", "answer", "file", "line", "error", "test")
ANSWER = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 60},
        "files": {"type": "array", "items": {"type": "string"}},
        "score": {"type": "number", "minimum": 0, "maximum": 100},
    },
}


@pytest.fixture(scope="module")
def engine(demo_model):
    with running(demo_model, pool_tokens=24_000, prefix_caching=True) as ready:
        yield ready


@pytest.fixture
def session(engine):
    return ModelSession(InProcessClient(engine))


async def test_a_shared_document_is_computed_once(session):
    layout = SharedLayout(session)
    decider = Decider(session, layout)
    labels = Question("season", "Which season is it?", ("spring", "autumn", "winter"))
    questions = [f"What does sentence {n} say about {word}?" for n, word in enumerate(WORDS)]
    before = session.client.snapshot().totals.prompt_tokens
    given = await ask_all(session, layout, decider, TEXT * 20, [*questions, labels], max_tokens=4)
    computed = session.client.snapshot().totals.prompt_tokens - before
    rows = len(questions) + 2
    tails = given.usage.computed_tokens - given.usage.generated_tokens - given.shared_tokens
    assert given.shared_tokens > 500
    assert given.shared_tokens % BLOCK == 0
    assert computed == given.shared_tokens + tails
    assert tails < rows * 60
    assert given.usage.cached_tokens >= (rows - 1) * given.shared_tokens
    again = await ask_all(session, layout, decider, TEXT * 20, questions[:2], max_tokens=4)
    assert again.usage.cached_tokens >= 2 * again.shared_tokens
    assert again.replies == given.replies[:2]


async def test_the_self_test_scores_capabilities(session):
    record = await Measurement((LABELS, ANSWERS)).run(session, SharedLayout(session))
    scores = record.scores()
    assert all(0 <= score <= 1 for score in scores.values())
    assert scores["text"] > 0.5


async def test_a_cancelled_step_leaves_no_request(session):
    request = Request(
        tuple(session.client.tokenize(TEXT)), SamplingParams(max_tokens=2000, ignore_eos=True)
    )
    task = asyncio.create_task(session.generate(request))
    while session.client.snapshot().running == 0:  # noqa: ASYNC110 - nothing to wait for
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while session.num_pending:  # noqa: ASYNC110 - nothing to wait for
        await asyncio.sleep(0)
    while session.client.snapshot().running:  # noqa: ASYNC110 - nothing to wait for
        await asyncio.sleep(0)
    assert session.client.drain(request.request_id) is None


async def make_random_run(session, seed):
    """One run of a random task with random tools, budget and sampling."""
    rng = random.Random(seed)
    names = [
        f"{rng.choice(WORDS)}{n}.{rng.choice(['py', 'md', 'é.txt'])}"
        for n in range(rng.randint(1, 6))
    ]
    files = Workspace.of_texts(
        {name: "\n".join(rng.choices(WORDS, k=rng.randint(1, 40))) for name in names}
    )
    tools = tuple(rng.sample(step_tools(files), rng.randint(1, 4)))
    run = FakeStepRun(
        tools,
        tokens=rng.choice([700, 1500, 3000, 12_000]),
        tool_calls=rng.randint(0, 6),
        max_turns=rng.randint(1, 5),
    )
    layout = SharedLayout(session)
    loop = ReactLoop(
        session,
        layout,
        run,
        files,
        ANSWER,
        thought=rng.random() < 0.3,
        sampling=SamplingParams(
            temperature=rng.choice([0.0, 0.8, 1.5]), seed=seed, top_k=rng.choice([0, 40])
        ),
        max_text=40,
    )
    shared = layout.shared(
        task=" ".join(rng.choices(WORDS, k=8)),
        document=" ".join(rng.choices(WORDS, k=rng.randint(0, 120))),
        system=system_text(tools),
    )
    answer = None
    try:
        answer = await loop.answer_of(shared, "Use a tool if it helps, then answer.")
    except BudgetExhausted:
        assert not loop.steps
    return run, loop, answer


def check(run, loop, answer):
    """Every step is one of the offered tools with valid input; the run ended within its bounds."""
    offered = [event.data["actions"] for event in run.events(RunEventType.STEP_STARTED)]
    tools = {tool.name: tool for tool in run.all_tools}
    assert len(loop.steps) <= run.spec.max_turns
    assert run.meter.tokens_used <= run.meter.budget.tokens
    for step, allowed in zip(loop.steps, offered, strict=True):
        assert step.action in allowed
        if step.action != "final_answer":
            tools[step.action].arguments.model_validate(dict(step.input))
    seen = []
    for name, arguments in run.calls:
        assert (name, arguments) not in seen
        seen = [] if name == "edit" else [*seen, (name, arguments)]
    if answer is not None:
        assert loop.steps[-1].action == "final_answer"
        assert set(answer) == {"text", "files", "score"}


@pytest.mark.parametrize("seed", range(20))
async def test_steps_of_random_tasks_are_valid_and_end(session, seed):
    check(*await make_random_run(session, seed))


@pytest.mark.soak
async def test_steps_of_a_thousand_random_tasks_are_valid_and_end(session):
    for first in range(1000, 2000, 8):
        runs = [make_random_run(session, seed) for seed in range(first, first + 8)]
        for run in await asyncio.gather(*runs):
            check(*run)
    assert session.num_pending == 0
