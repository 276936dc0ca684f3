"""A tokenizer, a chat template and an engine client small enough to predict by hand.

The tokenizer gives each pair of equal letters one token (so that boundaries matter), every other
character its own, and knows a few control tokens. No thread: tests deliver the answers.
"""

import re
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jinja2

from engine.api.available_model import AvailableModel
from engine.api.block_detail import BlockDetail, PrefixTree
from engine.api.chat import ChatMessage
from engine.api.errors import EngineUnavailable, InvalidRequest, PravahaError
from engine.api.event_ring import EventBatch, EventRing
from engine.api.fork_price import ForkPrice
from engine.api.generation_defaults import GenerationDefaults
from engine.api.image import Image, PlacedImage
from engine.api.request import FinishReason, Request, Timings, TokenBatch, TopLogprob
from engine.api.request_status import RequestStatus
from engine.api.residency import Residency
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockMap, EngineSnapshot, EngineState, ModelInfo
from engine.api.step_view import PlannedStep, StepEntry
from engine.runtime.model_change import CHANGE_DRAIN_S
from engine.text.control_tokens import ControlTokens
from engine.text.reasoning_markers import ReasoningMarkers
from engine.text.tool_messages import TemplateTool

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TRIMMED = CHATML.replace("m['content']", "(m['content'] | trim)")
LLAMA2 = (
    "{% for m in messages %}{% if m['role'] == 'user' %}"
    "{{ '<s>[INST] ' + m['content'] + ' [/INST]' }}"
    "{% elif m['role'] == 'assistant' %}{{ ' ' + m['content'] + ' </s>' }}"
    "{% else %}{{ raise_exception('no system') }}{% endif %}{% endfor %}"
)
ALTERNATING = (
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
REWRITING = CHATML.replace(
    "m['content']",
    "(m['content'].split('</think>')[-1] if m['role'] == 'assistant' else m['content'])",
)

SEEING = CHATML.replace(
    "m['content']", "(m['content'] if m['content'] is string else m['content'] | toy_parts)"
)
"""Writes a placeholder for every image of a content in parts."""
IMAGE = "<image>"
IMAGE_TOKENS = 3
"""Tokens of every image, all of them its placeholder."""

CONTROLS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", IMAGE)
_CONTROL = re.compile("|".join(map(re.escape, CONTROLS)))
_PIECE = re.compile(r"([A-Za-z])\1|.", re.DOTALL)
_PAIR = 0x200000


class ToyTokenizer:
    """Control token i is id i; a character's id is its code point + 1000; pairs lie above."""

    def __init__(self, fingerprint: str = "toy-1") -> None:
        self.fingerprint = fingerprint

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        if not special:
            return [self._id(m.group()) for m in _PIECE.finditer(text)]
        ids: list[int] = []
        at = 0
        for found in _CONTROL.finditer(text):
            ids += self.encode(text[at : found.start()])
            ids.append(CONTROLS.index(found.group()))
            at = found.end()
        return ids + self.encode(text[at:])

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        out = []
        for i in ids:
            if i < len(CONTROLS):
                out.append("" if skip_special else CONTROLS[i])
            elif i >= _PAIR:
                out.append(chr(i - _PAIR) * 2)
            else:
                out.append(chr(i - 1000))
        return "".join(out)

    @staticmethod
    def _id(piece: str) -> int:
        return _PAIR + ord(piece[0]) if len(piece) == 2 else 1000 + ord(piece)


EOS = CONTROLS.index("<|im_end|>")


class ToyClient:
    """An `EngineClient` whose answers a test delivers piece by piece.

    Attributes:
        requests: everything submitted, in order.
        cancelled: ids that were cancelled.
        event_ring: the engine events that `events` returns; a test may append to it.
        pins: the pinned prefixes by pin id.
        refuse: raised by the next submissions while set.
        next_model: the model that the engine is changing to, or None.
        installed: the models that `models` returns.
        loads: name and wait of every call of `load_model`.
        refuse_load: raised by `load_model` while set.
        logprobs: token id → its logarithm in every answer; -0.5 for all others.
        resident: how many leading tokens of any path are in the pool.
        sees_images: whether it takes images; so with the template `SEEING`.
        placed: the number of images of every call of `place_images`.
        is_controlled: whether reasoning can be limited and ended.
        markers: those of a model that reasons; None for one that does not.
        reasoning_ended: the requests whose reasoning was ended.
    """

    def __init__(
        self,
        template: str = CHATML,
        *,
        tokenizer: ToyTokenizer | None = None,
        context_length: int = 4096,
        state: EngineState = EngineState.READY,
    ) -> None:
        self.tokenizer = tokenizer or ToyTokenizer()
        self.requests: list[Request] = []
        self.cancelled: list[str] = []
        self.parameters = 1
        self.generation_defaults = GenerationDefaults()
        self.refuse: PravahaError | None = None
        self.logprobs: dict[int, float] = {}
        self.markers: ReasoningMarkers | None = None
        self.is_controlled = True
        self.reasoning_ended: list[str] = []
        self.state = state
        self.next_model: str | None = None
        self.installed: list[AvailableModel] = []
        self.loads: list[tuple[str, float]] = []
        self.refuse_load: PravahaError | None = None
        self.closed = False
        self.resident = 0
        self.sees_images = template is SEEING
        self.model_name = "toy"
        self.model_digest = ""
        self.continues_text = False
        self.weight_bytes = 4
        self.placed: list[int] = []
        self._context_length = context_length
        self.event_ring = EventRing()
        self.pins: dict[str, tuple[int, ...]] = {}
        self._mail: dict[str, deque[TokenBatch]] = {}
        environment = jinja2.Environment()
        environment.globals["raise_exception"] = _raise
        environment.filters["toy_parts"] = _toy_parts
        self._template = environment.from_string(template)

    # Called by tests.

    def write(
        self,
        text: str,
        *,
        eos: bool = False,
        finish: FinishReason | None = None,
        at: int = -1,
        cached: int = 0,
        drafted: Collection[int] = (),
        special: bool = False,
        scores: Sequence[float] = (),
    ) -> tuple[int, ...]:
        """Deliver text for a submitted request (the last by default); returns its token ids.

        `drafted` are the indices of the tokens that are accepted draft tokens; with `special`, control
        tokens of the text are such tokens. `scores` are the log-probabilities of the tokens that the request
        names.
        """
        request = self.requests[at]
        ids = (*self.tokenizer.encode(text, special=special), *((EOS,) if eos else ()))
        finish = FinishReason.STOP if eos else finish
        wants = request.sampling.logprobs is not None
        self._mail[request.request_id].append(
            TokenBatch(
                request_id=request.request_id,
                token_ids=ids,
                text=text,
                timings=Timings(0.0, 0.25, 0.5, 1.5),
                seed=request.sampling.seed or 0,
                logprobs=tuple(self.logprobs.get(one, -0.5) for one in ids) if wants else (),
                top_logprobs=tuple(
                    (TopLogprob(one, self.logprobs.get(one, -0.5)), TopLogprob(1120, -1.5))
                    for one in ids
                )
                if request.sampling.logprobs
                else (),
                finish_reason=finish,
                error="the step failed" if finish is FinishReason.ERROR else None,
                cached_tokens=cached,
                drafted=tuple(index in drafted for index in range(len(ids))),
                token_id_logprobs=(tuple(scores),) if scores else (),
            )
        )
        return ids

    # EngineClient.

    def submit(self, request: Request) -> str:
        if self.refuse is not None:
            raise self.refuse
        if self.state is EngineState.LOADING:
            raise EngineUnavailable("The model is loading.")
        self.requests.append(request)
        self._mail[request.request_id] = deque()
        return request.request_id

    def cancel(self, request_id: str) -> None:
        self.cancelled.append(request_id)

    def drain(self, request_id: str) -> TokenBatch | None:
        mail = self._mail[request_id]
        return mail.popleft() if mail else None

    def snapshot(self) -> EngineSnapshot:
        model = ModelInfo(
            name=self.model_name,
            architecture="toy",
            parameters=self.parameters,
            weight_format="F32",
            kv_dtype="f32",
            context_length=self._context_length,
            vocab_size=1 << 22,
            weight_bytes=self.weight_bytes,
            executor="toy",
            dispatch="portable",
            threads=1,
            generation_defaults=self.generation_defaults,
            sees_images=self.sees_images,
            digest=self.model_digest,
            continues_text=self.continues_text,
        )
        loading = self.state is EngineState.LOADING
        return EngineSnapshot(
            step=0,
            time=0.0,
            state=self.state,
            model=None if loading else model,
            next_model=self.next_model,
        )

    def models(self) -> Sequence[AvailableModel]:
        return tuple(self.installed)

    def load_model(self, name: str, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        if self.refuse_load is not None:
            raise self.refuse_load
        self.loads.append((name, drain_s))
        self.next_model = name
        self.state = EngineState.DRAINING

    def unload_model(self, *, drain_s: float = CHANGE_DRAIN_S) -> None:
        self.state = EngineState.UNLOADED

    def fork(self, request_id, *, at=None, n=1, sampling=None) -> list[str]:
        parent = next(one for one in self.requests if one.request_id == request_id)
        assert at == len(parent.prompt_ids), "the toy forks at the end of the prompt only"
        sampling = sampling or parent.sampling
        begun = parent.continued_tokens  # a child continues the answer that its parent continues
        return [
            self.submit(
                Request(parent.prompt_ids, sampling, continued_tokens=begun, images=parent.images)
            )
            for _ in range(n)
        ]

    def price(self, token_ids: Sequence[int]) -> "Future[ForkPrice]":
        future: Future[ForkPrice] = Future()
        future.set_result(ForkPrice(len(token_ids), 0, None))
        return future

    scheduling = Scheduling()

    def set_scheduling(self, scheduling: Scheduling) -> None:
        self.scheduling = scheduling

    def blocks(self, since: int) -> BlockMap | None:
        return None

    def request_table(self) -> tuple[RequestStatus, ...]:
        return ()

    def block(self, block: int) -> BlockDetail | None:
        return None

    def prefix_tree(self) -> PrefixTree | None:
        return None

    def residency(self, token_ids: Sequence[int]) -> Residency | None:
        return Residency(len(token_ids), min(len(token_ids), self.resident), 0)

    def pin(self, token_ids: Sequence[int]) -> str:
        pin_id = f"pin-{len(self.pins)}"
        self.pins[pin_id] = tuple(token_ids)
        return pin_id

    def unpin(self, pin_id: str) -> None:
        self.pins.pop(pin_id, None)

    def recent_steps(self, since: int) -> tuple[StepEntry, ...]:
        return ()

    def planned_step(self) -> PlannedStep | None:
        return None

    def events(self, since: int) -> EventBatch:
        return self.event_ring.since(since)

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return self.tokenizer.encode(text, special=special)

    def control_tokens(self) -> ControlTokens:
        return ControlTokens({text: token_id for token_id, text in enumerate(CONTROLS)})

    def bos_id(self) -> int | None:
        return None

    def detokenize(self, token_ids: Sequence[int], *, skip_special: bool = True) -> str:
        return self.tokenizer.decode(token_ids, skip_special=skip_special)

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        return [self.tokenizer.decode([one]) for one in token_ids]

    def reasoning_markers(self) -> ReasoningMarkers | None:
        return self.markers

    def controls_reasoning(self) -> bool:
        return self.is_controlled

    def end_reasoning(self, request_id: str) -> None:
        self.reasoning_ended.append(request_id)

    def render_chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[TemplateTool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The tools are rendered as a line with the name of each."""
        offer = "".join(f"tool {tool['function']['name']}\n" for tool in tools)
        return offer + self._template.render(
            messages=messages, add_generation_prompt=add_generation_prompt, **(variables or {})
        )

    def tool_template(self) -> str:
        """Teaches calls in the form `hermes`."""
        return "<tool_call>"

    def place_images(
        self, prompt_ids: Sequence[int], images: Sequence[Image]
    ) -> tuple[tuple[int, ...], tuple[PlacedImage, ...]]:
        """Every image takes `IMAGE_TOKENS` tokens of its placeholder, whose text is `IMAGE`."""
        self.placed.append(len(images))
        if images and not self.sees_images:
            raise InvalidRequest("toy sees no images: load a model with a vision tower.")
        placeholder, waiting = CONTROLS.index(IMAGE), list(images)
        assert list(prompt_ids).count(placeholder) == len(waiting)
        ids: list[int] = []
        placed = []
        for token in prompt_ids:
            if token == placeholder:
                placed.append(PlacedImage(waiting.pop(0), len(ids), IMAGE_TOKENS))
            ids += [token] * (IMAGE_TOKENS if token == placeholder else 1)
        return tuple(ids), tuple(placed)

    def tokenizer_fingerprint(self) -> str:
        return self.tokenizer.fingerprint

    def on_wake(self, callback: Callable[[], None]) -> None:
        pass

    def yield_core(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        self.closed = True


def _raise(message: str) -> None:
    raise InvalidRequest(f"The chat template refuses these messages: {message}.")


def _toy_parts(parts):
    return "".join(IMAGE if part["type"] == "image" else part["text"] for part in parts)
