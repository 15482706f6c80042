"""Parquet files with columns of many types, and the texts that they hold."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

N = 3000  # more rows than are read at once


def tables(out):
    texts = [None if i % 7 == 0 else f"Zeile {i}, “{'é€' * (i % 5)}”\r\nmore " for i in range(N)]
    labels = ["good", "bad", "good"] * (N // 3)
    columns = {
        "text": pa.array(texts, pa.string()),
        "large": pa.array(texts, pa.large_string()),
        "view": pa.array(texts, pa.string_view()),
        "label": pa.array(labels).dictionary_encode(),
        "number": pa.array(range(N), pa.int32()),
        "truth": pa.array([i % 2 == 0 for i in range(N)]),
        "translation": pa.array([{"de": f"Satz {i}", "en": f"sentence {i}"} for i in range(N)]),
        "list": pa.array([[i] for i in range(N)]),
    }
    table = pa.table(columns)
    for compression in ["none", "snappy", "gzip", "zstd"]:
        pq.write_table(table, out / f"{compression}.parquet", compression=compression, row_group_size=700)
    # A few kilobytes that stand for gigabytes: one long text for every row, and very many rows.
    long = pa.array(["a" * (4 << 20)])
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * 1200, pa.int32()), long)
    pq.write_table(pa.table({"text": rows}), out / "dictionary.parquet", compression="zstd", store_schema=False,
                   dictionary_pagesize_limit=1 << 24)
    pq.write_table(pa.table({"text": rows[:40].dictionary_decode()}), out / "prefixes.parquet", compression="zstd",
                   use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
    pq.write_table(pa.table({"text": pa.nulls(20_000_000, pa.string())}), out / "rows.parquet")
    expected = {
        "text": [(text or "").replace("\r\n", "\n").rstrip() for text in texts],
        "label": labels,
        "number": [str(i) for i in range(N)],
        "truth": ["true" if i % 2 == 0 else "false" for i in range(N)],
        "de": [f"Satz {i}" for i in range(N)],
    }
    (out / "expected.json").write_text(json.dumps(expected))


CASES = [tables]
