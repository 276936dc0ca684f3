#!/usr/bin/env bash
# typer 0.29.2: a `click.UsageError` raised in a command ends in a traceback and exit status 1.
#
# Typer brings a copy of click under `typer._click`. An exception of the installed click, such as one that a
# helper library or a parameter type raises, is no longer caught: with click alone, or with typer's own
# `typer.BadParameter`, the user reads the usage line and one sentence, and the exit status is 2.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet typer==0.29.2 click==8.5.1
cat >"$folder/program.py" <<'PYTHON'
import click
import typer

app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def main(kind: str) -> None:
    if kind == "click":
        raise click.UsageError("The number is too large.")
    raise typer.BadParameter("The number is too large.")


app()
PYTHON
statuses=()
for kind in click typer; do
    status=0
    "$folder/venv/bin/python" "$folder/program.py" "$kind" >"$folder/$kind.txt" 2>&1 || status=$?
    echo "$kind: status $status, last line: $(tail -n 1 "$folder/$kind.txt")"
    statuses+=("$status")
done
test "${statuses[*]}" = "1 2" || { echo "the behaviour has changed" >&2; exit 1; }
grep -q Traceback "$folder/click.txt" || { echo "the behaviour has changed" >&2; exit 1; }
