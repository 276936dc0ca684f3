#!/bin/sh
# Run one step of the set-up: its name, elapsed time and progress are shown, its output only if it fails.
#
#     HINT="what to do if it fails" scripts/step.sh NAME COMMAND [ARGUMENT...]
#
# Progress is the crate or package that cargo or pip (without --quiet) named last. On a terminal one line is rewritten
# every TICK seconds (1); elsewhere a line is written every REPORT_EVERY seconds (15). The exit status is the command's.
name=$1
shift
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
start=$(date +%s)
elapsed() { echo $(($(date +%s) - start)); }

# What the command does, by its output so far; empty if that does not say it.
progress() {
    awk '
        $1 == "Compiling" { doing = ", compiling " $2 ", crate " ++crates }
        $1 == "Finished" || $1 == "Installing" { doing = ", installing" }
        $1 == "Downloading" && $2 !~ /\// { sub(/-[0-9].*/, "", $2); doing = ", downloading " $2 }
        END { print doing }
    ' "$log"
}

if [ -t 1 ]; then
    width=$(stty size <&1 2>/dev/null | cut -d' ' -f2)
    if [ "${width:-0}" -eq 0 ]; then width=80; fi
    show() { printf '\r\033[K%.*s' $((width - 1)) "$name ... $(elapsed) s$(progress)"; }
    printf '%s ...' "$name"
else
    reported=0
    show() {
        if [ $(($(elapsed) - reported)) -ge "${REPORT_EVERY:-15}" ]; then
            reported=$(elapsed)
            printf '%s ... %s s%s\n' "$name" "$reported" "$(progress)"
        fi
    }
    printf '%s ...\n' "$name"
fi
"$@" >"$log" 2>&1 &
pid=$!
while kill -0 "$pid" 2>/dev/null; do
    show
    sleep "${TICK:-1}"
done
wait "$pid"
status=$?
if [ -t 1 ]; then printf '\r\033[K'; fi
if [ "$status" -eq 0 ]; then
    printf '%s: done in %s s\n' "$name" "$(elapsed)"
else
    printf '%s: failed after %s s\n' "$name" "$(elapsed)"
    {
        tail -n 40 "$log"
        echo
        echo "\"$name\" failed with status $status; the end of its output is above. ${HINT:-}"
    } >&2
fi
exit "$status"
