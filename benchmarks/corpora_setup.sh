#!/usr/bin/env bash
# Downloads and extracts the documentation that benchmarks/retrieval.py searches: Debian's packages
# python3.11-doc, linux-doc-6.1 and rust-doc (67 MB, extracted 0.8 GB). Nothing is installed.
#
#     benchmarks/corpora_setup.sh DIR
#
# Needs apt-get and dpkg-deb. The versions are those of the configured release (Debian 12 has all three); the
# benchmark records them. What is extracted already is not downloaded again.
set -euo pipefail

[ $# -eq 1 ] || { sed -n '2,5p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
mkdir -p "$1/packages"
cd "$1"
for package in python3.11-doc linux-doc-6.1 rust-doc; do
    [ ! -d "$package" ] || continue
    (cd packages && apt-get download "$package")
    rm -rf "$package.part"
    mkdir "$package.part"
    dpkg-deb -x packages/"$package"_*.deb "$package.part"
    mv "$package.part" "$package"
done
