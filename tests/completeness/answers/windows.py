"""Windows of aggregations and joins, and how their updates are held back."""

from __future__ import annotations

from tests.completeness.answer import ClassAnswers, differs, refused, works

_WINDOWS_FOR = refused()

WINDOWS = (
    ClassAnswers(
        "kstream.TimeWindows", "TimeWindows", "Tumbling and hopping windows.",
        {
            "ofSizeAndGrace, ofSizeWithNoGrace": works(kip=633),
            "advanceBy": works(),
            "size": differs("The attribute `size_ms`", "size_ms"),
            "gracePeriodMs": differs("The attribute `grace_period_ms`", "grace_period_ms", kip=328),
            "windowsFor": _WINDOWS_FOR,
        },
    ),
    ClassAnswers(
        "kstream.SlidingWindows", "SlidingWindows", "Windows that slide with the records.",
        {
            "ofTimeDifferenceAndGrace, ofTimeDifferenceWithNoGrace": works(kip=633),
            "timeDifferenceMs": differs("The attribute `time_difference_ms`", "time_difference_ms"),
            "gracePeriodMs": differs("The attribute `grace_period_ms`", "grace_period_ms"),
        },
        kip=450,
    ),
    ClassAnswers(
        "kstream.SessionWindows", "SessionWindows", "Sessions of activity.",
        {
            "ofInactivityGapAndGrace, ofInactivityGapWithNoGrace": works(kip=633),
            "inactivityGap": differs("The attribute `gap_ms`", "gap_ms"),
            "gracePeriodMs": differs("The attribute `grace_period_ms`", "grace_period_ms", kip=328),
        },
        kip=94,
    ),
    ClassAnswers(
        "kstream.UnlimitedWindows", "UnlimitedWindows", "One window without an end.",
        {
            "of, startOn": works(),
            "size": differs("The attribute `size_ms`", "size_ms"),
            "gracePeriodMs": differs("The attribute `grace_period_ms`, always 0", "grace_period_ms", kip=328),
            "windowsFor": _WINDOWS_FOR,
        },
    ),
    ClassAnswers(
        "kstream.JoinWindows", "JoinWindows", "Which records of two streams are joined.",
        {
            "ofTimeDifferenceAndGrace, ofTimeDifferenceWithNoGrace": works(kip=633),
            "before, after": works(),
            "of": refused(),
            "grace": works(kip=328),
            "size": differs("The attribute `size_ms`", "size_ms"),
            "gracePeriodMs": differs("The attribute `grace_period_ms`", "grace_period_ms", kip=328),
            "windowsFor": _WINDOWS_FOR,
        },
    ),
    ClassAnswers(
        "kstream.Windows", None, "The base class of windows, for windows of your own.",
        {
            "size, gracePeriodMs": differs("Attributes of each kind of windows: see there", ""),
            "windowsFor": refused(
                "Here windows are of known kinds, so that it is known when each closes and is forgotten, also in later "
                "slices. Days of a time zone are `DayWindows`, shifted windows `TimeWindows.offset`. For others, "
                "`group_by` the key together with the start of its window, which an expression computes, or use a "
                "processor with a window store"
            ),
        },
    ),
    ClassAnswers(
        "kstream.Window", None, "One window. Here a window is its start and its end, ms.",
        {
            "start, startTime, end, endTime": differs("`window_start` and `window_end` of a `Windowed`, ms", ""),
            "new": differs("`Windowed(key, window_start, window_end)`", ""),
            "overlap": refused("Kafka's stores and sessions call it; a comparison of four numbers does the same"),
        },
    ),
    ClassAnswers(
        "kstream.Windowed", "Windowed", "A key and its window.",
        {
            "new": differs("`Windowed(key, window_start, window_end)`"),
            "key": works(),
            "window": differs("The attributes `window_start` and `window_end`, ms", "window_start"),
        },
    ),
    ClassAnswers(
        "kstream.EmitStrategy", "EmitStrategy", "When the results of windows are forwarded.",
        {"onWindowUpdate, onWindowClose": works(), "type": differs("The attribute `final`", "final")}, kip=825,
    ),
    ClassAnswers(
        "kstream.EmitStrategy$StrategyType", None, "Its kinds.",
        {"forType": differs("`EmitStrategy.on_window_close()` and `on_window_update()`", "")}, kip=825,
    ),
    ClassAnswers(
        "kstream.Suppressed", "Suppressed", "How updates of a table are held back.",
        {
            "untilWindowCloses": differs(
                "In the default mode a window's final result is never changed again: "
                "[semantics](semantics.md#suppress-kip-328)"
            ),
            "untilTimeLimit, withName": works(),
        },
        kip=328,
    ),
    ClassAnswers(
        "kstream.Suppressed$BufferConfig", "BufferConfig", "How much a suppression may hold.",
        {
            "unbounded, maxRecords, maxBytes, withMaxRecords, withMaxBytes, withNoBound": works(),
            "shutDownWhenFull, emitEarlyWhenFull": works(),
            "withLoggingEnabled, withLoggingDisabled": differs(
                "Accepted, and changes nothing: a replay keeps its state in checkpoints", kip=446
            ),
        },
        kip=328,
    ),
    ClassAnswers("kstream.Suppressed$EagerBufferConfig", "EagerBufferConfig", "One that may emit early.", {}, kip=328),
    ClassAnswers("kstream.Suppressed$StrictBufferConfig", "StrictBufferConfig", "One that never does.", {}, kip=328),
)  # fmt: skip
