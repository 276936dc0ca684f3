#!/bin/sh
# Run one step of the set-up: its name and elapsed time are shown, its output only if it fails.
#
#     HINT="what to do if it fails" scripts/step.sh NAME COMMAND [ARGUMENT...]
#
# On a terminal the elapsed time is updated every second. The exit status is the command's.
name=$1
shift
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
start=$(date +%s)
elapsed() { echo $(($(date +%s) - start)); }

if [ -t 1 ]; then printf '%s ...' "$name"; else printf '%s ...\n' "$name"; fi
"$@" >"$log" 2>&1 &
pid=$!
if [ -t 1 ]; then
    while kill -0 "$pid" 2>/dev/null; do
        printf '\r%s ... %s s ' "$name" "$(elapsed)"
        sleep 1
    done
fi
wait "$pid"
status=$?
if [ -t 1 ]; then printf '\r'; fi
if [ "$status" -eq 0 ]; then
    printf '%s: done in %s s \n' "$name" "$(elapsed)"
else
    printf '%s: failed after %s s\n' "$name" "$(elapsed)"
    {
        tail -n 40 "$log"
        echo
        echo "\"$name\" failed with status $status; the end of its output is above. ${HINT:-}"
    } >&2
fi
exit "$status"
