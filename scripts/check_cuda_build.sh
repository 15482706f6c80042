#!/usr/bin/env bash
# Builds the program and the tests of devices against LibTorch for CUDA, on a machine that needs neither a GPU nor a CUDA
# toolkit. Nothing of it is run: the libraries of CUDA are not all there.
#   scripts/check_cuda_build.sh [VERSION...]     versions of LibTorch; default: the oldest that is supported, and the newest
# Takes some 15 minutes on two cores and downloads 1.6 GB for each version. build/cuda/VERSION keeps both for the next time.
# ZOO_HEADERS=none leaves CUDA's headers out, as on a machine where setup.sh could not install them.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
(($#)) || set -- 2.11.0 newest

# fetch WHEELS REQUIREMENT...: as pip finds them for this machine.
fetch() {
  local wheels=$1
  shift
  python3 -m pip download -q --no-deps --only-binary=:all: -d "$wheels" "$@"
}

# requirement FILE PATTERN: the version that a wheel's METADATA asks for.
required() { sed -nE "s/^Requires-Dist: $2==([0-9.]+).*/\1/p" "$1" | head -1; }

status=0
for version in "$@"; do
  begin=$SECONDS
  work=$root/build/cuda/$version
  site=$work/site
  if [[ ! -e $site/complete ]]; then
    rm -rf "$site"
    mkdir -p "$work/wheels" "$site"
    if [[ $version == newest ]]; then fetch "$work/wheels" torch; else fetch "$work/wheels" "torch==$version"; fi
    unzip -q -o "$work"/wheels/torch-*.whl -d "$site"
    [[ -e $site/torch/lib/libtorch_cuda.so ]] || {
      echo "check_cuda_build: this package index has LibTorch for processors only: set PIP_INDEX_URL to PyPI's" >&2
      exit 1
    }
    metadata=$(echo "$site"/torch-*.dist-info/METADATA)
    toolkit=$(required "$metadata" 'cuda-toolkit\[[^]]*\]')
    nccl=$(required "$metadata" 'nvidia-nccl-cu[0-9]+')
    # The wheels that the toolkit's package of this version stands for; only their headers are used.
    fetch "$work/wheels" "cuda-toolkit==$toolkit"
    mapfile -t parts < <(unzip -p "$work/wheels/cuda_toolkit-$toolkit"*.whl '*/METADATA' |
      sed -nE 's/^Requires-Dist: (nvidia-(cublas|cusparse|cusolver|cuda-runtime|cuda-nvrtc|cuda-crt|cuda-cccl)==[0-9.*]+);.*extra == .all.$/\1/p')
    fetch "$work/wheels" "nvidia-nccl-cu${toolkit%%.*}==$nccl" "${parts[@]}"
    for wheel in "$work"/wheels/nvidia_*.whl; do unzip -q -o "$wheel" '*/include/*' -d "$site"; done
    rm -rf "$work/wheels"
    touch "$site/complete"
  fi
  if [[ ${ZOO_HEADERS:-all} == none ]]; then
    mkdir -p "$work/bare"
    ln -sfn "$site/torch" "$work/bare/torch"
    libtorch=$work/bare/torch build=$work/build-bare
  else
    libtorch=$site/torch build=$work/build
  fi
  echo "LibTorch $version: its wheels are there after $((SECONDS - begin)) s"
  begin=$SECONDS
  LIBTORCH=$libtorch cmake --preset release -B "$build" -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined >"$work/cmake.log" 2>&1 || {
    tail -20 "$work/cmake.log"
    exit 1
  }
  grep -E 'LibTorch [0-9]|GPUs' "$work/cmake.log"
  if cmake --build "$build" --target zoo_program training_tests >"$work/build.log" 2>&1; then
    symbols=$(nm -DC "$build/zoo")
    [[ $symbols == *c10d::ProcessGroupNCCL* ]] && with=with || with=without
    echo "LibTorch $version: built and linked, $with NCCL, in $((SECONDS - begin)) s"
  else
    grep -E 'error|warning|undefined' "$work/build.log" | head -20
    echo "LibTorch $version: the build failed; $work/build.log says more"
    status=1
  fi
done
exit $status
