#!/usr/bin/env bash
# some_failed.sh COMMAND…: runs pytest, and succeeds also when tests failed (status 1), which pytest keeps in its
# cache. Anything else, such as a test that cannot be imported, is a failure.
set -uo pipefail
"$@"
status=$?
[ "$status" -eq 1 ] && status=0
exit "$status"
