#!/usr/bin/env bash
# Compiles the texts of our kernels for GPUs (kernels/gpu) with NVIDIA's run-time compiler from PyPI, for several cards.
# It needs neither a GPU nor a CUDA toolkit, but the tests of build/release. Downloads 60 MB once.
set -euo pipefail
cd "$(dirname "$0")/.."
work=build/nvrtc
if [[ ! -e $work/complete ]]; then
  rm -rf "$work"
  mkdir -p "$work"
  python3 -m pip download -q --no-deps --only-binary=:all: -d "$work" nvidia-cuda-nvrtc
  unzip -q -o "$work"/nvidia_cuda_nvrtc-*.whl '*/lib/*' -d "$work"
  rm "$work"/*.whl
  touch "$work/complete"
fi
library=$(find "$PWD/$work" -name 'libnvrtc.so.*' | head -1)
ZOO_NVRTC=$library build/release/tests/layers_tests --gtest_brief=1 --gtest_filter='RunTimeCompiler.*:CudaTexts.*'
