#!/usr/bin/env bash
# A demonstration on real data: builds, gets two corpora, trains a small GPT, a small BERT and a small encoder-decoder
# from scratch, one after the other, and shows what each has learnt. About ten minutes of training on two cores.
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

stage "Set-up and build" scripts/build.sh release --target zoo_program
stage "Data" scripts/get_data.sh fortunes dict-de-en

stage "Training a GPT on fortunes" train configs/gpt/fortunes.yaml gpt
stage "Training a BERT on English sentences and phrases" train configs/bert/dict-en.yaml bert
stage "Training an encoder-decoder on a German-English dictionary" train configs/translation/dict-de-en.yaml translation

show() {
  printf '\n%sA fortune by the GPT%s\n' "$bold" "$plain"
  "$zoo" generate "$out/gpt" --prompt "" --seed "$seed"
  printf '\n%sA mask filled by the BERT%s\n' "$bold" "$plain"
  "$zoo" generate "$out/bert" --prompt "I <mask> you ."
  printf '\n%s"Ich liebe dich ." translated by the encoder-decoder%s\n' "$bold" "$plain"
  "$zoo" generate "$out/translation" --prompt "Ich liebe dich ."
  printf '\n%sIts attention%s\n' "$bold" "$plain"
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
Try next        $zoo generate $out/gpt --prompt "Love is" --num-samples 3
                $zoo evaluate $out/translation --split test
                $zoo inspect $out/bert
END
