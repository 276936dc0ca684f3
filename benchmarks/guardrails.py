"""Figures of the guardrails on held-out data: the ROC of the injection head, false positives, cost of tier 1.

    python benchmarks/guardrails.py [--json FILE]

Held out are the phrases and files that `scripts/train_injection_head.py` leaves out. The encoder `minilm`
must be installed.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from train_injection_head import ADVERSARIAL, Sample, embed, ordinary_text, prompts  # noqa: E402

from agents.guardrails.detection import Action  # noqa: E402
from agents.guardrails.guardrails import Guardrails  # noqa: E402
from agents.guardrails.injection_head import load_head  # noqa: E402
from benchmarks.machine import write_result

PIECE = 4


def area_under_curve(positive: np.ndarray, negative: np.ndarray) -> float:
    """Probability that a positive scores above a negative; ties count one half."""
    below = (positive[:, None] > negative[None, :]).mean()
    return float(below + 0.5 * (positive[:, None] == negative[None, :]).mean())


def injection_figures() -> dict[str, object]:
    """The head on phrases and files that it was not trained on."""
    head = load_head()
    samples = [one for one in prompts() if one.held_out] + ordinary_text(held_out=True)
    scores = head.probabilities(embed(samples).astype(np.float32))

    def of(wanted: object) -> np.ndarray:
        return scores[[bool(wanted(one)) for one in samples]]  # type: ignore[operator]

    attacks = of(lambda one: one.injection)
    groups = {
        "ordinary code and prose": of(lambda one: one.family == "ordinary"),
        "everyday prompts": of(lambda one: _everyday(one)),
        "texts about rules and prompts": of(lambda one: one.family in ADVERSARIAL),
    }
    families = sorted({one.family for one in samples if one.injection})
    return {
        "threshold": round(head.threshold, 4),
        "attacks": len(attacks),
        "recall": round(float((attacks >= head.threshold).mean()), 4),
        "recall_by_family": {
            name: round(
                float((of(lambda one, name=name: one.family == name) >= head.threshold).mean()), 3
            )
            for name in families
        },
        "negatives": {
            name: {
                "texts": len(negative),
                "false_positives": round(float((negative >= head.threshold).mean()), 4),
                "auc": round(area_under_curve(attacks, negative), 4),
                "recall_at": {
                    f"{share:.1%}": round(
                        float((attacks > np.quantile(negative, 1 - share)).mean()), 3
                    )
                    for share in (0.001, 0.005, 0.01, 0.05, 0.1)
                },
            }
            for name, negative in groups.items()
        },
    }


def _everyday(sample: Sample) -> bool:
    return not sample.injection and sample.family not in {"ordinary", *ADVERSARIAL}


def recognizer_figures() -> dict[str, object]:
    """Tier 1 on ordinary windows: share that is changed or refused, and microseconds."""
    guardrails = Guardrails()
    texts = [one.text for held_out in (False, True) for one in ordinary_text(held_out=held_out)]
    changed = sum(
        guardrails.check_input(text).action in (Action.REDACT, Action.BLOCK) for text in texts
    )
    whole, pieces = [], []
    for text in texts[:500]:
        began = time.perf_counter()
        guardrails.check_input(text)
        whole.append(time.perf_counter() - began)
        check = guardrails.output_check()
        began = time.perf_counter()
        for start in range(0, len(text), PIECE):
            check.feed(text[start : start + PIECE])
        check.finish()
        pieces.append((time.perf_counter() - began) / max(1, len(text) / PIECE))
    return {
        "windows": len(texts),
        "changed": changed,
        "share_changed": round(changed / len(texts), 5),
        "median_us_per_window": round(statistics.median(whole) * 1e6, 1),
        f"median_us_per_piece_of_{PIECE}_characters": round(statistics.median(pieces) * 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    figures = {"injection_head": injection_figures(), "recognizers": recognizer_figures()}
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    print(text)
    if arguments.json is not None:
        write_result(arguments.json, figures)


if __name__ == "__main__":
    main()
