#!/usr/bin/env bash
# Runs the studies of configs/compare and writes their pages to docs/studies: NAME.html to look at, NAME.md to read in a
# repository, and an index. Each takes up to 20 minutes on two cores; what was interrupted goes on where it was.
#   scripts/studies.sh [NAME…]      default: all of configs/compare
set -euo pipefail
cd "$(dirname "$0")/.."

names=("$@")
((${#names[@]})) || for file in configs/compare/*.yaml; do names+=("$(basename "$file" .yaml)"); done
for name in "${names[@]}"; do
  [[ -f configs/compare/$name.yaml ]] || { printf 'studies: no study %s in configs/compare\n' "$name" >&2; exit 2; }
done

export ZOO_DATA=${ZOO_DATA:-data}
scripts/build.sh release --target zoo_program
scripts/get_data.sh fortunes dict-de-en
[[ " ${names[*]} " != *" translation-families "* ]] || scripts/get_data.sh multi30k
mkdir -p docs/studies
for name in "${names[@]}"; do
  begin=$SECONDS
  build/release/zoo compare "configs/compare/$name.yaml" --out "runs/studies/$name" --resume --jobs "${STUDY_JOBS:-1}"
  cp "runs/studies/$name/report.md" "docs/studies/$name.md"
  cp "runs/studies/$name/report.html" "docs/studies/$name.html"
  printf 'studies: %s took %d s\n\n' "$name" $((SECONDS - begin)) >&2
done

# The index, from all results that are there.
python3 - <<'PY'
import glob, json, os
lines = ["# Studies", "",
         "Each compares a few variants of one model on the same data under the same budget, with several seeds. What people",
         "say, and what was measured here, at a small size. Made by `scripts/studies.sh`; every page ends with its command.", ""]
for path in sorted(glob.glob("runs/studies/*/results.json")):
    results = json.load(open(path))
    name = os.path.basename(os.path.dirname(path))
    lines += [f"## [{results['title'] or name}]({name}.md)", "", results["folklore"].strip(), "",
              f"**Measured:** {results['measured']}", "", f"[Table]({name}.md), [page]({name}.html) (download it and open it)", ""]
with open("docs/studies/README.md", "w") as index:
    index.write("\n".join(lines))
PY
