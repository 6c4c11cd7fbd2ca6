from __future__ import annotations

import json

from hindstream.lineage.parent import Parent, RunName, parent_of

RUN = "01a227b0-04da-763b-8503-3293c1b64935"
ROOT = "01a227b0-04da-72c9-806d-fa92d8c0402b"


def test_ids_as_airflows_macros_write_them() -> None:
    task, dag = RunName("airflow", "daily.replay", RUN), RunName("airflow", "daily", ROOT)
    parent_id = f"airflow/daily.replay/{RUN}"
    assert parent_of({"OPENLINEAGE_PARENT_ID": parent_id}) == Parent(task, task)
    above = {"OPENLINEAGE_PARENT_ID": parent_id, "OPENLINEAGE_ROOT_PARENT_ID": f"airflow/daily/{ROOT}"}
    assert parent_of(above) == Parent(task, dag)


def test_the_context_goes_first() -> None:
    job = {"namespace": "n", "name": "j"}
    parent = {"run": {"runId": RUN}, "job": job, "root": {"run": {"runId": ROOT}, "job": job}}
    environ = {"OPENLINEAGE_CONTEXT": json.dumps({"parent": parent}), "OPENLINEAGE_PARENT_ID": f"a/b/{ROOT}"}
    assert parent_of(environ) == Parent(RunName("n", "j", RUN), RunName("n", "j", ROOT))


def test_what_cannot_be_understood_is_no_parent() -> None:
    assert parent_of({}) is None
    for text in ("", "a/b", "a/b/c", f"/b/{RUN}", f"a//{RUN}"):
        assert parent_of({"OPENLINEAGE_PARENT_ID": text}) is None
    for text in ("{", "[]", "null", '{"parent": []}', '{"parent": {"run": 1, "job": 2}}'):
        assert parent_of({"OPENLINEAGE_CONTEXT": text}) is None
