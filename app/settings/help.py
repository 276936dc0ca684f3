"""One line of help for each setting, for `--help` and the documentation.

Separate from `app.settings.settings`, so that `pravaha --help` does not import pydantic.
"""

HELP = {
    "model": "Name of an installed model, or a path to a model.",
    "ctx": "Context length in tokens; by default the model's own.",
    "kv_cache": "Size of the KV pool, such as 512MiB; by default a share of free memory.",
    "weights": "Weights in memory: stored (as in the file), or q8 or q4, which quantize float weights to 8 "
    "or 4 bits while they are loaded.",
    "kv_dtype": "Element type of the KV cache: auto, f16, f32, int8 (native) or bf16 (torch).",
    "block_size": "Tokens in a KV block.",
    "threads": "Compute threads; by default the physical cores this process may use.",
    "dispatch": "Instruction-set level: auto, amx, avx512, avxvnni, avx2 or portable.",
    "executor": "Executor: auto, native (CPU, in Rust) or torch.",
    "device": "Device of the torch executor: auto, cpu or cuda.",
    "dtype": "Data type of the torch executor: auto, f32, f16 or bf16.",
    "attention": "Attention backend of the torch executor: auto, reference or triton.",
    "cuda_graphs": "Replay decode steps as CUDA graphs; by default on a GPU (torch).",
    "dummy_weights": "Seeded random weights, for benchmarks without a checkpoint (torch).",
    "max_num_seqs": "Maximum number of running requests.",
    "max_num_batched_tokens": "Token budget of one step.",
    "max_queue": "Maximum number of waiting requests; further ones are refused.",
    "prefix_caching": "Reuse the KV blocks of prompt prefixes that were computed before.",
    "speculation": "Draft repeated text and verify several tokens in a step; answers do not change. On by "
    "default, except with CUDA graphs.",
    "draft_model": "Smaller model with the same vocabulary that drafts tokens for one or two requests at a "
    "time: a name, a path, or none; answers do not change.",
    "scheduling_policy": "Order of requests: fcfs, priority, sjf, edf or lrs.",
    "batch_former": "Size of a step: fixed (the token budget) or timed (a target time).",
    "step_target_ms": "Target in milliseconds of steps with decodes, with --batch-former timed.",
    "swap_bytes": "Disk space for swapped KV blocks, kept across restarts; by default 2GiB, 0 for none.",
    "weight_cache_bytes": "Disk space for packed weights, which make the next start faster; by default "
    "20GiB, 0 for none.",
    "generation_config": "auto applies the model's own sampling defaults to what is not given; none "
    "does not.",
    "temperature": "Sampling temperature; 0 is greedy. By default the model's own, else 0.2 (run: 0).",
    "top_k": "Keep the k likeliest tokens; 0 keeps all.",
    "top_p": "Keep the likeliest tokens up to this total probability.",
    "min_p": "Drop tokens below this share of the likeliest token's probability.",
    "repetition_penalty": "Above 1, tokens of the prompt and the answer become less likely.",
    "presence_penalty": "Subtracted once from the logit of each generated token.",
    "frequency_penalty": "Subtracted from a token's logit for each time it was generated.",
    "dry_multiplier": "Above 0, tokens that would continue a repetition become less likely (DRY).",
    "dry_base": "Growth of the DRY penalty with each repeated token.",
    "dry_allowed_length": "Longest repetition without a DRY penalty, in tokens.",
    "dry_penalty_last_n": "Last tokens in which DRY looks for repetitions; -1 for all, 0 for none.",
    "seed": "Random seed, which makes answers reproducible; by default a new one each time.",
    "max_tokens": "Maximum length of an answer in tokens; by default 1024 for models below 1B parameters, "
    "else the rest of the context.",
    "stop_repetition": "Stop an answer that repeats itself without end; never over HTTP.",
    "system": "System prompt; empty for that of the model's chat template.",
    "host": "Address to serve on; any but loopback needs a key.",
    "port": "Port to serve on; 0 takes a free one.",
    "api_key": "Key that clients of --serve must send; with --attach, the key to send.",
    "allowed_hosts": "Further Host names to accept on loopback, separated by commas.",
    "strict_fields": "Refuse unknown request fields.",
    "max_body_bytes": "Largest request body but for uploads, such as 4MiB.",
    "max_upload_bytes": "Largest file that a client may upload, such as 512MiB.",
    "drain_seconds": "Time that running requests get after the first SIGTERM.",
    "agents_root": "Folder whose files agents may read for clients of --serve; by default none.",
    "guardrails_mode": "Checks of messages and answers: off, check (hidden characters, links with data), or "
    "redact (that, and personal data and secrets).",
    "guardrails_input": "Under [guardrails.input], the action for a kind of text that a model reads, such as "
    '`email = "redact"`: allow, flag, redact or block.',
    "guardrails_output": "Under [guardrails.output], the same for text that a model writes.",
    "guardrails_blocklist": "Words and phrases that are refused in messages and end an answer.",
    "guardrails_allowed_hosts": "Hosts that links in answers may carry data to.",
    "guardrails_phone_regions": "Regions whose national phone numbers are recognized, such as US GB.",
    "guardrails_agents": "Check what agents read and write.",
    "guardrails_judge": "Let the served model judge whether a tool's output gives agents instructions.",
    "memory_episodes": "Remember runs of agents: auto (runs with a model, and those of the screen), always "
    "or never.",
    "memory_recall_tokens": "Most tokens of memories that agents with a memory read in a run; 0 for none.",
    "sandbox": "Where agents' commands run: auto (the first that works), bubblewrap, landlock, or off, which "
    "asks before each.",
    "allow": "Calls of tools that need no approval, separated by semicolons, such as 'shell: pytest *'.",
    "http_domains": "Domains that the tool http_fetch may ask, separated by commas, such as "
    "docs.python.org or *.pypi.org; by default none, which turns it off.",
    "mcp": "MCP servers whose tools agents may call, as tables [mcp.servers.NAME] of pravaha.toml.",
    "attach": "URL of a running `pravaha --serve` to use as the engine.",
    "theme": "Name of the theme.",
    "avatar": "The figure on the screen: bindu, kamal, the name of your own, or off.",
    "notify": "When a long answer ends unseen: auto (desktop notification), bell or off.",
    "charset": "Characters to draw with: auto, unicode or ascii.",
    "mouse": "Use the mouse; without, the terminal selects text. /mouse switches it.",
    "keymap": 'Keys by action name, such as `pane.kv = "f4"` under [keymap]; `preset = "vim"` adds a set.',
    "data_dir": "Folder of the conversations.",
    "cache_dir": "Folder of the models, packed weights and swapped KV blocks.",
    "config_dir": "Folder of the user's pravaha.toml, themes and avatars; set only by PRAVAHA_CONFIG_DIR.",
}
