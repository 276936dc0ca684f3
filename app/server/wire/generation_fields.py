"""Members of the bodies of chats and completions that OpenAI's clients and those of other servers know.

A body that declares one of them implements it; of every other one these tables say what becomes of it.
"""

from collections.abc import Mapping

from app.server.wire.body import IsOff, nothing, nothing_or

OF_THE_CALLER: Mapping[str, str] = {
    "user": "identifies the caller's end user; nothing here depends on it",
    "safety_identifier": "as `user`",
    "metadata": "the caller's own notes; not stored",
}
"""What clients say of themselves to any endpoint that computes."""

WITHOUT_EFFECT: Mapping[str, str] = {
    **OF_THE_CALLER,
    "store": "chats are never stored, whatever it says",
    "service_tier": "there is one tier",
    "verbosity": "a hint to models trained for it; ours are not",
    "prompt_cache_options": "a hint; every prefix is cached until its blocks are needed",
    "prompt_cache_retention": "as `prompt_cache_options`",
    "audio": "the voice of spoken answers, which `modalities` would ask for",
    "prediction": "a hint for speed; answers are the same without it",
}
"""Known fields without an effect, and the reason why they have none."""

_off = nothing_or(False)
_empty = nothing_or([], {}, "")

UNSUPPORTED: Mapping[str, IsOff] = {
    # OpenAI, chat and completions
    "best_of": nothing_or(1),  # plain completions have it
    "echo": _off,  # plain completions have it
    "function_call": nothing_or("none", "auto"),  # chat has it
    "functions": _empty,  # chat has it
    "modalities": nothing_or(["text"]),
    "moderation": nothing,
    "parallel_tool_calls": nothing_or(True, False),  # chat has it
    "reasoning": nothing,  # chat has it
    "reasoning_effort": nothing_or("none"),  # chat has it
    "suffix": _empty,  # plain completions have it
    "top_logprobs": nothing_or(0),  # chat has it; plain completions have `logprobs`
    "tool_choice": nothing_or("none", "auto"),  # chat has it
    "tools": _empty,  # chat has it
    "web_search_options": nothing,
    # vLLM, SGLang and llama.cpp
    "allowed_token_ids": nothing,
    "bad_words": _empty,
    "chat_template": nothing,
    "chat_template_kwargs": _empty,  # chat has it
    "continue_final_message": _off,  # chat has it
    "documents": _empty,
    "dynatemp_range": nothing_or(0, 0.0),
    "ebnf": nothing,
    "enable_thinking": _off,  # chat has it
    "guided_decoding_backend": nothing,
    "guided_whitespace_pattern": nothing,
    "length_penalty": nothing_or(1, 1.0),
    "logits_processors": _empty,
    "lora_path": nothing,
    "max_output_tokens": nothing,  # `max_tokens`
    "min_tokens": nothing_or(0),
    "mirostat": nothing_or(0),
    "n_predict": nothing,
    "num_predict": nothing,  # `max_tokens`
    "regex": nothing,
    "retrieval": nothing,  # chat has it
    "repeat_penalty": nothing_or(1, 1.0),
    "skip_special_tokens": nothing_or(True),
    "spaces_between_special_tokens": nothing_or(True),
    "stop_sequences": _empty,  # `stop`
    "structural_tag": nothing,
    "truncate_prompt_tokens": nothing,
    "typical_p": nothing_or(1, 1.0),
    "use_beam_search": _off,
}
"""Known fields that are not implemented, each with the test for a value that means "off"."""
