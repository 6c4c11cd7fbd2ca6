"""Every error that Hindstream raises on purpose, classified by what the user does about it.

====================  =======================================================  =========
class                 what the user does                                       exit code
====================  =======================================================  =========
RetryableError        run the same command again; nothing needs fixing         75
InputError            fix or quarantine the records or files that it names     65
ConfigurationError    change the setting, topology or command that it names    78
CorruptedDataError    restore the file that it names from another copy         74
FencedError           nothing: another driver has won, and its result counts   73
InternalError         report it: this is a defect of Hindstream                70
====================  =======================================================  =========

A message says what happened, where, and the next step::

    InputError(
        "timestamp is negative",
        topic="flights",
        partition=2,
        offset=117,
        next_step="hindstream run JOB --set on_bad_record=quarantine",
    )
"""

from __future__ import annotations

from typing import ClassVar, Self


class HindstreamError(Exception):
    """Base of all deliberate errors.

    Args:
        what: What happened, as a sentence without the final full stop.
        next_step: The command to run or the thing to change.
        place: Where it happened: ``topic``, ``partition``, ``offset``, ``file``, ``task``, ``store``, ``setting``, ...
    """

    exit_code: ClassVar[int] = 70
    sequence: int | None = None
    """Within a task: of the record that it is about; whoever knows its topic puts that into the place."""

    def __init__(self, what: str, *, next_step: str | None = None, **place: object) -> None:
        self.what = what
        self.next_step = next_step
        self.place = {name: value for name, value in place.items() if value is not None}
        super().__init__(self.message)

    def placed(self, **place: object) -> Self:
        """A copy with ``place`` added; keys that it already has keep their values."""
        made = type(self)(self.what, next_step=self.next_step, **{**place, **self.place})
        made.sequence = self.sequence
        return made

    @property
    def message(self) -> str:
        """The whole message: what, where, next step."""
        where = ", ".join(f"{name} {value}" for name, value in self.place.items())
        text = f"{self.what} ({where})" if where else self.what
        return f"{text}. Next: {self.next_step}" if self.next_step else text

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it (IPython's name): as the command line, the message."""
        return [f"{type(self).__name__}: {self.message}"]

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all attributes, so that an error raised in a worker reaches the driver whole."""
        return _rebuild, (type(self), self.what, self.next_step, self.place)


def _rebuild(
    kind: type[HindstreamError], what: str, next_step: str | None, place: dict[str, object]
) -> HindstreamError:
    return kind(what, next_step=next_step, **place)


class RetryableError(HindstreamError):
    """A temporary fault, such as an object store that did not answer."""

    exit_code = 75


class InputError(HindstreamError):
    """Input records or files are invalid: undecodable, negative timestamp, missing or truncated file."""

    exit_code = 65


class ConfigurationError(HindstreamError):
    """A setting, a topology or a command cannot work as given."""

    exit_code = 78


class CorruptedDataError(HindstreamError):
    """A file that Hindstream wrote has changed since: its checksum, length or format differs."""

    exit_code = 74


class FencedError(HindstreamError):
    """Another driver of the same job has committed first."""

    exit_code = 73


class InternalError(HindstreamError):
    """An invariant of Hindstream itself does not hold."""

    exit_code = 70
