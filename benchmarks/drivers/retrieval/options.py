"""Command line of a peer's process."""

import argparse
from pathlib import Path


def options() -> argparse.Namespace:
    """Parse it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, required=True, help="what minilm_formats.py wrote")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--weights", choices=("f32", "int8"), default="f32")
    return parser.parse_args()
