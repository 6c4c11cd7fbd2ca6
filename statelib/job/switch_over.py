"""Two versions of a live Kafka Streams application, of which one takes the other's place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.job.user_code import load_attribute

if TYPE_CHECKING:
    from statelib.job.handover import Handover
    from statelib.job.kafka_topic import KafkaTopic


@dataclass(frozen=True)
class SwitchOver:
    """A live application, and the version of it that takes its place.

    ::

        shadow = Handover("delays-2", application_id="shadow-delays-2")
        switch = SwitchOver(
            old="delays-1",
            new=Handover("delays-2", application_id="delays-2"),
            shadow=shadow,
            outputs=((KafkaTopic("delays", KEY, VALUE), KafkaTopic("delays-shadow", KEY, VALUE)),),
        )

    Attributes:
        old: The ``application.id`` of the application that is live.
        new: How the job's state is handed over to the version that takes its place. It reads the same topics and
            writes to the same topics, under an application id that nobody has used.
        shadow: The same version under another application id, which runs beside the old one and writes to topics of its
            own, to be compared; None: there is none.
        outputs: What the old application writes, each with the topic that the shadow writes instead. ``archive`` of the
            first says which sink of the job it is.
        settles_after: How long after its time a result may still change, such as the size of windows plus their grace:
            results are compared when both applications have come so much further.

    Raises:
        ConfigurationError: Two of the applications have the same id, or the hand-overs are of two jobs.
    """

    old: str
    new: Handover
    shadow: Handover | None = None
    outputs: tuple[tuple[KafkaTopic, KafkaTopic], ...] = ()
    settles_after: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        """Checks the names."""
        handovers = [of for of in (self.new, self.shadow) if of is not None]
        ids = [self.old, *(of.application_id for of in handovers)]
        if len({*ids}) < len(ids):
            what = f"two applications of the switch-over have the same id: {', '.join(ids)}"
            raise ConfigurationError(what, next_step="give each an application id of its own")
        if len({of.job for of in handovers}) > 1:
            what = f"the hand-overs are of two jobs: {' and '.join(of.job for of in handovers)}"
            raise ConfigurationError(what, next_step="hand both applications over from the job of the new version")

    @property
    def settles_after_ms(self) -> int:
        """The same in milliseconds."""
        return self.settles_after // timedelta(milliseconds=1)

    def require_shadow(self) -> Handover:
        """The shadow's hand-over.

        Raises:
            ConfigurationError: There is none.
        """
        if self.shadow is None:
            step = "name it: SwitchOver(shadow=Handover(...))"
            raise ConfigurationError("the switch-over has no shadow application", old=self.old, next_step=step)
        return self.shadow


def load_switch_over(reference: str) -> SwitchOver:
    """The switch-over that ``package.module:name`` or ``path/to/file.py:name`` names; without a name ``switch``.

    Raises:
        ConfigurationError: There is no such module, file or name, or it is no switch-over.
    """
    found = load_attribute(reference, "switch")
    if not isinstance(found, SwitchOver):
        next_step = "name a hindstream.SwitchOver, as FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError("this is no switch-over", switch=reference, next_step=next_step)
    return found
