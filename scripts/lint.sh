#!/usr/bin/env bash
# Checks includes between folders (scripts/check_rooms.py), modules of JavaScript (scripts/check_pages.py), source code that
# pages quote (scripts/quote_sources.py), papers (scripts/make_papers.py), what pages say of the sources
# (scripts/check_documents.py) and style (clang-format), and looks for mistakes (clang-tidy).
# Changes no source. Installs clang-format and clang-tidy into .venv.
#   scripts/lint.sh            every source: twenty minutes on two cores
#   scripts/lint.sh FILE...    style and mistakes of these files only
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh --tests
[[ -x .venv/bin/clang-tidy ]] || .venv/bin/pip install -q 'clang-format==23.1.*' 'clang-tidy==23.1.*'
log=$(cmake --preset debug 2>&1) || { printf '%s\n' "$log" >&2; exit 1; }  # no unity build

if (( $# == 0 )); then
  mapfile -t files < <(git ls-files '*.cpp' '*.h')
else
  files=("$@")
fi
scripts/check_rooms.py
scripts/check_pages.py
scripts/quote_sources.py
scripts/make_papers.py
scripts/check_documents.py
.venv/bin/clang-format --dry-run -Werror "${files[@]}"
# Options for what clang lacks: g++'s warnings, precompiled headers and OpenMP header; and the headers as programs outside
# this repository include them.
options=(-p build/debug --quiet '--warnings-as-errors=*' --extra-arg=-Wno-unknown-warning-option
  --extra-arg=-Wno-ignored-gch --extra-arg=-Wno-deprecated-declarations --extra-arg=-Qunused-arguments
  --extra-arg=-Ibuild/debug/include "--extra-arg=-idirafter$(g++ -print-file-name=include)")
printf '%s\n' "${files[@]}" | { grep '\.cpp$' || true; } | xargs -r -P "$(nproc)" -n 1 .venv/bin/clang-tidy "${options[@]}"
