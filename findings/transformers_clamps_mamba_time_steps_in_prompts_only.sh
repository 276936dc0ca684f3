#!/usr/bin/env bash
# transformers 5.23.0, NemotronHForCausalLM on a CPU: a text read at once and read token by token gives other logits.
#
# The prompt path (chunked scan) clamps each time step to `time_step_min` (0.001 by default), the path of
# single tokens to `time_step_limit`, (0, inf) by default. Where softplus(dt + dt_bias) is below 0.001, the states differ:
# who takes the whole-text logits as the reference of an engine that generates token by token finds errors
# that are none. Seen, with a tiny random model and small biases: the last token's logits differ by 0.004 at the
# default, and by less than 0.00001 with `time_step_min=1e-9`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 transformers==5.23.0
"$folder/venv/bin/python" - <<'PYTHON'
import torch
from transformers import NemotronHConfig, NemotronHForCausalLM

KINDS = ["linear_attention", "mlp", "full_attention"]


def difference(**settings):
    """The largest difference of the last token's logits between one pass and a pass for each token."""
    torch.manual_seed(0)
    config = NemotronHConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, mamba_num_heads=4, mamba_head_dim=16,
        ssm_state_size=8, n_groups=2, conv_kernel=4, layer_types=KINDS, **settings,
    )
    model = NemotronHForCausalLM(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("dt_bias"):
                weight.fill_(-9.0)
            elif weight.dim() > 1:
                weight.normal_(0, 0.3)
        ids = torch.arange(1, 13)[None]
        whole = model(ids).logits[0, -1]
        past = None
        for at in range(ids.shape[1]):
            output = model(ids[:, at : at + 1], past_key_values=past, use_cache=True)
            past = output.past_key_values
    return (whole - output.logits[0, -1]).abs().max().item()


default, unclamped = difference(), difference(time_step_min=1e-9)
print(f"difference with time_step_min 0.001: {default:.5f}, with 1e-9: {unclamped:.7f}")
assert default > 1e-3 and unclamped < 1e-5, "the behaviour has changed"
PYTHON
