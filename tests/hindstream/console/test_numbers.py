from __future__ import annotations

import pytest

from hindstream.console.numbers import bytes_text, count_text, duration_text, percent_text, seconds_text, time_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count_text(336_776), "336,776"),
        (bytes_text(0), "0 B"),
        (bytes_text(1023), "1023 B"),
        (bytes_text(1536), "1.5 KiB"),
        (bytes_text(5 << 40), "5.0 TiB"),
        (seconds_text(0.423), "0.42 s"),
        (seconds_text(12.34), "12.3 s"),
        (seconds_text(245), "4 min 05 s"),
        (duration_text(15_000), "15 s"),
        (duration_text(1_800_000), "30 min"),
        (duration_text(5_400_000), "1.5 h"),
        (duration_text(604_800_000), "7 d"),
        (duration_text(999), "999 ms"),
        (time_text(1_359_694_800_000), "2013-02-01 05:00 UTC"),
        (time_text(None), "all there is"),
        (percent_text(1, 50), "2.0 %"),
        (percent_text(27, 336_776), "0.008 %"),
        (percent_text(118, 500_000), "0.024 %"),
        (percent_text(1, 10**9), "0.0000001 %"),
        (percent_text(99_999, 10**8), "0.1 %"),
        (percent_text(0, 5), "0 %"),
    ],
)
def test_text(text: str, expected: str) -> None:
    assert text == expected


def test_a_share_of_nothing_is_nothing() -> None:
    assert percent_text(0, 0) == "0 %"
