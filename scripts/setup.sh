#!/usr/bin/env bash
# Installs missing dependencies: Debian packages, and LibTorch as the PyTorch wheel in a private .venv. Does nothing if
# nothing is missing. LIBTORCH=/path/to/libtorch (or CMAKE_PREFIX_PATH) uses a LibTorch of yours instead of the wheel.
#   scripts/setup.sh           for building and running
#   scripts/setup.sh --tests   also for the tests (reference implementations in Python, a browser)
set -euo pipefail
cd "$(dirname "$0")/.."

torch_version=2.13.0
packages=(cmake g++ ninja-build libsentencepiece-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libgloo-dev
          libgtest-dev libgmock-dev python3-venv)
references=(numpy 'transformers>=4.57,<4.58' 'safetensors>=0.5' 'sacrebleu>=2.6,<2.7')

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
  local prefix
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

install_libtorch() {
  if has_own_libtorch; then
    say "using the LibTorch of LIBTORCH or CMAKE_PREFIX_PATH"
    return
  fi
  make_venv
  python_has torch "$torch_version" && return
  say "installing LibTorch $torch_version (the PyTorch wheel) into .venv"
  .venv/bin/pip install -q "torch==$torch_version" || fail "pip install torch==$torch_version failed: is there a network?"
}

install_references() {
  make_venv
  if python_has transformers 4.57 && python_has sacrebleu 2.6 && python_has safetensors && python_has numpy && python_has torch; then
    return
  fi
  say "installing the tests' references into .venv: ${references[*]}"
  .venv/bin/pip install -q "torch==$torch_version" "${references[@]}" || fail "pip install ${references[*]} failed"
}

[[ ${1:-} != --tests ]] || packages+=(chromium)
install_debian_packages
install_libtorch
[[ ${1:-} != --tests ]] || install_references
say "everything is installed"
