#!/usr/bin/env python3
"""Runs the benchmark of serving on a tiny model and checks its output.

    serving_benchmark.py ZOO

Each server must have given several clients the texts that it gives one. Exit code without the packages of the peers: 77, or
1 if ZOO_REQUIRE_REFERENCES is set.
"""

import json
import sys
import tempfile
from math import isclose
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from benchmark import check, check_success, run, run_test  # noqa: E402

PROGRAM = "serving/run.py"
FIGURES = {"requests", "seconds", "tokens", "tokens_per_second", "requests_per_second", "client_cpus", "first_median", "first_p99",
           "between_median", "between_p99", "peak_bytes"}  # fmt: skip


def check_row(row, others, printed):
    where = f"{row['engine']}, {row['clients']} clients"
    figures = row["median"]
    check(set(figures) == FIGURES, f"{where} has {sorted(figures)}")
    check(all(figures[key] > 0 for key in FIGURES - {"client_cpus"}), f"{where}: {figures}")
    check(figures["requests"] == (4 if row["clients"] == 1 else 9), f"{where}: {figures['requests']} requests")
    check(
        figures["first_median"] <= figures["first_p99"] and figures["between_median"] <= figures["between_p99"],
        f"{where}: {figures}",
    )
    check(isclose(figures["tokens_per_second"], figures["tokens"] / figures["seconds"]), f"{where}: {figures}")
    check(1 << 20 < figures["peak_bytes"] < 1 << 32, f"{where}: {figures['peak_bytes']}")
    if row["engine"] != "zoo":
        ours = others["zoo", row["clients"]]["median"]
        check(isclose(row["advantage"]["tokens_per_second"], ours["tokens_per_second"] / figures["tokens_per_second"]), where)
        check(isclose(row["advantage"]["first_p99"], figures["first_p99"] / ours["first_p99"]), where)
    if row["clients"] > 1:
        alone = others[row["engine"], 1]["median"]
        check(isclose(row["over_alone"], figures["tokens_per_second"] / alone["tokens_per_second"]), where)
    check(f"| fp32 | {row['clients']} | {row['engine']} |" in printed, f"{where} is not in the table: {printed}")


def main(zoo):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        done = run(PROGRAM, "--smoke", "--threads", "1", "--zoo", zoo, "--json", str(file))
        check_success(done)
        document = json.loads(file.read_text(encoding="utf-8"))
    rows = {(row["engine"], row["clients"]): row for row in document["results"]}
    check(set(rows) == {(engine, n) for engine in ("zoo", "llama.cpp") for n in (1, 3)}, f"it compares {sorted(rows)}")
    for row in rows.values():
        check_row(row, rows, done.stdout)
    check(document["equal_texts"]["fp32"]["zoo"] == [4, 4], f"zoo's texts depend on other clients: {document['equal_texts']}")
    for wrong, word in (
        (("--engines", "vLLM"), "vLLM"),
        (("--model", "gpt-tiny"), "gpt-tiny"),
        (("--clients", "0"), "--clients"),
    ):
        failed = run(PROGRAM, "--zoo", zoo, *wrong)
        check(
            failed.returncode == 2 and failed.stderr.count("\n") == 1 and word in failed.stderr,
            f"{wrong} gives {failed.returncode}: {failed.stderr}",
        )
    check_disturbed(zoo)


def check_disturbed(zoo):
    """Hostile requests change no answer. How long they may keep others waiting is measured, not tested."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        kinds = ("leave", "expression", "suppressed", "heads")
        done = run("serving/disturb.py", "--smoke", "--threads", "1", "--zoo", zoo, "--json", str(file), "--kinds", *kinds)
        check(done.returncode in (0, 1), f"it ends with {done.returncode}: {done.stderr}")
        rows = json.loads(file.read_text(encoding="utf-8"))
    check(len(rows) == 7, f"it has tried {[row['kind'] for row in rows]}")
    for row in rows:
        check(row["equal"] == row["of"] == 9, f"{row['kind']}: {row['equal']} answers are equal, {row['problem']}")
    failed = run("serving/disturb.py", "--zoo", zoo, "--kinds", "friendly")
    check(failed.returncode == 2 and "--kinds" in failed.stderr, f"--kinds friendly gives {failed.returncode}")


if __name__ == "__main__":
    run_test(main, __doc__)
