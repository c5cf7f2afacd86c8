"""The manifest names every file that was changed, added or removed; a signature binds the manifest to a key."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairbits import Subject
from fairbits.cli.app import app
from fairbits.errors import OptionError
from fairbits.report import MANIFEST, SIGNATURE, compute_report, open_key, sign, verify, write_report
from fairbits.report.manifest import check_signature, write_manifest
from fairbits.store import Run

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen on this machine")


def write_key(path: Path, *, password: str = "") -> Path:
    """A private key, and its public half beside it."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", password, "-f", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def reported(searched: Run, subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed") / "run"
    shutil.copytree(searched.folder, folder)
    write_report(compute_report(Run.open(folder), subject=subject, threads=1), folder)
    return folder


@pytest.fixture
def signed(reported: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A run with a signed manifest, and the key."""
    folder = tmp_path / "run"
    shutil.copytree(reported, folder)
    key = write_key(tmp_path / "key")
    sign(folder / MANIFEST, open_key(key), folder / SIGNATURE)
    return folder, key


def test_the_manifest_holds_every_file(reported: Path) -> None:
    names = {entry["path"] for entry in json.loads((reported / MANIFEST).read_text())["files"]}
    there = {path.relative_to(reported).as_posix() for path in reported.rglob("*") if path.is_file()}
    assert names == there - {MANIFEST}
    assert {"report.html", "report.md", "summary.json", "run.json", "measure.json"} <= names
    found = verify(reported)
    assert (found.good, found.signed, found.files) == (True, False, len(names))


def test_every_single_file_is_guarded(signed: tuple[Path, Path]) -> None:
    folder, key = signed
    public = key.with_suffix(".pub")
    assert verify(folder, key=public).good
    for entry in json.loads((folder / MANIFEST).read_text())["files"]:
        path = folder / entry["path"]
        content = path.read_bytes()
        path.write_bytes(content + b" ")
        assert verify(folder).changed == (entry["path"],)
        path.unlink()
        assert verify(folder).missing == (entry["path"],)
        path.write_bytes(content)
    (folder / "cases" / "more.parquet").write_bytes(b"more")
    assert verify(folder).added == ("cases/more.parquet",)


def _rewrite(folder: Path) -> None:
    """Change the page, and the manifest with it."""
    from fairbits.report.manifest import hash_file

    (folder / "report.html").write_text("all is well")
    document = json.loads((folder / MANIFEST).read_text())
    size, digest = hash_file(folder / "report.html")
    entry = next(one for one in document["files"] if one["path"] == "report.html")
    entry |= {"bytes": size, "sha256": digest}
    (folder / MANIFEST).write_text(json.dumps(document))


def _cut(folder: Path) -> None:
    lines = (folder / SIGNATURE).read_text().splitlines()
    (folder / SIGNATURE).write_text("\n".join([lines[0], *lines[2:]]))


@pytest.mark.parametrize(
    ("tamper", "fault"),
    [
        (_rewrite, "changed after it was signed"),
        (lambda folder: (folder / SIGNATURE).write_text("nothing"), "damaged"),
        (lambda folder: (folder / SIGNATURE).write_bytes(b"\xff\xfe"), "damaged"),
        (_cut, "damaged"),
    ],
    ids=["manifest", "text", "bytes", "cut"],
)
def test_a_manifest_made_to_fit_does_not_pass(
    signed: tuple[Path, Path], tamper: Callable[[Path], Any], fault: str
) -> None:
    folder, key = signed
    tamper(folder)
    found = verify(folder, key=key.with_suffix(".pub"))
    assert not found.good
    assert fault in found.signature


def test_another_key_and_no_signature(signed: tuple[Path, Path], tmp_path: Path) -> None:
    folder, _ = signed
    other = write_key(tmp_path / "other").with_suffix(".pub")
    assert "another key" in verify(folder, key=other).signature
    (folder / SIGNATURE).unlink()
    assert verify(folder, key=other).signature == "the manifest is not signed"
    assert verify(folder).good


def test_ssh_keygen_agrees(signed: tuple[Path, Path], tmp_path: Path) -> None:
    """Whoever has no fairbits can check the signature, and we can check one that they made."""
    folder, key = signed
    public = key.with_suffix(".pub").read_text().strip()
    allowed = tmp_path / "allowed"
    allowed.write_text(f"reviewer {public}\n")
    words = ["ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", "reviewer", "-n", "fairbits"]
    manifest = (folder / MANIFEST).read_bytes()
    done = subprocess.run([*words, "-s", str(folder / SIGNATURE)], input=manifest, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    fingerprint = verify(folder).fingerprint
    assert fingerprint is not None
    assert fingerprint in done.stdout.decode()
    (folder / SIGNATURE).unlink()
    theirs = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", "fairbits", str(folder / MANIFEST)]
    subprocess.run(theirs, capture_output=True, check=True)
    assert verify(folder, key=key.with_suffix(".pub")).good
    theirs[theirs.index("fairbits")] = "email"
    (folder / SIGNATURE).unlink()
    subprocess.run(theirs, capture_output=True, check=True)
    assert "made for something else" in verify(folder).signature


@pytest.mark.parametrize("size", ["Infinity", "1e400", "null", "[]", '"many"'])
def test_a_manifest_of_odd_sizes_is_damaged(size: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(f'{{"format": 1, "files": [{{"path": "a", "bytes": {size}, "sha256": ""}}]}}')
    with pytest.raises(OptionError, match="is damaged"):
        verify(tmp_path)


def test_keys_that_cannot_be_used(tmp_path: Path) -> None:
    locked = write_key(tmp_path / "locked", password="a secret")  # noqa: S106 - nobody's
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(OptionError, match="cannot sign"):  # nobody is there to be asked
        sign(tmp_path / MANIFEST, open_key(locked), tmp_path / SIGNATURE)
    assert not (tmp_path / SIGNATURE).exists()
    (tmp_path / "key.pub").write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 ann")
    with pytest.raises(OptionError, match="is a public key"):
        open_key(tmp_path / "key.pub")
    (tmp_path / "text").write_text("no key")
    with pytest.raises(OptionError, match="no private key"):
        open_key(tmp_path / "text")
    with pytest.raises(OptionError, match="cannot read"):
        open_key(tmp_path / "nowhere")
    with pytest.raises(OptionError, match="no public key"):
        check_signature(tmp_path / "text", tmp_path / "text", key=tmp_path / "text")


def test_the_command(reported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(reported, folder)

    def ask(*words: str) -> Any:
        return CliRunner().invoke(app, ["report", str(folder), *words])

    fine = ask("--verify")
    assert fine.exit_code == 0
    assert "Not signed" in fine.output
    key = write_key(tmp_path / "key")
    sign(folder / MANIFEST, open_key(key), folder / SIGNATURE)
    assert ask("--verify", "--key", str(key.with_suffix(".pub"))).exit_code == 0
    (folder / "report.html").write_text("changed")
    bad = ask("--verify", "--json")
    assert bad.exit_code == 1
    assert json.loads(bad.output)["changed"] == ["report.html"]
    assert "changed: report.html" in ask("--verify").output
    for words in (["--verify", "--check"], ["--key", str(key)]):
        refused = ask(*words)
        assert isinstance(refused.exception, OptionError), refused.output
    (folder / MANIFEST).unlink()
    assert isinstance(ask("--verify").exception, OptionError)


def test_a_report_written_again_is_not_signed_any_more(signed: tuple[Path, Path], subject: Subject) -> None:
    folder, _ = signed
    write_report(compute_report(Run.open(folder), subject=subject, threads=1), folder)
    assert not (folder / SIGNATURE).exists()
    assert verify(folder).good


def test_a_folder_in_a_store_of_objects() -> None:
    upath = pytest.importorskip("upath", reason="universal-pathlib is not installed")
    folder = upath.UPath("memory://fairbits-manifest/run")
    (folder / "cases").mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_bytes(b"{}")
    (folder / "cases" / "part.parquet").write_bytes(b"cases")
    write_manifest(folder, about={})
    assert verify(folder).good
    (folder / "cases" / "part.parquet").write_bytes(b"others")
    assert list(verify(folder).faults()) == ["changed: cases/part.parquet"]


def test_a_machine_without_ssh(signed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, key = signed
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OptionError, match="install OpenSSH"):
        open_key(key)
    with pytest.raises(OptionError, match="install OpenSSH"):
        verify(folder)
