"""Figures of several rounds, and the machine that they are of."""

import os
import statistics


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def with_spread(values, form, factor=1):
    middle, low, high = (form.format(values[key] * factor) for key in ("median", "min", "max"))
    return middle if low == high else f"{middle} ({low}–{high})"


def machine(arguments):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return {"cpu": models[0] if models else "unknown", "cpus": os.cpu_count(), "threads": arguments.threads}
