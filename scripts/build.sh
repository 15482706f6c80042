#!/usr/bin/env bash
# Sets up and builds. The program is then build/PRESET/zoo.
#   scripts/build.sh [PRESET] [CMAKE_BUILD_ARGUMENT...]     PRESET: release (default), debug, asan, tsan
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
scripts/setup.sh
log=$(cmake --preset "$preset" 2>&1) || { printf '%s\n' "$log" >&2; exit 1; }
cmake --build --preset "$preset" "$@"
