"""The Parquet files of a topic: the records of one partition, in the order of offsets, written once and sealed.

Begin with `schema`; then `writer` and `reader`. `footer` is the seal by which damage is noticed, `encodings` and
`stored_keys` say how columns are stored, `sealed_statistics` what is known of a file without reading it, and
`schema_changes` how files of an older schema are read.
"""
