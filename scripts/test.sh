#!/usr/bin/env bash
# Sets up, builds and runs every test. Arguments go to ctest: scripts/test.sh -R parity
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh --tests
scripts/build.sh release
export ZOO_REQUIRE_REFERENCES=1  # setup.sh has installed the references, so a skipped comparison is a failure
export ZOO_DATA_MIRROR=${ZOO_DATA_MIRROR:-$([ -d ../shared/data ] && cd ../shared/data && pwd || true)}
ctest --preset release --parallel "$(nproc)" "$@"
