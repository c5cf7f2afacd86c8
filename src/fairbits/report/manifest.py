"""manifest.json: every file of a run with its hash, so that a page can be checked later against what it speaks of.

A signature of it is an SSH signature: who has no fairbits checks it with ``ssh-keygen -Y verify``. Beside that: whether
what the stages left in a folder is about the subject of the run.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairbits._version import __version__
from fairbits.errors import OptionError, on_disk
from fairbits.store import json_of, read_json, write_json, write_whole
from fairbits.subject import Identity, check_identity
from fairbits.text import shortened

MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
FORMAT = 1
#: What signatures are for: one made for something else is none of ours.
NAMESPACE = "fairbits"
#: The formats of a report: they are written from the run's other files, and are in the manifest beside them.
FORMATS = ("report.html", "report.md", "summary.json")
#: Tables to file, where they were asked for.
FILING = "filing.html"


@dataclass(frozen=True, slots=True)
class FileHash:
    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether the files of a run are those of its manifest, and whose signature the manifest has."""

    files: int
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    signed: bool = False
    signature: str = ""
    fingerprint: str | None = None

    @property
    def good(self) -> bool:
        """Whether nothing was changed, and the signature is right where there is one."""
        return not (self.changed or self.missing or self.added or self.signature)

    def document(self) -> dict[str, Any]:
        return {"good": self.good, **asdict(self)}

    def faults(self) -> Iterator[str]:
        for what, names in (("changed", self.changed), ("missing", self.missing), ("not in the manifest", self.added)):
            yield from (f"{what}: {name}" for name in names)
        if self.signature:
            yield f"signature: {self.signature}"


def hash_file(path: Path) -> tuple[int, str]:
    """The size and the SHA-256 of a file, read piece by piece."""
    with on_disk(f"cannot read {str(path)!r}"), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def files_of(folder: Path, *, leave_out: Iterable[str] = (), hashed: Iterable[FileHash] = ()) -> tuple[FileHash, ...]:
    """All files of a folder with their hashes, by path; half-written and hidden ones do not count."""
    skipped, known = {MANIFEST, SIGNATURE, *leave_out}, {one.path: one for one in hashed}
    return tuple(
        known.get(name) or FileHash(name, *hash_file(path))
        for name, path in sorted(_paths(folder))
        if name not in skipped
    )


def write_manifest(folder: Path, *, about: Mapping[str, Any], hashed: Iterable[FileHash] = ()) -> None:
    """Write manifest.json for what lies in a folder now; a signature of an earlier one goes."""
    entries = [asdict(one) for one in files_of(folder, hashed=hashed)]
    (folder / SIGNATURE).unlink(missing_ok=True)
    write_json(folder / MANIFEST, {"format": FORMAT, "fairbits": __version__, **about, "files": entries})


def verify(folder: Path, *, key: Path | None = None) -> Verification:
    """Compare the files of a folder with its manifest, and the manifest with its signature."""
    path = folder / MANIFEST
    if not path.is_file():
        raise OptionError(f"{str(folder)!r} has no {MANIFEST}; write one with: fairbits report {folder}")
    stated = _stated(path)
    here = dict(_paths(folder))
    changed = tuple(
        name for name, (size, digest) in stated.items() if name in here and hash_file(here[name]) != (size, digest)
    )
    added = tuple(sorted(name for name in here if name not in stated and name not in (MANIFEST, SIGNATURE)))
    missing = tuple(sorted(name for name in stated if name not in here))
    signed = (folder / SIGNATURE).is_file()
    found = check_signature(path, folder / SIGNATURE, key=key) if signed or key is not None else ("", None)
    return Verification(len(stated), changed, missing, added, signed, *found)


def open_key(path: Path) -> Path:
    """The file of a private SSH key, looked at before anything is written."""
    with on_disk(f"cannot read {str(path)!r}"), path.open("rb") as file:
        first = file.read(4)
    if first == b"ssh-":
        raise OptionError(f"{str(path)!r} is a public key; sign with the private one beside it.")
    if not _fingerprint(_ssh_keygen("-l", "-f", str(path)).stdout):
        raise OptionError(f"{str(path)!r} is no private key; make one with: ssh-keygen -t ed25519")
    return path


def sign(manifest: Path, key: Path, target: Path) -> str:
    """Sign a manifest as ``ssh-keygen -Y`` does, which asks for a passphrase; gives the fingerprint of the key."""
    done = _ssh_keygen("-Y", "sign", "-f", str(key), "-n", NAMESPACE, content=manifest.read_bytes())
    if done.returncode or not done.stdout:
        raise OptionError(f"{str(key)!r} cannot sign ({_complaint(done)}).")
    write_whole(target, done.stdout)
    return _fingerprint(_ssh_keygen("-l", "-f", str(key)).stdout) or ""


def check_signature(manifest: Path, signature: Path, *, key: Path | None = None) -> tuple[str, str | None]:
    """What is wrong with a signature ("" where nothing is), and the fingerprint of the key that it names."""
    wanted = None if key is None else _fingerprint(_ssh_keygen("-l", "-f", str(key)).stdout)
    if key is not None and wanted is None:
        raise OptionError(f"{str(key)!r} is no public key; give the file that ends in .pub.")
    if not signature.is_file():
        return "the manifest is not signed", None
    with tempfile.TemporaryDirectory() as folder:  # ours may lie in a store of objects
        local = Path(folder) / SIGNATURE
        local.write_bytes(signature.read_bytes())
        content = manifest.read_bytes()
        done = _ssh_keygen("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(local), content=content)
    if done.returncode:
        if b"incorrect signature" in done.stderr:
            return f"{manifest.name} was changed after it was signed, or the signature is of another one", None
        return f"{signature.name} is damaged, or was made for something else ({_complaint(done)})", None
    fingerprint = _fingerprint(done.stdout)
    if wanted is not None and fingerprint != wanted:
        return f"made with another key ({fingerprint}, and {key} is {wanted})", fingerprint
    return "", fingerprint


def _ssh_keygen(*words: str, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise OptionError("signatures need ssh-keygen, which is not on this machine; install OpenSSH.")
    return subprocess.run([program, *words], input=content, capture_output=True, check=False)  # noqa: S603 - no shell


def _fingerprint(output: bytes) -> str | None:
    found = re.search(rb"SHA256:[\w+/]+", output)
    return None if found is None else found[0].decode()


def _complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return shortened(lines[-1], 160) if lines else "ssh-keygen does not say why"


def _stated(path: Path) -> dict[str, tuple[int, str]]:
    document = read_json(path)
    try:
        if document["format"] != FORMAT:
            raise OptionError(f"{str(path)!r} has format {document['format']!r}, but this fairbits reads {FORMAT}.")
        return {str(one["path"]): (int(one["bytes"]), str(one["sha256"])) for one in document["files"]}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"{str(path)!r} is damaged ({error!r}); write the report again.") from None


def _paths(folder: Path) -> Iterator[tuple[str, Path]]:
    start = len(str(folder).rstrip("/\\")) + 1  # as text: paths in stores of objects know no relative ones
    for path in folder.rglob("*"):
        name = str(path)[start:].replace("\\", "/")
        parts = name.split("/")
        if path.is_file() and not name.endswith((".tmp", ".lock")) and not any(p.startswith(".") for p in parts):
            yield name, path


#: The files of stages, and how they are made again.
STAGES = {
    "debug.json": "fairbits debug",
    "repair.json": "fairbits repair",
    "certify.json": "fairbits certify",
    "proxies.json": "fairbits proxies",
}


def check_stages(folder: Path, here: Identity) -> None:
    """Refuse a stage's file that is about another model, schema or table, naming what differs."""
    for name, command in STAGES.items():
        path, document = folder / name, None
        with suppress(OptionError):  # whoever reads it says what is wrong with it
            document = json_of(path) if path.is_file() else None
        for entry in document if isinstance(document, list) else [document]:
            if isinstance(entry, dict):
                _check(entry, path, command, here)


def _check(entry: Mapping[str, Any], path: Path, command: str, here: Identity) -> None:
    """The identity with its ingredients where they are kept, else its short name."""
    stored = entry.get("made_with") or entry.get("identity")
    if isinstance(stored, Mapping):
        if path.name == "proxies.json":  # a study looks at all protected attributes, whatever was protected
            own = {"protected": here.ingredients["protected"]}
            stored = {**stored, "ingredients": {**stored.get("ingredients", {}), **own}}
        check_identity({"identity": stored}, here, what=f"{str(path)!r}")
    elif isinstance(stored, str) and stored and stored != here.id:
        raise OptionError(
            f"{str(path)!r} is about another model, schema or table (identity {stored[:40]}, this run's is "
            f"{here.id}); delete it, or make it again with: {command}"
        )
