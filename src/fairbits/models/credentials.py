"""Which secret an endpoint gets: the one that was granted for its host, and no other.

A subject file may say which environment variable it would like (``authorization_env``) and which header it belongs to
(``credential_header``). It gets the secret only if the same name stands in ``--credential NAME``, for the host that the
grant names (``NAME@https://host``) or, without one, for the host of the model that the command is about.
"""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from fairbits.errors import OptionError
from fairbits.models.options import ModelOptions

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORTS = {"http": 80, "https": 443}


def secret_for(url: str, options: ModelOptions) -> str | None:
    """The value of the header that carries the secret, or None where the endpoint wants none and gets none."""
    wanted, granted = options.authorization_env, options.credential
    if granted is None:
        if wanted is not None:
            raise OptionError(
                f"the endpoint {origin_of(url)} asks for the secret in {wanted!r}, which was not granted; add "
                f"--credential {wanted} if that host is to have it."
            )
        return None
    name, mark, host = granted.partition("@")
    if not _NAME.fullmatch(name):
        raise OptionError(f"--credential is {granted!r}; give NAME or NAME@https://host, NAME a variable.")
    if wanted is not None and wanted != name:
        raise OptionError(f"the endpoint asks for the secret in {wanted!r}, but the one in {name!r} was granted.")
    if mark and origin_of(host) != origin_of(url):
        raise OptionError(
            f"the secret in {name!r} was granted to {origin_of(host)}, but the model is at {origin_of(url)}; it stays "
            f"here."
        )
    secret = os.environ.get(name)
    if not secret:
        raise OptionError(f"the environment variable {name!r} is empty; set it to what the endpoint is to get.")
    if not secret.isprintable() or not secret.isascii():
        raise OptionError(f"the environment variable {name!r} holds characters that no header can carry.")
    return secret


def secret_note(url: str, options: ModelOptions) -> tuple[str, ...]:
    """A note on which secret is sent where."""
    if options.credential is None:
        return ()
    name = options.credential.partition("@")[0]
    return (f"the secret in {name} is sent to {origin_of(url)}, in the header {options.credential_header}.",)


def origin_of(url: str) -> str:
    """Scheme, host and port of an address.

    Examples
    --------
    >>> origin_of("https://Example.org/score"), origin_of("http://[::1]:8080")
    ('https://example.org:443', 'http://[::1]:8080')
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        host, port = None, 0
    if not host or parts.scheme not in _PORTS:
        raise OptionError(f"{url[:200]!r} is no address; write https://host or http://host:port.")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
