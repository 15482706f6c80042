#!/usr/bin/env bash
# Runs the studies of configs/compare and writes to docs/studies: NAME.json with the results, NAME.md, and an index.
# `zoo compare docs/studies/NAME.json --out DIR` makes the page for a browser. Each study takes up to 30 minutes on two
# cores. An interrupted study goes on where it was.
#   scripts/studies.sh [NAME…]      default: all of configs/compare
set -euo pipefail
cd "$(dirname "$0")/.."

names=("$@")
((${#names[@]})) || for file in configs/compare/*.yaml; do names+=("$(basename "$file" .yaml)"); done
for name in "${names[@]}"; do
  [[ -f configs/compare/$name.yaml ]] || { printf 'studies: no study %s in configs/compare\n' "$name" >&2; exit 2; }
done

export ZOO_DATA=${ZOO_DATA:-datasets}
scripts/build.sh release --target zoo_program
scripts/get_data.sh fortunes dict-de-en
[[ " ${names[*]} " != *" translation-families "* ]] || scripts/get_data.sh multi30k
[[ " ${names[*]} " != *" images "* ]] || scripts/get_data.sh fashion-mnist
[[ " ${names[*]} " != *" music-positions "* ]] || scripts/get_data.sh nottingham
[[ " ${names[*]} " != *" fill-in-the-middle "* ]] || scripts/get_data.sh python-stdlib
[[ " ${names[*]} " != *" speech "* ]] || scripts/get_data.sh fsdd-strings
if [[ " ${names[*]} " == *" protein-pretraining "* ]]; then
  scripts/get_data.sh proteins
  [[ -f runs/residues/model.safetensors ]] || build/release/zoo train configs/proteins/residues.yaml
fi
[[ " ${names[*]} " != *" folding "* ]] || scripts/get_data.sh structures
[[ " ${names[*]} " != *" induction-heads "* ]] || scripts/get_data.sh copy
[[ " ${names[*]} " != *" state-tracking"* ]] || scripts/get_data.sh state-tracking
for name in listops associative-recall mad; do
  [[ " ${names[*]} " != *" $name "* ]] || scripts/get_data.sh "$name"
done
mkdir -p docs/studies
for name in "${names[@]}"; do
  begin=$SECONDS
  build/release/zoo compare "configs/compare/$name.yaml" --out "runs/studies/$name" --resume --jobs "${STUDY_JOBS:-1}"
  # Paths such as that of init_from are those of this machine, and so are the reports of single tasks.
  sed -E "s#$PWD/##g; s# \(\[its report\]\(<.*>\)\)\$##" "runs/studies/$name/report.md" >"docs/studies/$name.md"
  sed "s#$PWD/##g" "runs/studies/$name/results.json" >"docs/studies/$name.json"
  printf 'studies: %s took %d s\n\n' "$name" $((SECONDS - begin)) >&2
done

scripts/studies_index.py docs/studies
