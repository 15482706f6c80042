#!/usr/bin/env python3
"""Lists the chains of the corpus structures, in the folders train, valid and test of FROM, with their checksums:

    prepare_structures.py FROM TO

TO/chains.sha256 has a line for each file, as sha256sum writes it, in the order of the names. The chains are the backbones, with
CB, of the unbound structures of Docking Benchmark 5.5; those that share more than a quarter of their 4-mers are in one part.
"""

import hashlib
import sys
from pathlib import Path


def main():
    source, target = map(Path, sys.argv[1:])
    files = sorted(str(path.relative_to(source)) for part in ("train", "valid", "test") for path in (source / part).iterdir())
    if not files:
        sys.exit(f"{source}: has no chains")
    lines = (f"{hashlib.sha256((source / name).read_bytes()).hexdigest()}  {name}\n" for name in files)
    (target / "chains.sha256").write_text("".join(lines))


if __name__ == "__main__":
    main()
