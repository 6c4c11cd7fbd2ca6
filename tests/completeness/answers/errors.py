"""Handlers of errors: of records that cannot be read, processed or written, and what an error does to a run."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused

_READ = "[`on_bad_record`](operations.md#bad-input)"
_PROCESS = "[`on_processing_error`](operations.md#functions-that-fail)"
_QUARANTINE = (
    "With `quarantine` the record goes to the topic `<job>-quarantine`, with its position, the reason and its bytes"
)
_SETTING = "A setting of a run decides: {}, `fail` or `quarantine`. A function of yours is not asked for each record"
_WRITTEN = refused(
    "A run writes files, and all of a slice or nothing is committed. What then [publishes to Kafka](kafka.md) does so "
    "exactly once or fails, and continues there when it is repeated"
)


def _handlers(kind: str, setting: str, what: str, kip: int | None) -> tuple[ClassAnswers, ...]:
    """The interface of one kind of errors, what it answers, and Kafka's two."""
    of_exception = "" if kind == "Deserialization" else kind
    default = refused("Kafka calls it: it is one of the two values of the setting")
    return (
        ClassAnswers(
            f"errors.{kind}ExceptionHandler", None, what,
            {"handle, handleError": refused(_SETTING.format(setting))}, kip,
        ),
        ClassAnswers(
            f"errors.{kind}ExceptionHandler$Response", None, "What a handler decides.",
            {
                "resume": differs(f"{setting}`=quarantine`", ""),
                "fail": differs(f"{setting}`=fail`, the default", ""),
                "resume(List), fail(List), deadLetterQueueRecords": differs(_QUARANTINE, "", kip=1034),
                "result": refused(_SETTING.format(setting)),
            },
            kip,
        ),
        ClassAnswers(f"errors.{kind}ExceptionHandler$Result", None, "Its kinds.", {}, kip),
        ClassAnswers(
            f"errors.{kind}ExceptionHandler${kind}HandlerResponse", None, "The same in earlier releases.", {}, kip
        ),
        ClassAnswers(
            f"errors.LogAndContinue{of_exception}ExceptionHandler", None, "Goes on without the record.",
            {"new": differs(f"{setting}`=quarantine`", ""), "configure, handleError": default}, kip,
        ),
        ClassAnswers(
            f"errors.LogAndFail{of_exception}ExceptionHandler", None, "Ends the application.",
            {"new": differs(f"{setting}`=fail`, the default", ""), "configure, handleError": default}, kip,
        ),
    )  # fmt: skip


ERRORS = (
    *_handlers("Deserialization", _READ, "For records that cannot be read.", 161),
    *_handlers("Processing", _PROCESS, "For records for which a function fails.", 1033),
    ClassAnswers(
        "errors.ErrorHandlerContext", None, "What a handler is told of the record.",
        {
            "topic, partition, offset, timestamp, sourceRawValue": differs(
                "Fields of the values in the topic `<job>-quarantine`", ""
            ),
            "sourceRawKey": differs("The key in the topic `<job>-quarantine`", ""),
            "headers": refused("Look them up in the source topic's archive, by partition and offset"),
            "processorNodeId": differs("Part of the `reason` in the topic `<job>-quarantine`", ""),
            "taskId": refused("The partition, which the topic `<job>-quarantine` has, says which task it was"),
        },
        kip=1033,
    ),
    ClassAnswers(
        "errors.ProductionExceptionHandler", None, "For records that cannot be written.", {"*": _WRITTEN}, kip=210
    ),
    ClassAnswers(
        "errors.ProductionExceptionHandler$Response", None, "What a handler decides.", {"*": _WRITTEN}, kip=1034
    ),
    ClassAnswers("errors.ProductionExceptionHandler$Result", None, "Its kinds.", {}, kip=1034),
    ClassAnswers(
        "errors.ProductionExceptionHandler$ProductionExceptionHandlerResponse", None, "The same in earlier releases.",
        {}, kip=210,
    ),
    ClassAnswers(
        "errors.ProductionExceptionHandler$SerializationExceptionOrigin", None, "Whether a key or a value.", {},
        kip=1033,
    ),
    ClassAnswers(
        "errors.DefaultProductionExceptionHandler", None, "Ends the application.", {"*": _WRITTEN}, kip=210
    ),
    ClassAnswers(
        "errors.StreamsUncaughtExceptionHandler", None, "What an error does to the application.",
        {
            "handle": differs(
                "An error ends the run. It is repeated by [Airflow](airflow.md) or by hand, and begins where the last "
                "commit is", "",
            )
        },
        kip=671,
    ),
    ClassAnswers(
        "errors.StreamsUncaughtExceptionHandler$StreamThreadExceptionResponse", None, "Its kinds.", {}, kip=671
    ),
)  # fmt: skip
