"""A detached signature of manifest.json with a key of the user's, in the format of ``ssh-keygen -Y sign``.

The key is an Ed25519 key as OpenSSH or OpenSSL writes it, the signature an SSHSIG (OpenSSH's PROTOCOL.sshsig): whoever
has no fairbits can check it with ``ssh-keygen -Y verify``.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.errors import MissingDependencyError, OptionError
from fairbits.store import write_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

#: What signatures are for: one made for something else is none of ours.
NAMESPACE = b"fairbits"
_MAGIC, _VERSION, _KIND, _HASH = b"SSHSIG", 1, b"ssh-ed25519", b"sha512"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_REMEDY = "make one with: ssh-keygen -t ed25519"
#: Bytes of a key or a signature: ours have a few hundred.
_MAX_BYTES = 64 * 1024


def sign(manifest: Path, key: Ed25519PrivateKey, target: Path) -> str:
    """Sign a manifest; gives the fingerprint of the key."""
    public = _raw(key.public_key())
    blob = _string(_KIND) + _string(public)
    signature = _string(_KIND) + _string(key.sign(_message(manifest.read_bytes())))
    body = _MAGIC + struct.pack(">I", _VERSION) + b"".join(map(_string, (blob, NAMESPACE, b"", _HASH, signature)))
    lines = textwrap.wrap(base64.b64encode(body).decode(), 70)
    write_whole(target, ("\n".join([_BEGIN, *lines, _END]) + "\n").encode())
    return _fingerprint(blob)


def check_signature(manifest: Path, signature: Path, *, key: Path | None = None) -> tuple[str, str | None]:
    """What is wrong with a signature ("" where nothing is), and the fingerprint of the key that it names."""
    wanted = None if key is None else _raw(_public(key))
    if not signature.is_file():
        return "the manifest is not signed", None
    try:
        public, raw = _read(signature)
    except (ValueError, struct.error, OSError) as error:
        return f"{signature.name} is damaged ({error})", None
    fingerprint = _fingerprint(_string(_KIND) + _string(public))
    if wanted is not None and public != wanted:
        theirs = _fingerprint(_string(_KIND) + _string(wanted))
        return f"made with another key ({fingerprint}, and {key} is {theirs})", fingerprint
    crypto = _crypto()
    try:
        crypto.Ed25519PublicKey.from_public_bytes(public).verify(raw, _message(manifest.read_bytes()))
    except crypto.InvalidSignature:
        return f"{manifest.name} was changed after it was signed, or the signature is of another one", fingerprint
    except ValueError as error:
        return f"{signature.name} is damaged ({error})", fingerprint
    return "", fingerprint


def _message(content: bytes) -> bytes:
    """What is signed: the hash of the file, bound to its purpose."""
    return _MAGIC + b"".join(map(_string, (NAMESPACE, b"", _HASH, hashlib.sha512(content).digest())))


def _read(path: Path) -> tuple[bytes, bytes]:
    """The raw public key and the raw signature of an armoured file."""
    lines = _content(path).decode("ascii").split()
    text = " ".join(lines)
    if not (text.startswith(_BEGIN) and text.endswith(_END)):
        raise ValueError("it is no SSH signature")
    body = base64.b64decode("".join(text[len(_BEGIN) : -len(_END)].split()), validate=True)
    if not body.startswith(_MAGIC) or struct.unpack_from(">I", body, len(_MAGIC))[0] != _VERSION:
        raise ValueError("its format is not known")
    blob, namespace, _, algorithm, signed = _strings(body[len(_MAGIC) + 4 :], 5)
    if namespace != NAMESPACE:
        raise ValueError(f"it was made for {namespace.decode('ascii', 'replace')[:40]!r}")
    if algorithm != _HASH:
        raise ValueError("its hash is not sha512")
    (kind, public), (signed_kind, raw) = _strings(blob, 2), _strings(signed, 2)
    if kind != _KIND or signed_kind != _KIND:
        raise ValueError("its key is not Ed25519")
    return public, raw


def _string(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _strings(content: bytes, count: int) -> list[bytes]:
    found, place = [], 0
    for _ in range(count):
        size = struct.unpack_from(">I", content, place)[0]
        place += 4
        if place + size > len(content):
            raise ValueError("it ends too early")
        found.append(content[place : place + size])
        place += size
    if place != len(content):
        raise ValueError("it is longer than it says")
    return found


def _fingerprint(blob: bytes) -> str:
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _raw(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes_raw()


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise OptionError(f"cannot read {str(path)!r}: {error.strerror or error}.") from None
    if len(content) > _MAX_BYTES:
        raise OptionError(f"{str(path)!r} is too long to be a key or a signature; {_REMEDY}")
    return content


def open_key(path: Path, *, passphrase: Callable[[], str] | None = None) -> Ed25519PrivateKey:
    """The private key in a file."""
    crypto, content = _crypto(), _content(path)
    load = crypto.load_ssh_private_key if b"OPENSSH PRIVATE KEY" in content else crypto.load_pem_private_key
    try:
        try:
            found = load(content, None)
        except TypeError:  # locked
            if passphrase is None:
                raise OptionError(
                    f"the key in {str(path)!r} has a passphrase; sign at a terminal, where it can be asked for."
                ) from None
            found = load(content, passphrase().encode())
    except (ValueError, TypeError, crypto.UnsupportedAlgorithm) as error:
        if content.lstrip().startswith(b"ssh-"):
            raise OptionError(f"{str(path)!r} is a public key; sign with the private one beside it.") from None
        reason = str(error).strip().split(". ", 1)[0].split("\n", 1)[0][:120]
        raise OptionError(
            f"{str(path)!r} is no private key that can be opened ({reason}); check the passphrase, or {_REMEDY}"
        ) from None
    if not isinstance(found, crypto.Ed25519PrivateKey):
        raise OptionError(f"the key in {str(path)!r} is not Ed25519; {_REMEDY}")
    return found


def _public(path: Path) -> Ed25519PublicKey:
    crypto, content = _crypto(), _content(path)
    load = crypto.load_pem_public_key if content.lstrip().startswith(b"-----BEGIN") else crypto.load_ssh_public_key
    try:
        found = load(content)
    except (ValueError, crypto.UnsupportedAlgorithm):
        raise OptionError(f"{str(path)!r} is no public key; give the file that ends in .pub.") from None
    if not isinstance(found, crypto.Ed25519PublicKey):
        raise OptionError(f"the key in {str(path)!r} is not Ed25519; {_REMEDY}")
    return found


def _crypto() -> Any:
    """What we use of ``cryptography``, imported when it is needed."""
    from types import SimpleNamespace

    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingDependencyError("cryptography", "sign", "signing and checking signatures") from None
    names = ("load_ssh_private_key", "load_pem_private_key", "load_ssh_public_key", "load_pem_public_key")
    return SimpleNamespace(
        InvalidSignature=InvalidSignature,
        UnsupportedAlgorithm=UnsupportedAlgorithm,
        Ed25519PrivateKey=ed25519.Ed25519PrivateKey,
        Ed25519PublicKey=ed25519.Ed25519PublicKey,
        **{name: getattr(serialization, name) for name in names},
    )
