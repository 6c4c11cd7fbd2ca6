"""Numbers, sizes, durations and times as a person reads them."""

from __future__ import annotations

from decimal import Decimal

from statelib.columns.times import instant_text


def count_text(number: float) -> str:
    """``343,512``."""
    return f"{number:,.0f}"


def bytes_text(size: float) -> str:
    """``1.5 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:  # noqa: PLR2004 - the unit's own number
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def seconds_text(seconds: float) -> str:
    """``0.42 s``, ``12.3 s``, ``4 min 05 s``."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"  # noqa: PLR2004 - three digits are enough
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def duration_text(duration_ms: int) -> str:
    """``15 s``, ``30 min``, ``12 h``, ``7 d``: the largest unit that divides the duration, or two units."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if duration_ms >= size:
            whole, rest = divmod(duration_ms, size)
            return f"{whole:,} {unit}" if not rest else f"{duration_ms / size:,.1f} {unit}"
    return f"{duration_ms:,} ms"


def time_text(time_ms: int | None) -> str:
    """``2013-02-01 05:00 UTC``; None is the end of what there is."""
    if time_ms is None:
        return "all there is"
    day, _, time = instant_text(time_ms).partition("T")
    return f"{day} {time[:5]} UTC" if time else day


def percent_text(part: float, whole: float) -> str:
    """``2.0 %``; a small part with two significant digits: ``0.023 %``."""
    if not whole or not part:
        return "0 %"
    share = 100 * part / whole
    if share < 0.1:  # noqa: PLR2004 - one digit behind the point would say little, or nothing
        return f"{Decimal(f'{share:.1e}').normalize():f} %"
    return f"{share:.1f} %"
