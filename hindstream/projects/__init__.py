"""Projects to own, made by ``hindstream init``: a job with its test and its DAG, from a template or for a topic.

- what a topic suggests (its key, a number, an id, windows): `shape`; fields and types as Python's text: `source_text`;
- what the templates say of the fields: `template_texts`; the files, from ``templates/``: `project`;
- the CSV files of a project without a topic: `sample_files`.

Begin with `project`.
"""
