"""Files of a lake become topic archives, exactly once: sources, formats, records, sorted runs, one Delta commit.

- What is loaded: `sources` of `source_files` or `delta_tables`, `plan`, in the formats of the room below;
- files that Kafka's tools have written: `layouts`, `lake_rows`, and the envelopes in the room below;
- what a row becomes: `records`, over `fields`, `times`, `types`; what cannot become any: `bad_rows`;
- how: `load`, over `runs` and `merge`; what was: `ledger`, `declared`; what would be: `profile`.

A topic is declared as a `LakeTopic`. Begin with `load`.
"""
