# /// script
# requires-python = ">=3.11"
# dependencies = ["lm-eval[api]==0.4.13"]
# ///
"""lm-eval's models of local servers: `python clients/lm_eval_tasks.py http://127.0.0.1:8000`.

Four small tasks of its own, so that nothing is downloaded: the choice among answers and the perplexity of a
text, by the log-probabilities of token ids, and answers that are generated up to a stop string.
"""

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

import yaml
from agent_task import served_model
from checks import Checks
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

CAPITALS = {
    "Italy": ("Rome", "Milan", "Turin"),
    "France": ("Paris", "Lyon", "Nice"),
    "Japan": ("Tokyo", "Osaka", "Kyoto"),
    "Spain": ("Madrid", "Seville", "Valencia"),
    "Germany": ("Berlin", "Munich", "Cologne"),
    "Egypt": ("Cairo", "Luxor", "Aswan"),
}
TEXT = "The sun rises in the east and sets in the west. Water boils at one hundred degrees."
TASKS = {
    "capitals": {
        "output_type": "multiple_choice",
        "doc_to_text": "The capital of {{country}} is",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": 0,
        "metric_list": [{"metric": "acc"}],
    },
    "sums": {
        "output_type": "generate_until",
        "doc_to_text": "2 + 2 = 4\n1 + 5 = 6\n{{a}} + {{b}} =",
        "doc_to_target": "{{c}}",
        "generation_kwargs": {
            "until": ["\n", "</s>", "<|im_end|>", "2 +", "1 +", "="],
            "max_gen_toks": 12,
            "temperature": 0,
        },
        "metric_list": [{"metric": "exact_match"}],
        "filter_list": [
            {
                "name": "number",
                "filter": [
                    {"function": "regex", "regex_pattern": r"(\d+)"},
                    {"function": "take_first"},
                ],
            }
        ],
    },
    "names": {
        "output_type": "generate_until",
        "doc_to_text": "What is the capital of {{country}}? Answer with one word.",
        "doc_to_target": "{{choices[0]}}",
        "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 12, "temperature": 0},
        "metric_list": [{"metric": "exact_match", "ignore_punctuation": True}],
    },
    "text": {
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{text}}",
        "metric_list": [{"metric": "word_perplexity"}],
    },
}
DOCUMENTS = {
    "capitals": [{"country": one, "choices": list(names)} for one, names in CAPITALS.items()],
    "names": [{"country": one, "choices": list(names)} for one, names in CAPITALS.items()],
    "sums": [{"a": a, "b": a + 1, "c": str(2 * a + 1)} for a in range(3, 9)],
    "text": [{"text": TEXT}],
}


def write_tasks(folder: Path) -> None:
    """The tasks in lm-eval's form, with their documents beside them."""
    for name, task in TASKS.items():
        lines = [json.dumps(one) for one in DOCUMENTS[name]]
        documents = folder / f"{name}.jsonl"
        documents.write_text("\n".join(lines))
        data = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(documents)}},
            "test_split": "test",
        }
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(data | task))


def main(url: str) -> int:
    name = served_model(url)
    checks = Checks("lm-eval 0.4.13")
    with TemporaryDirectory() as folder:
        write_tasks(Path(folder))
        manager = TaskManager(include_path=folder, include_defaults=False)

        def result(kind: str, path: str, task: str, *, chat: bool = False, **more: object) -> dict:
            settings = {"model": name, "base_url": f"{url}/v1/{path}", "num_concurrent": 2} | more
            found = simple_evaluate(
                model=kind, model_args=settings, tasks=[task], task_manager=manager, batch_size=1,
                apply_chat_template=chat, bootstrap_iters=0, log_samples=False,
            )  # fmt: skip
            return found["results"][task]

        remote = {"tokenizer_backend": "remote", "tokenized_requests": True, "max_length": 4096}
        with checks.check("local-completions: the choice among answers, token ids"):
            found = result("local-completions", "completions", "capitals", **remote)
            assert found["acc,none"] >= 0.8, found
        with checks.check("local-completions: perplexity"):
            found = result("local-completions", "completions", "text", **remote)
            assert 1 < found["word_perplexity,none"] < 10_000, found
        with checks.check("local-completions: generated answers, six stop strings"):
            found = result("local-completions", "completions", "sums", **remote)
            assert found["exact_match,number"] >= 0.8, found
        with checks.check("local-chat-completions: generated answers"):
            found = result("local-chat-completions", "chat/completions", "names", chat=True)
            assert found["exact_match,none"] >= 0.8, found
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
