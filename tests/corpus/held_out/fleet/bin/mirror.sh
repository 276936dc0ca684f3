#!/usr/bin/env bash
set -euo pipefail

readonly mirror=https://mirror.example.org
work=$(mktemp --directory)
trap 'rm -rf -- "$work"' EXIT
for name in gateway worker; do
  curl --fail --silent --show-error --output "$work/$name.tar.zst" "$mirror/$name.tar.zst"
  gpg --verify "keys/$name.sig" "$work/$name.tar.zst"
done
