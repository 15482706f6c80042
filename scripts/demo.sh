#!/usr/bin/env bash
# A demonstration on real data: builds, gets three corpora, trains a small GPT, a small BERT and a small encoder-decoder
# from scratch, one after the other, and shows what each has learnt beside what a simple method reaches.
#   scripts/demo.sh [--seed N] [--out DIR]     runs go to DIR (default runs/demo); a second call resumes them
set -euo pipefail
cd "$(dirname "$0")/.."

seed=1 out=runs/demo
while (($#)); do
  case "$1" in
    --seed) seed=${2:?--seed needs a number}; shift 2 ;;
    --out) out=${2:?--out needs a directory}; shift 2 ;;
    *) printf 'demo: unknown option %s; usage: scripts/demo.sh [--seed N] [--out DIR]\n' "$1" >&2; exit 2 ;;
  esac
done

export ZOO_DATA=${ZOO_DATA:-datasets}
zoo=build/release/zoo
times=()
bold='' plain=''
if [[ -t 1 ]]; then bold=$'\033[1m' plain=$'\033[0m'; fi

# stage TITLE COMMAND…: prints the title, runs the command, and records its time.
stage() {
  local title=$1 begin=$SECONDS
  shift
  printf '\n%s== %s ==%s\n' "$bold" "$title" "$plain"
  "$@"
  times+=("$(printf '%6d s  %s' $((SECONDS - begin)) "$title")")
}

train() { "$zoo" train "$1" --set "training.seed=$seed" --out "$out/$2" --resume; }

# The data come while the compiler works. Both need what the set-up installs.
build_and_get_data() {
  scripts/get_data.sh debian-packages dict-de-en messages-de-en &
  local data=$!
  scripts/build.sh release --target zoo_program
  wait "$data"
}

stage "Set-up" scripts/setup.sh
stage "Build and data" build_and_get_data

stage "Training a GPT on descriptions of Debian's packages" train configs/gpt/debian-descriptions.yaml gpt
stage "Training a BERT on the same descriptions" train configs/bert/debian-descriptions-bert.yaml bert
stage "Training an encoder-decoder on German messages of programs and sentences" \
  train configs/translation/messages-de-en.yaml translation

show() {
  scripts/demo_results.py "$zoo" "$out" "$ZOO_DATA" "$seed"
  "$zoo" attention "$out/translation" --text "Ich liebe dich ." --out "$out/attention.html"
}
stage "Results" show

printf '\n%sTime of each stage%s\n' "$bold" "$plain"
printf '%s\n' "${times[@]}"
cat <<END

The runs        $out/gpt  $out/bert  $out/translation
  metrics       metrics.jsonl, and TensorBoard events: tensorboard --logdir $out
  samples       samples.txt: what each model wrote at every evaluation
Attention page  $out/attention.html
Translations    $out/translations.txt: of all test lines
Try next        $zoo generate $out/gpt --prompt "Python 3 library for" --num-samples 3
                $zoo generate $out/bert --prompt "development <mask> for the library"
                $zoo generate $out/translation --prompt "Die Datei wurde nicht gefunden ."
END
