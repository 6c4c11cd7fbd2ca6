"""Files of a lake become topic archives, exactly once: sources, formats, records, sorted runs, one Delta commit.

- What is loaded: `plan`, `layout`, `fields`; its rows: `lake_rows`, over rooms for envelopes, formats, sources, values;
- what a row becomes: `records`, by a `record_shape`; what cannot become any: `bad_rows`; what no file has: `gaps`;
- how: `load`, in two `stages`, over `runs`, `merge` and `sequence`;
- what was: `ledger`, `declared`; what would be: `profile`.

A topic is declared as a `LakeTopic`. Begin with `load`.
"""
