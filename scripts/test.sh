#!/usr/bin/env bash
# Sets up, builds and runs the tests. Other arguments go to ctest: scripts/test.sh -R parity
# --long, as the first argument, adds what takes minutes and needs no daily run: the tests with the label "long", and builds
# for CUDA (scripts/check_gpu_texts.sh, scripts/check_cuda_build.sh), which need no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh --tests
scripts/build.sh release
export ZOO_REQUIRE_REFERENCES=1  # setup.sh has installed the references, so a skipped comparison is a failure
export ZOO_DATA_MIRROR=${ZOO_DATA_MIRROR:-$([ -d ../shared/data ] && cd ../shared/data && pwd || true)}
# Tests write thousands of small files, and wait for the disk at each that has to survive a loss of power. Memory is faster,
# where there is some and programs may be started from it.
memory=/dev/shm
may_hold_tests() {
  local -r least_gigabytes=2
  [ -w "$memory" ] && ! findmnt -n -o OPTIONS -T "$memory" | grep -qw noexec &&
    [ "$(df --output=avail -B1G "$memory" | tail -n 1)" -ge "$least_gigabytes" ]
}
if [ -z "${TMPDIR-}" ] && may_hold_tests; then export TMPDIR=$memory; fi
log=build/release/Testing/Temporary/LastTest.log
rm -f "$log"
long=
selection=(-LE '^long$')
if [ "${1-}" = --long ]; then
  long=yes
  selection=()
  shift
fi
status=0
ctest --preset release "${selection[@]}" --parallel "$(nproc)" "$@" || status=$?
# An entry of ctest is a suite of tests; the log of their output has each test.
[ ! -f "$log" ] || awk '
  /^\[  PASSED  \] [0-9]+ test/ { passed += $4 }
  /^\[  SKIPPED \] [0-9]+ test/ { skipped += $4 }
  /^\[  FAILED  \] [0-9]+ test/ { failed += $4 }
  /^\[  FAILED  \] [^ ]+\.[^ ]+/ { sub(/,$/, "", $4); if (!named[$4]++) print "failed: " $4 }
  END { printf "single tests in C++: %d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$log"
if [ -n "$long" ]; then
  scripts/check_gpu_texts.sh || status=$?
  scripts/check_cuda_build.sh || status=$?
fi
exit $status
