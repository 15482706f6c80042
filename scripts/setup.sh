#!/usr/bin/env bash
# Installs missing dependencies: Debian packages, and LibTorch as the PyTorch wheel in a private .venv. Does nothing if
# nothing is missing. LIBTORCH=/path/to/libtorch (or CMAKE_PREFIX_PATH) uses a LibTorch of yours instead of the wheel.
#   scripts/setup.sh           for building and running
#   scripts/setup.sh --tests   also for the tests (reference implementations in Python, a browser)
#
# PyPI's wheel is built for CUDA and takes several GB with its dependencies. A machine without an NVIDIA GPU gets the
# wheel for CPUs from PyTorch's own index, or PyPI's if that index cannot be reached.
# ZOO_TORCH_INDEX=URL takes the wheel from another package index, ZOO_TORCH_INDEX=pypi from PyPI. It takes the place of an
# installed wheel that is plainly another one: for CPUs, or for another CUDA.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_version=2.13.0
cpu_index=https://download.pytorch.org/whl/cpu
packages=(cmake g++ ninja-build esbuild libsentencepiece-dev libpcre2-dev libutf8proc-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libboost-dev libgloo-dev
          libpng-dev libjpeg-dev libwebp-dev libgd-dev zlib1g-dev libsndfile1-dev
          libgtest-dev libgmock-dev python3-venv)
references=scripts/references.txt
older_references=scripts/references-4.txt

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

install_debian_packages() {
  local missing=() package
  command -v dpkg-query >/dev/null || fail "this system has no dpkg: install by hand ${packages[*]}"
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  # A tool without its package (built by hand, another compiler) will do, too.
  local needed=()
  for package in "${missing[@]:-}"; do
    case "$package" in
      '') ;;
      cmake) command -v cmake >/dev/null || needed+=(cmake) ;;
      g++) command -v g++ >/dev/null || needed+=(g++) ;;
      ninja-build) command -v ninja >/dev/null || needed+=(ninja-build) ;;
      esbuild) command -v esbuild >/dev/null || needed+=(esbuild) ;;
      chromium) command -v chromium chromium-browser google-chrome >/dev/null || needed+=(chromium) ;;
      *) needed+=("$package") ;;
    esac
  done
  ((${#needed[@]})) || return 0
  local sudo=()
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null || fail "packages are missing, and only root may install them: run apt-get install ${needed[*]} as root"
    sudo=(sudo -n)
  fi
  say "installing ${needed[*]}"
  "${sudo[@]}" apt-get update -qq || fail "apt-get update failed: is there a network?"
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${needed[@]}" >/dev/null ||
    fail "apt-get install ${needed[*]} failed"
}

has_own_libtorch() {
  local prefix prefixes
  IFS=':' read -ra prefixes <<<"${LIBTORCH:-}:${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    [[ -n $prefix && -e $prefix/share/cmake/Torch/TorchConfig.cmake ]] && return 0
  done
  return 1
}

make_venv() {
  if [[ ! -x .venv/bin/pip ]]; then
    say "creating .venv"
    rm -rf .venv
    python3 -m venv .venv || fail "python3 -m venv failed: install python3-venv"
  fi
}

# python_has MODULE [VERSION]: whether .venv has this module; VERSION is a prefix of the wanted version.
python_has() {
  .venv/bin/python3 - "$@" 2>/dev/null <<'PY'
import sys
from importlib.metadata import version
assert len(sys.argv) == 2 or version(sys.argv[1]).split("+")[0].startswith(sys.argv[2])
version(sys.argv[1])
PY
}

has_nvidia_gpu() {
  [[ -e /proc/driver/nvidia/version || -e /dev/nvidia0 ]] || nvidia-smi -L >/dev/null 2>&1
}

# can_reach URL: whether a server answers there within seconds.
can_reach() {
  timeout 20 .venv/bin/python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10)' "$1" 2>/dev/null
}

# is_chosen_torch: whether the installed wheel may be from ZOO_TORCH_INDEX. Wheels of PyTorch's indexes have the index's
# last word in their version, as in 2.13.0+cpu and 2.13.0+cu126; PyPI's have none.
is_chosen_torch() {
  local index=${ZOO_TORCH_INDEX:-} label=''
  index=${index%/}
  case "${index##*/}" in
    pypi) ;;
    cpu | cu[0-9]* | rocm*) label=${index##*/} ;;
    *) return 0 ;;
  esac
  [[ $(.venv/bin/python3 -c 'from importlib.metadata import version; print(version("torch").partition("+")[2])') == "$label" ]]
}

# pip_torch [OPTION...]: installs LibTorch. An older one stays until the new one is downloaded.
pip_torch() {
  if python_has torch; then
    .venv/bin/pip install -q "$@" --force-reinstall --no-deps "torch==$torch_version" || return
  fi
  .venv/bin/pip install -q "$@" "torch==$torch_version"
}

# install_torch_from INDEX
install_torch_from() {
  say "installing LibTorch $torch_version (the PyTorch wheel) from $1 into .venv"
  pip_torch --index-url "$1"
}

install_torch() {
  make_venv
  python_has torch "$torch_version" && is_chosen_torch && return
  local index=${ZOO_TORCH_INDEX:-}
  if [[ -n $index && $index != pypi ]]; then
    install_torch_from "$index" || fail "pip install torch==$torch_version from $index (ZOO_TORCH_INDEX) failed"
    return
  fi
  if [[ -z $index ]] && ! has_nvidia_gpu; then
    if can_reach "$cpu_index/torch/"; then
      install_torch_from "$cpu_index" && return
      say "that failed: trying PyPI, whose wheel takes several GB"
    else
      say "$cpu_index cannot be reached: using PyPI, whose wheel takes several GB"
    fi
  fi
  say "installing LibTorch $torch_version (the PyTorch wheel) into .venv"
  pip_torch || fail "pip install torch==$torch_version failed: is there a network?"
}

# LibTorch's headers of NCCL include headers of CUDA that PyPI's wheel does not ask for: without them there is no training on
# several GPUs.
install_cuda_headers() {
  python_has cuda-toolkit || return 0
  python_has nvidia-cuda-crt && python_has nvidia-cuda-cccl && return
  say "installing headers of CUDA into .venv"
  local toolkit
  toolkit=$(.venv/bin/python3 -c 'from importlib.metadata import version; print(version("cuda-toolkit"))')
  .venv/bin/pip install -q "cuda-toolkit[crt,cccl]==$toolkit" || say "that failed: there will be no training on several GPUs"
}

install_libtorch() {
  if has_own_libtorch; then
    say "using the LibTorch of LIBTORCH or CMAKE_PREFIX_PATH"
    return
  fi
  install_torch
  install_cuda_headers
}

# warn_without_cuda: a GPU is of no use to a LibTorch without CUDA. zoo doctor says the same.
warn_without_cuda() {
  has_nvidia_gpu || return 0
  local prefix prefixes=(.venv/lib/python3*/site-packages/torch)
  if has_own_libtorch; then IFS=':' read -ra prefixes <<<"${LIBTORCH:-}:${CMAKE_PREFIX_PATH:-}"; fi
  for prefix in "${prefixes[@]}"; do
    [[ -n $prefix && -e $prefix/lib/libtorch_cuda.so ]] && return 0
  done
  if has_own_libtorch; then
    say "this machine has an NVIDIA GPU, but the LibTorch of LIBTORCH or CMAKE_PREFIX_PATH has no CUDA"
  else
    say "this machine has an NVIDIA GPU, but LibTorch has no CUDA: run ZOO_TORCH_INDEX=pypi scripts/setup.sh, then scripts/build.sh"
  fi
}

install_references() {
  install_torch
  local line missing=0
  while read -r line; do
    [[ -z $line || $line == '#'* ]] || python_has "${line%%==*}" "${line##*==}" || missing=1
  done <"$references"
  ((missing)) || return 0
  say "installing the tests' references into .venv ($references)"
  .venv/bin/pip install -q -r "$references" || fail "pip install -r $references failed"
}

install_older_references() {
  local folder=.venv/transformers-4
  cmp -s "$older_references" "$folder/references.txt" && return
  say "installing an older transformers for the tests into $folder ($older_references)"
  rm -rf "$folder"
  .venv/bin/pip install -q --no-deps --target "$folder" -r "$older_references" || fail "pip install -r $older_references failed"
  cp "$older_references" "$folder/references.txt"
}

[[ ${1:-} != --tests ]] || packages+=(chromium)
install_debian_packages
install_libtorch
[[ ${1:-} != --tests ]] || { install_references; install_older_references; }
say "everything is installed"
warn_without_cuda
