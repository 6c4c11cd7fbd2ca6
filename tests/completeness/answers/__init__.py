"""The answers, in the order of the page: chapters with their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.completeness.answers.clients import CLIENTS
from tests.completeness.answers.errors import ERRORS
from tests.completeness.answers.functions import FUNCTIONS
from tests.completeness.answers.options import OPTIONS
from tests.completeness.answers.processors import PROCESSORS
from tests.completeness.answers.queries import QUERIES
from tests.completeness.answers.stores import STORES
from tests.completeness.answers.streams import STREAMS
from tests.completeness.answers.testing import TEST_DRIVER
from tests.completeness.answers.windows import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.completeness.answer import ClassAnswers

CHAPTERS: Mapping[str, Sequence[ClassAnswers]] = {
    "Streams and tables": STREAMS,
    "Options": OPTIONS,
    "Windows and suppression": WINDOWS,
    "Functions of users": FUNCTIONS,
    "Processors and the low-level topology": PROCESSORS,
    "Stores": STORES,
    "Interactive queries": QUERIES,
    "The test driver": TEST_DRIVER,
    "Handlers of errors": ERRORS,
    "The running client": CLIENTS,
}
