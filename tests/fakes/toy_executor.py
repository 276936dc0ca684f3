"""A deterministic executor: logits are a pure function of the row's history in its own KV store.

The history is read back *through the block tables*, as attention would read keys, so a wrong table,
a block shared by mistake or a token computed twice at the wrong place changes the answer. `oracle`
continues a prompt without any scheduler.
"""

import threading
from types import SimpleNamespace

import numpy as np

from engine.api.errors import ExecutorError
from engine.api.generation_defaults import GenerationDefaults
from engine.batch.sampling_validator import SamplingValidator
from engine.executors.base import MAX_DRAFT_TOKENS, ExecutorInfo, StepPlan
from engine.executors.memory_plan import MemoryPlan
from engine.executors.reference_sampler import sample_reference
from engine.models.spec import Attention, LayerSpec, Mlp, ModelSpec, Rope
from engine.text.sequence_breakers import BreakerCompiler
from tests.fakes.toy_tokenizer import VOCAB_SIZE, ToyTokenizer

_NEVER_WRITTEN = -7
_SALTED = 2**40


def toy_logits(history, vocab_size=VOCAB_SIZE):
    """[vocab] float32 from every token of the history and its position."""
    key = np.uint64(0xCBF29CE484222325)
    with np.errstate(over="ignore"):
        for token in history:
            key = (key ^ np.uint64(token + 1)) * np.uint64(0x100000001B3)
    return logits_of(key, vocab_size)


def next_hash(key, token):
    """The hash of a history after one more token; `toy_logits` begins with 0xCBF29CE484222325."""
    return (key ^ (token + 1)) * 0x100000001B3 % 2**64


def logits_of(key, vocab_size=VOCAB_SIZE):
    """[vocab] float32 from the hash of a history."""
    key = np.uint64(key)
    with np.errstate(over="ignore"):
        mixed = (np.arange(vocab_size, dtype=np.uint64) + key) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed >> np.uint64(44)).astype(np.float32) / 2**20 * 8 - 4).astype(np.float32)


class ToyExecutor:
    """Records every plan's shape; tests can make it fail, return NaN logits or wait at a gate."""

    def __init__(self, num_blocks, block_size, *, vocab_size=VOCAB_SIZE, force=None):
        self.info = ExecutorInfo("toy", "portable", 1, "F32", 1000, "f16", 250)
        self.kv = np.full((num_blocks, block_size), _NEVER_WRITTEN, np.int64)
        self.block_size = block_size
        self.vocab_size = vocab_size
        self.force = force or {}  # output position → token, for stop tests
        self.steps = []  # (rows, query lengths) of every step
        self.fail_with = []  # exceptions for the next steps
        self.poison = lambda history: False
        self.gate = None  # threading.Semaphore: one permit a step
        self.entered = threading.Semaphore(0)
        self.closed = False
        self.copies = []  # (source, target) of every copied block
        self.fail_swap = False
        self.swapped_out = self.swapped_in = 0  # blocks
        self.watch = lambda plan: None  # called with every plan, while it runs
        self.salt_of = lambda row: (
            0
        )  # a number below 2**16: rows may read only what equal ones wrote
        self.images_of = lambda row: ()  # as `Request.images`: rows may read only their own

    def copy_blocks(self, sources, targets):
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            self.kv[target] = self.kv[source]
            self.copies.append((source, target))

    @property
    def block_bytes(self):
        return self.kv[0].nbytes

    def read_blocks(self, blocks, out):
        if self.fail_swap:
            raise ExecutorError("broken")
        out[:] = self.kv[blocks].view(np.uint8).reshape(len(blocks), -1)
        self.swapped_out += len(blocks)

    def write_blocks(self, blocks, data):
        if self.fail_swap:
            raise ExecutorError("broken")
        self.kv[blocks] = np.ascontiguousarray(data).view(np.int64)
        self.swapped_in += len(blocks)

    def execute(self, plan: StepPlan):
        if self.gate is not None:
            self.entered.release()
            self.gate.acquire()
        self.watch(plan)
        self.steps.append((plan.rows.copy(), np.diff(plan.query_start)))
        check_plan(plan)
        if self.fail_with:
            raise self.fail_with.pop(0)
        count = len(plan.rows)
        seen = np.zeros(len(plan.token_ids), np.int64)
        for one in plan.images:
            offsets = np.arange(one.offset, one.offset + one.count)
            seen[one.flat : one.flat + one.count] = image_salts(one.image, offsets)
        for index in range(count):
            row = plan.rows[index]
            for flat in range(plan.query_start[index], plan.query_start[index + 1]):
                position = plan.positions[flat]
                block = plan.block_tables[row, position // self.block_size]
                salt = np.int64(self.salt_of(row)) ^ seen[flat]
                self.kv[block, position % self.block_size] = salt * _SALTED + plan.token_ids[flat]
        drafts = plan.num_draft_tokens if plan.num_draft_tokens.size else np.zeros(count, np.int32)
        logits = []
        for index in range(count):
            row = plan.rows[index]
            for nth in range(drafts[index] + 1):
                if plan.needs_logits[index]:
                    logits.append(self._logits(plan, row, int(plan.num_tokens[row]) + nth))
                else:
                    logits.append(np.zeros(self.vocab_size, np.float32))
        run_of = np.repeat(np.arange(count), np.diff(plan.query_start))
        scored = [
            self._logits(plan, plan.rows[run_of[token]], int(plan.positions[token]) + 1)
            for token in plan.score_tokens.tolist()
        ]
        return sample_reference(np.array(logits), plan, np.array(scored))

    def salts(self, row, positions):
        """What the KV of a row at these positions is marked by: its cache salt and its images."""
        salts = np.full(len(positions), self.salt_of(row), np.int64)
        for placed in self.images_of(row):
            offsets = positions - placed.start
            inside = (offsets >= 0) & (offsets < placed.tokens)
            salts[inside] ^= image_salts(placed.image, offsets[inside])
        return salts

    def stored(self, row, tokens, positions):
        """What the store holds for tokens of a row."""
        return self.salts(row, positions) * _SALTED + tokens

    def _logits(self, plan, row, length):
        """The row's first `length` tokens, read back from its blocks."""
        places = np.arange(length)
        blocks = plan.block_tables[row, places // self.block_size]
        stored = self.kv[blocks, places % self.block_size]
        salt, history = np.divmod(stored, _SALTED)
        written = stored != _NEVER_WRITTEN  # calibration computes on blocks as they are
        history[~written] = _NEVER_WRITTEN
        own = (salt == self.salts(row, places))[written]
        assert own.all(), f"row {row} reads KV of another cache salt or image"
        logits = self.forced(plan, row, length, toy_logits(history, self.vocab_size))
        if self.poison(history):
            logits[3] = np.nan
        return logits

    def forced(self, plan, row, length, logits):
        """The logits, or those that a test forces at this position."""
        forced = self.force.get(int(length - plan.penalty_start[row]))
        if forced is not None:
            logits[:] = -10
            logits[forced] = 10
        return logits

    def close(self):
        self.closed = True


def image_salts(image, offsets):
    """What marks the KV of an image's tokens, below 2**16 and never 0."""
    return (int.from_bytes(image.digest[:2], "little") + 257 * offsets) % 65_535 + 1


def check_plan(plan):
    """Check the contract of `StepPlan`."""
    lengths = np.diff(plan.query_start)
    assert len(set(plan.rows.tolist())) == len(plan.rows)
    assert (lengths > 0).all()
    assert plan.query_start[-1] == len(plan.token_ids) == len(plan.positions)
    for array in (plan.rows, plan.query_start, plan.token_ids, plan.positions, plan.num_tokens):
        assert array.dtype == np.int32
        assert array.flags.c_contiguous
    assert plan.needs_logits.dtype == np.uint8
    assert plan.needs_logits.flags.c_contiguous
    assert (np.diff(plan.bias_rows) >= 0).all()
    for index, row in enumerate(plan.rows):
        run = plan.positions[plan.query_start[index] : plan.query_start[index + 1]]
        assert (np.diff(run) == 1).all()
        last = int(run[-1])
        drafts = plan.num_draft_tokens[index] if plan.num_draft_tokens.size else 0
        assert 0 <= drafts < len(run)
        if plan.needs_logits[index]:
            assert last + 1 == plan.num_tokens[row] + drafts
        else:
            assert last + 1 <= plan.num_tokens[row]
            assert drafts == 0
        assert (
            plan.token_ids[plan.query_start[index] : plan.query_start[index + 1]]
            == plan.token_table[row, run]
        ).all()
    assert plan.num_draft_tokens.sum() <= MAX_DRAFT_TOKENS
    run_of = np.repeat(np.arange(len(plan.rows)), lengths)
    for token, target in zip(plan.score_tokens, plan.score_targets, strict=True):
        row = plan.rows[run_of[token]]
        assert target == plan.token_table[row, plan.positions[token] + 1]


_BREAKERS = BreakerCompiler(ToyTokenizer(), VOCAB_SIZE)


def oracle(
    request,
    *,
    seed=None,
    max_model_len=256,
    force=None,
    eos_ids=ToyTokenizer.eos_ids,
    penalty_start=None,
    mask=None,
):
    """The answer's token ids, one token at a time, without engine, rows or blocks.

    `mask`: from the answer so far to the next token's mask, [words] uint32; None once it is over.
    """
    params = request.sampling
    tokens = list(request.prompt_ids)
    prompt = len(tokens)
    most = max_model_len if params.max_tokens is None else params.max_tokens
    limit = min(max_model_len, prompt + most)
    stop_ids = set(SamplingValidator.stop_ids(params, eos_ids))
    used_seed = params.seed if seed is None else seed
    start = prompt if penalty_start is None else penalty_start
    while len(tokens) < limit:
        bits = None if mask is None else mask(tokens[prompt:])
        if mask is not None and bits is None:
            break
        forced = (force or {}).get(len(tokens) - prompt)
        token = next_token(
            tokens, params, used_seed or 0, penalty_start=start, forced=forced, bits=bits
        )
        tokens.append(token)
        if token in stop_ids:
            break
    return tuple(tokens[prompt:])


def next_token(tokens, params, seed, *, penalty_start, forced=None, bits=None):
    """The token a request samples after the given ones, by definition; `bits` is a token mask."""
    bias_ids, bias_values = SamplingValidator.pack_bias(params)
    sampling = SamplingValidator.pack(params, seed).reshape(1)
    breakers = _BREAKERS.compile(params.dry_sequence_breakers)
    sampling["num_breakers"] = len(breakers.tails)
    plan = StepPlan(
        rows=np.zeros(1, np.int32),
        query_start=np.array([0, 1], np.int32),
        token_ids=np.array(tokens[-1:], np.int32),
        positions=np.array([len(tokens) - 1], np.int32),
        block_tables=np.zeros((1, 1), np.int32),
        needs_logits=np.ones(1, np.uint8),
        num_tokens=np.array([len(tokens)], np.int32),
        penalty_start=np.array([penalty_start], np.int32),
        token_table=np.array([tokens], np.int32),
        sampling=sampling,
        breaker_heads=breakers.heads,
        breaker_tails=breakers.tails,
        bias_rows=np.zeros(len(bias_ids), np.int32),
        bias_ids=bias_ids,
        bias_values=bias_values,
        mask_rows=np.zeros(0 if bits is None else 1, np.int32),
        mask_bits=np.zeros((0, 0), np.uint32) if bits is None else bits[None],
    )
    logits = toy_logits(tokens)
    if forced is not None:
        logits[:] = -10
        logits[forced] = 10
    return int(sample_reference(logits[None], plan).sampled[0])


def toy_spec(context_length=256):
    attention = Attention(num_heads=2, num_kv_heads=1, head_dim=4, scale=0.5, rope=0)
    return ModelSpec(
        architecture="llama",
        hidden_size=8,
        vocab_size=VOCAB_SIZE,
        context_length=context_length,
        norm_eps=1e-5,
        ropes=(Rope(1e4, 4, "half"),),
        layers=(LayerSpec(attention, Mlp(16), {}),) * 2,
        tensors={},
    )


BLOCK_BYTES_PER_TOKEN = 2 * 2 * 1 * 4 * 2  # layers × (K, V) × heads × head size × f16


def toy_memory(config, *, kv_dtype, max_model_len):
    return MemoryPlan(1000, 0, config.block_size * BLOCK_BYTES_PER_TOKEN, weight_format="F32")


def toy_model(context_length=256):
    return SimpleNamespace(
        name="toy",
        spec=toy_spec(context_length),
        paths=(),
        tokenizer=ToyTokenizer(),
        weight_format="F32",
        parameters=250,
        file_bytes=1000,
        images=None,
        uses_graphs=False,
        plan_memory=toy_memory,
        generation_defaults=GenerationDefaults(),
    )
