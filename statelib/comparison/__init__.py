"""Two versions of data compared: which rows differ, in what, and by how much.

Begin with `compare`. It compares two `sides` of anything with keys and values, in one of three ways: ``latest`` (a
table's newest values by key), ``set`` (records as a multiset), ``order`` (record by record). What it finds is a
`difference`. `sinks` compares those of two jobs at commits.

A comparison reads each side once and keeps 32 bytes of each row: hashes of its key and of its content, and its place.
They are split by the key into buckets, which spill to disk beyond the memory budget, and matched bucket by bucket. Only
rows that differ by these hashes are read again, and compared field by field.
"""
