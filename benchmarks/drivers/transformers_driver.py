"""Driver of transformers: `generate`, eager, in bf16."""

import torch
import transformers
from orders import Order, arguments, serve

options = arguments()
torch.set_num_threads(options.threads)
model = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16)
tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)


def run(order: Order) -> None:
    ids = torch.tensor(order.prompts or [tokenizer(order.text)["input_ids"]])
    model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=order.new_tokens,
        min_new_tokens=order.new_tokens,
        do_sample=False,
    )


serve(
    {
        "engine": "transformers",
        "version": transformers.__version__,
        "torch": torch.__version__,
        "weights": "bf16",
        "kv_dtype": "bf16",
        "threads": torch.get_num_threads(),
    },
    run,
)
