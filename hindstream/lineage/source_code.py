"""Where the file of a job is: in its git repository, if it is in one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from openlineage.client import git
from openlineage.client.facet_v2 import source_code_location_job

if TYPE_CHECKING:
    from statelib.topology import Topology

_OF_SSH = re.compile(r"(?:ssh://)?[\w.-]+@([\w.-]+)(?::\d+/|[:/])(.+)")


def source_code(topology: Topology) -> source_code_location_job.SourceCodeLocationJobFacet | None:
    """Where the first operator of a topology was written down; None: nobody knows."""
    files = [node.line.file for node in topology.declared if node.line is not None]
    if not files or not (file := Path(files[0]).absolute()).is_file():
        return None
    found = next((folder for folder in file.parents if (folder / ".git" / "config").is_file()), None)
    git_dir = None if found is None else found / ".git"
    remote = None if git_dir is None else git.get_git_repo_url(git_dir=git_dir)
    page = None if remote is None else page_of(remote)
    if found is None or git_dir is None or page is None:
        return source_code_location_job.SourceCodeLocationJobFacet(type="file", url=file.as_uri(), path=str(file))
    path, version = file.relative_to(found).as_posix(), git.get_git_version(git_dir)
    return source_code_location_job.SourceCodeLocationJobFacet(
        type="git",
        url=page if version is None else f"{page}/blob/{version}/{path}",
        repoUrl=page,
        path=path,
        version=version,
        branch=git.get_git_branch(git_dir),
    )


def page_of(remote: str) -> str | None:
    """The web page of a repository, without credentials; None: its remote is a folder."""
    if of_ssh := _OF_SSH.fullmatch(remote):
        remote = f"https://{of_ssh[1]}/{of_ssh[2]}"
    parts = urlsplit(remote)
    if parts.scheme not in {"http", "https"} or parts.hostname is None:
        return None
    host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    return urlunsplit((parts.scheme, host, parts.path.removesuffix("/").removesuffix(".git"), "", ""))
