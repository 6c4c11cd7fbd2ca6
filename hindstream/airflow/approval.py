"""The task that waits for a person."""

from __future__ import annotations

from airflow.providers.standard.operators.hitl import ApprovalOperator


def approval(subject: str, body: str) -> ApprovalOperator:
    """The task ``approve``: what stands behind it runs after *Approve*, and is skipped after *Reject*.

    A person may take any time: the ``execution_timeout`` of all tasks is not that of this one, which would take it for
    the time that a person has.

    Args:
        subject: What is asked; a template.
        body: What it is about, as plain text; a template.
    """
    return ApprovalOperator(
        task_id="approve", subject=subject, body=f"```\n{{{{ {body} }}}}\n```", execution_timeout=None
    )
