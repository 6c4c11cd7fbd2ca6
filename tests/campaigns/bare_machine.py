"""Both commands of the README on a bare Debian 12: an ordinary user, a fresh clone, and what the README asks for.

The machine is a folder that debootstrap fills, entered in mount and process namespaces of its own: whatever ends this
process, the mounts and everything that still runs in there go with it. There is neither Java nor curl in it, and no
terminal (``/dev/pts``). It reaches the network as this machine does: with its certificates, proxies, pip's and Maven's
settings. What debootstrap makes is kept in the user's cache (``XDG_CACHE_HOME``); remove it there for a newer one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SUITE = "bookworm"
_PACKAGES = ("bash", "git", "python3", "python3-venv")
"""What the README asks for."""
_UID = 1000
_HOME = "/home/ada"
_CHECKOUT = f"{_HOME}/hindstream"

_NETWORK_SETTINGS = re.compile(
    r"(?i)PIP_|(http|https|ftp|all|no)_proxy$|.*(_CA_|_CERT|_CACERT|_CAFILE|_CAINFO)|SSL_CERT_"
)
"""The variables that say how this machine reaches a package registry."""
_SETTINGS_FILES = ("/etc/hosts", "/etc/pip.conf", "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt")
_USERS_SETTINGS_FILES = (".config/pip/pip.conf", ".m2/settings.xml", ".pip/pip.conf")

# Runs in the new namespaces: what a process expects under / and no more, then the command as the ordinary user. The
# shell stays as their init, which waits for orphans that have ended.
_ENTER = r"""
set -eu
chroot=$1 root=$2 uid=$3 checkout=$4; shift 4
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
for n in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${n%:*}" "$root/dev/${n#*:}"; done
mkdir -m 1777 "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
"$chroot" --userspec="$uid:$uid" --groups= "$root" /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$checkout" "$@" &
wait "$!"
"""


@dataclass(frozen=True)
class Machine:
    """The root of a Debian that knows nothing of the one around it."""

    root: Path
    environment: Mapping[str, str]

    def run(self, *command: str, log: Path) -> tuple[int, float]:
        """Runs a command in the checkout as the ordinary user; exit code and seconds. Prints and logs what it says."""
        begun = time.monotonic()
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        entered = [str(shutil.which("chroot")), str(self.root), str(_UID), _CHECKOUT]
        with (
            log.open("w", encoding="utf-8", buffering=1) as file,
            subprocess.Popen(
                [*namespaces, "sh", "-c", _ENTER, "sh", *entered, *command],
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process,
        ):
            try:
                for line in process.stdout or ():
                    file.write(line)
                    print(f"  | {line}", end="", flush=True)
            except BaseException:
                process.kill()  # and with it, --kill-child, all that runs in there
                raise
        return process.returncode, time.monotonic() - begun

    def megabytes(self, path: str) -> int:
        """What a folder of the machine takes on disk; 0 if it is not there."""
        folder = self.root / path.lstrip("/")
        if not folder.exists():
            return 0
        return int(subprocess.check_output(["du", "--summarize", "--block-size=MB", folder]).split(b"M")[0])

    def downloaded_mb(self) -> int:
        """What pip has downloaded, by its own account."""
        log = self.root / _CHECKOUT.lstrip("/") / ".venv" / "setup.log"
        said = log.read_text(encoding="utf-8") if log.exists() else ""
        units = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0}
        return round(
            sum(float(size) * units[unit] for size, unit in re.findall(r"Downloading \S+ \(([\d.]+) (\w+)\)", said))
        )


def main(arguments: Sequence[str]) -> int:
    """Runs both; 2 if this machine cannot make another, 1 if either has failed."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="./dev campaign bare-machine", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--mirror", default=_mirror(), help="Debian's packages (default: where this machine's apt has its own)"
    )
    parser.add_argument("--logs", type=Path, help="a folder for what both commands print (default: a new one)")
    parser.add_argument("--keep", action="store_true", help="leave the machine's folder where it is, to look into it")
    parser.add_argument("tests", nargs="*", help="of `./dev test` only these: paths, and after -- what pytest takes")
    options = parser.parse_args(arguments)
    missing = [program for program in ("debootstrap", "unshare", "chroot") if not shutil.which(program)]
    if os.geteuid() != 0 or missing:
        needs = f"; not there: {', '.join(missing)} (apt-get install debootstrap)" if missing else ""
        print(f"this makes a machine by debootstrap, mount and chroot, and must be run by root{needs}", file=sys.stderr)
        return 2
    logs: Path = options.logs or Path(tempfile.mkdtemp(prefix="bare-machine-logs-"))
    logs.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    folder = Path(tempfile.mkdtemp(prefix="bare-machine-"))
    try:
        machine = _make(folder / "root", options.mirror)
        failed = _try(machine, ["./dev", "demo"], logs / "demo.log")
        failed += _try(machine, ["./dev", "test", *options.tests], logs / "test.log")
    finally:
        if options.keep:
            print(f"the machine: {folder / 'root'}")
        else:
            shutil.rmtree(folder)
    print(f"what they printed: {logs}")
    print(f"failed: {', '.join(failed)}" if failed else "both commands pass on a bare machine")
    return 1 if failed else 0


def _try(machine: Machine, command: list[str], log: Path) -> list[str]:
    """Runs a command and says what it took; its name, where it fails."""
    print(f"{' '.join(command)}:", flush=True)
    code, seconds = machine.run(*command, log=log)
    home, java, venv = (machine.megabytes(path) for path in (_HOME, f"{_HOME}/.m2", f"{_CHECKOUT}/.venv"))
    print(
        f"{' '.join(command)}: exit code {code} after {seconds / 60:.1f} min; so far {machine.downloaded_mb()} MB "
        f"downloaded by pip, {java} MB in ~/.m2, {venv} MB in .venv, {home} MB in the user's home"
    )
    for line in log.read_text(encoding="utf-8").splitlines():
        if re.match(r"(FAILED|ERROR) |=+ .*(passed|failed|error).* =+$", line):
            print(f"  {line}", flush=True)
    return [] if code == 0 else [" ".join(command)]


def _make(root: Path, mirror: str | None) -> Machine:
    """A bare machine with an ordinary user, this machine's ways to the network, and a clone of HEAD."""
    home, checkout = root / _HOME.lstrip("/"), root / _CHECKOUT.lstrip("/")
    root.mkdir()
    subprocess.run(["tar", "--extract", "--file", _bare(mirror), "--directory", root], check=True)
    root.chmod(0o755)  # in the archive it is that of a temporary folder
    subprocess.run(["chroot", root, "useradd", "--create-home", "--uid", str(_UID), home.name], check=True)
    network = {name: value for name, value in os.environ.items() if _NETWORK_SETTINGS.match(name)}
    for file in (*_SETTINGS_FILES, *network.values()):
        if file.startswith("/"):
            _copy(Path(file), root / file.lstrip("/"))
    for name in _USERS_SETTINGS_FILES:
        _copy(Path.home() / name, home / name)
    if subprocess.check_output(["git", "status", "--porcelain"], cwd=ROOT):
        print("note: the clone is of HEAD; what is not committed is not tried")
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, checkout], check=True)
    subprocess.run(["chown", "--recursive", f"{_UID}:{_UID}", home], check=True)
    return Machine(root, {"HOME": _HOME, "USER": home.name, "PATH": "/usr/local/bin:/usr/bin:/bin"} | network)


def _bare(mirror: str | None) -> Path:
    """The archive of a machine with what the README asks for; made where it is not in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hindstream"
    archive = cache / f"{_SUITE}-{'-'.join(_PACKAGES)}.tar"
    if not archive.exists():
        cache.mkdir(parents=True, exist_ok=True)
        print(f"debootstrap makes {archive}", flush=True)
        with tempfile.TemporaryDirectory(prefix="debootstrap-") as folder:
            wanted = ["--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE]
            subprocess.run(["debootstrap", *wanted, folder, *([mirror] if mirror else [])], check=True)
            part = archive.with_suffix(".part")
            subprocess.run(["tar", "--create", "--file", part, "--directory", folder, "."], check=True)
        part.rename(archive)
    return archive


def _mirror() -> str | None:
    """Where this machine's apt has the release from, if it is the same; else debootstrap's own choice."""
    if not shutil.which("apt-get"):
        return None
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(SITE)"], capture_output=True, text=True, check=False
    )
    sites = [line.split(" ", 1)[1] for line in listed.stdout.splitlines() if line.startswith(f"{_SUITE} ")]
    return sites[0].removesuffix("/") if sites else None


def _copy(source: Path, target: Path) -> None:
    """Copies a file that is there, not the link to it."""
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy(source, target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
