"""The rights that docs/security.md prints, for users of a broker and of an S3 server: all, and all but one."""

from __future__ import annotations

import copy
import json
import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
_SECONDS = 30

Policy = dict[str, Any]

_POLICY = re.compile(r"^<!-- policy ([a-z]+) -->\n```json\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ACLS = re.compile(r"^<!-- acls -->\n```\n(.*?)^```$", re.DOTALL | re.MULTILINE)

_RESOURCES = {
    "--topic": ResourceType.TOPIC,
    "--group": ResourceType.GROUP,
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
}


def policies() -> dict[str, Policy]:
    """The policies of the page, by name."""
    return {name: json.loads(text) for name, text in _POLICY.findall(PAGE.read_text(encoding="utf-8"))}


def without_one(policy: Policy) -> Iterator[tuple[str, Policy]]:
    """A policy without one of its lines, each in turn, and what was left out: ``Sid: action``, ``Sid: resource``."""
    for n, statement in enumerate(policy["Statement"]):
        for listed in _lists(statement):
            for value in listed:
                less = copy.deepcopy(policy)
                (same,) = (found for found in _lists(less["Statement"][n]) if found == listed)
                same.remove(value)
                if not same:
                    del less["Statement"][n]
                yield f"{statement['Sid']}: {value}", less


def _lists(statement: Policy) -> list[list[str]]:
    conditions = [named for test in statement.get("Condition", {}).values() for named in test.values()]
    lists = [statement["Action"], statement["Resource"], *conditions]
    return [listed for n, listed in enumerate(lists) if len(listed) > 1 or n == 0]


@dataclass(frozen=True)
class Acl:
    """One right that a line gives."""

    user: str
    operation: str
    kind: str
    name: str
    is_prefix: bool

    def __str__(self) -> str:
        return f"{self.operation} {self.kind.lstrip('-')} {self.name}"

    @property
    def binding(self) -> AclBinding:
        """As the client has it."""
        operation = AclOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.operation).upper()]
        pattern = ResourcePatternType.PREFIXED if self.is_prefix else ResourcePatternType.LITERAL
        principal, allow = f"User:{self.user}", AclPermissionType.ALLOW
        return AclBinding(_RESOURCES[self.kind], self.name, pattern, principal, "*", operation, allow)


def acls() -> list[Acl]:
    """What the lines of the page give.

    Raises:
        AssertionError: A line has something that nobody here knows.
    """
    (block,) = _ACLS.findall(PAGE.read_text(encoding="utf-8"))
    return [acl for line in block.splitlines() for acl in _of_line(line)]


def _of_line(line: str) -> list[Acl]:
    tool, *words = shlex.split(line)
    assert tool == "kafka-acls.sh"
    words.remove("--add")
    given = list(zip(words[::2], words[1::2], strict=True))
    values = dict(given)
    operations = [value for name, value in given if name == "--operation"]
    known = {"--bootstrap-server", "--command-config", "--allow-principal", "--operation", "--resource-pattern-type"}
    ((kind, name),) = ((kind, name) for kind, name in given if kind in _RESOURCES)
    assert {name for name, _ in given} <= known | {kind}
    user = values["--allow-principal"].removeprefix("User:")
    is_prefix = values.get("--resource-pattern-type", "literal") == "prefixed"
    return [Acl(user, operation, kind, name, is_prefix) for operation in operations]


def allow(admin: AdminClient, *given: Acl) -> None:
    """Gives rights; returns when the broker knows."""
    for done in admin.create_acls([acl.binding for acl in given]).values():
        done.result(_SECONDS)
    _await(admin, given, present=True)


def revoke(admin: AdminClient, acl: Acl) -> None:
    """Takes one back; returns when the broker knows."""
    (gone,) = (done.result(_SECONDS) for done in admin.delete_acls([_filter(acl.binding)]).values())
    assert len(gone) == 1, acl
    _await(admin, [acl], present=False)


def _await(admin: AdminClient, given: Iterable[Acl], *, present: bool) -> None:
    deadline = time.monotonic() + _SECONDS
    while any(bool(admin.describe_acls(_filter(acl.binding)).result(_SECONDS)) != present for acl in given):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _filter(acl: AclBinding) -> AclBindingFilter:
    place = (acl.restype, acl.name, acl.resource_pattern_type)
    return AclBindingFilter(*place, acl.principal, "*", acl.operation, acl.permission_type)
