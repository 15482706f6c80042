"""What the scripts that make corpora of speech share: lists of recordings, and their checksums."""

import hashlib

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def write_lists(out, lists):
    """lists: of each split, (name of a file in OUT/recordings, what is said, who says it)."""
    for split, rows in lists.items():
        with open(out / f"{split}.tsv", "w", encoding="utf-8", newline="\n") as file:
            file.write("audio\ttext\tspeaker\n")
            file.writelines(f"recordings/{name}\t{text}\t{speaker}\n" for name, text, speaker in rows)


def write_sums(out):
    """OUT/recordings.sha256, in the order of the names, as sha256sum reads it."""
    with open(out / "recordings.sha256", "w", encoding="utf-8", newline="\n") as file:
        for path in sorted((out / "recordings").glob("*.wav")):
            file.write(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  recordings/{path.name}\n")
