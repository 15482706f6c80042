#!/usr/bin/env python3
"""Runs llama.cpp's server with a GGUF file until its standard input ends.

    peer.py FILE.gguf THREADS SLOTS TOKENS

SLOTS requests are answered together, each with at most TOKENS tokens. Prints the address and the version, one a line. Exit
code 77 if this Python has no xllamacpp.
"""

import sys

try:
    import xllamacpp
except ModuleNotFoundError:
    sys.exit(77)


def main(file, threads, slots, tokens):
    parameters = xllamacpp.CommonParams()
    parameters.model.path = file
    parameters.n_gpu_layers = 0
    parameters.n_parallel, parameters.n_ctx, parameters.kv_unified = int(slots), int(slots) * int(tokens), True
    parameters.warmup = parameters.fit_params = parameters.ui = False
    parameters.verbosity = parameters.cache_ram_mib = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = int(threads)
    server = xllamacpp.Server(parameters)
    print(
        server.listening_address, f"{xllamacpp.__version__} ({xllamacpp.get_system_info().strip(' |')})", sep="\n", flush=True
    )
    sys.stdin.read()


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
