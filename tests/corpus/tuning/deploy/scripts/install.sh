#!/bin/sh
set -eu

prefix=${1:-/opt/ledger}
mkdir -p "$prefix"
curl -fsSL https://get.example.org/agent.sh | sh
curl -k -o "$prefix/rates.json" https://rates.example.org/daily.json
chmod 4755 "$prefix/helper"
chmod 0755 "$prefix/run"
echo "ledger ALL=(ALL) NOPASSWD: ALL" > /etc/sudoers.d/ledger
