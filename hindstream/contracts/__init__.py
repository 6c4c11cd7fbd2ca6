"""Data contracts of the Open Data Contract Standard (ODCS v3): expectations made of them, and contracts of jobs.

Begin with `contract`. `rules` says what each rule of a contract becomes, `export` goes the other way, `document` reads
the files. The standard's own model in Python is an extra (``contracts``), imported where it is used.
"""
