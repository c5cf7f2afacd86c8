"""Sound files made odd: bytes, archives, JSON and TOML values, arrays, graphs. The same seed makes the same file."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from typing import Any

import numpy as np

#: Bytes that mean much to parsers: ends of ranges, other formats, terminals, other directions of writing.
_PIECES = (
    *(b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x00" * 8, b"\xff" * 8, b"PK\x03\x04", b"PAR1"),
    *(b"ARROW1", b"\x1b[31m", b"\x1b]52;c;aGk=\x07", "\u202e".encode(), b"\xed\xa0\x80", b"\xc2\xb2", b"NaN", b"inf"),
    *(b"1e999", b"9" * 400, b"-1", b"true", b"null", b"[" * 2000, b'"', b"\n", b"\r", b",", b"\t", b"builtins:exec"),
    *(b"os:abort", b"../../etc/passwd", b"/dev/zero", b"http://127.0.0.1:9/", b"\\N", b"cos\nsystem\n", b"\x9b31m"),
)  # fmt: skip
_HEADERS = (
    *(b"Content-Length: 99999999999", b"Content-Length: -1", b"Content-Length: 3", b"Transfer-Encoding: chunked"),
    *(b"Content-Encoding: gzip", b"Content-Encoding: deflate", b"Content-Encoding: br, gzip", b"Content-Encoding: \xff"),
    *(b"Retry-After: 99999999999999", b"Retry-After: -1", b"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", b"Retry-After: nan"),
    *(b"Location: file:///etc/passwd", b"Location: \x1b[2J", b"Connection: keep-alive", b"Upgrade: h2c", b"Set-Cookie: a=\xff"),
    b"A: " + b"a" * 70_000,
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**63, -(2**63), 10**12, 10**30, 1e308, -0.5, float("nan"), float("inf"), "", "²"),
    *(
        "\x1b[2J",
        "\u202e",
        "\ud800",
        "x" * 3000,
        "os:fork",
        "builtins:eval",
        "../x",
        [],
        {},
        [[]],
        {"": 0},
        [None] * 99,
    ),
)
_TOML = ("9" * 5000, "nan", "inf", "-1", "0", "1e308", '"²"', '"\\u001b[2J"', '""', "[]", "{}", "true", '"os:fork"',
         '"/dev/zero"', "[" * 300, '"' + "y" * 3000 + '"', "1979-05-27T07:32:00Z", '["F", "F"]', "[1, 'a', {}]", '"\\u202e"')  # fmt: skip


_SQL = ("read_csv('/etc/passwd')", "range(100000000)", "pg_sleep(100)", "repeat('x', 1000000000)", "1) UNION SELECT", "--",
        "/*", ";", "(SELECT max(k) FROM cases)", "COPY cases TO 'x'", "getenv('HOME')", "'\x1b[2J'", "''", "NULL", "list(k)",
        "9" * 400, "1e999", "²", "\u202e", "CAST('x' AS INTEGER)", "k", "NOT", "OR", "(", ")", "unnest([1,2])", "$1", "*",
        "regexp_matches(sex, '(a*)*b')", "levenshtein(sex, 'F')", "CASE WHEN k > 1 THEN 1/0 END", "EXISTS", "IN", "'F'",
        "INSTALL httpfs", "PRAGMA version", "quantile_cont(k, 2)", "current_setting('x')", "\x00", "x.y.z", "rowid")  # fmt: skip


def _is_json(content: bytes) -> bool:
    return content.lstrip()[:1] in (b"{", b"[")


def mutated(sound: bytes, kind: str, seed: int, others: list[bytes]) -> bytes:
    """An odd file of a kind; ``others`` are sound files of other kinds to splice with."""
    rng = random.Random(seed)  # noqa: S311 - odd files need no secrecy
    content = sound
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        ways = [_bytes]
        if content.startswith(b"PK"):
            ways += [_archive, _archive, _archive]
        if kind in {"toml", "policy", "csv", "tsv", "lightgbm"} or _is_json(content):
            ways += [_text, _text]
        if kind == "toml":
            ways += [_toml] * 4
        if kind == "filter":
            ways = [_sql] * 6 + [_bytes]
        if kind.startswith("endpoint"):
            ways += [_text, _answer, _answer]
        if _is_json(content):
            ways += [_json] * 4
        if kind.startswith("onnx"):
            ways += [_onnx] * 4
        if content.startswith((b"PAR1", b"ARROW1")):
            ways += [_table]
        way = rng.choice(ways)
        try:
            content = _splice(content, rng, others) if rng.random() < 0.02 else way(content, rng)
        except Exception:  # noqa: BLE001 - too odd already for this way; bytes can always change
            content = _bytes(content, rng)
        content = content[: 1 << 22]
    return content


def _bytes(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content or b"\0")
    how = rng.randrange(7)
    place = rng.randrange(len(data))
    if how == 0:
        for _ in range(rng.choice((1, 1, 4, 32))):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif how == 1:
        del data[place:]
    elif how == 2:
        data[place:place] = rng.choice(_PIECES)
    elif how == 3:
        piece = rng.choice(_PIECES)
        data[place : place + len(piece)] = piece
    elif how == 4:
        del data[place : place + rng.choice((1, 4, 64))]
    elif how == 5:
        data[place:place] = data[place : place + rng.choice((8, 64, 512))] * rng.choice((1, 3))
    else:
        data[place : place + 1] = bytes([data[place] ^ (1 << rng.randrange(8))])
    return bytes(data)


def _splice(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    other = rng.choice(others)
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other) + 1) :]


def _text(content: bytes, rng: random.Random) -> bytes:
    """Another value for one word."""
    words = list(re.finditer(rb"[^\s,=\[\]{}:]+", content))
    word = rng.choice(words)
    return content[: word.start()] + rng.choice(_PIECES) + content[word.end() :]


def _toml(content: bytes, rng: random.Random) -> bytes:
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    stated = [i for i, line in enumerate(lines) if "=" in line]
    place = rng.choice(stated)
    how = rng.randrange(4)
    if how == 0:
        lines.insert(place, lines[rng.choice(stated)])
    elif how == 1:
        del lines[place]
    else:
        lines[place] = f"{lines[place].partition('=')[0]}= {rng.choice(_TOML)}"
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _sql(content: bytes, rng: random.Random) -> bytes:
    """Another word for one of the filter, one more, or one less."""
    words = content.decode("utf-8", "replace").split(" ")
    place, how = rng.randrange(len(words)), rng.randrange(3)
    if how == 0:
        words[place] = rng.choice(_SQL)
    elif how == 1:
        words.insert(place, rng.choice(_SQL))
    else:
        del words[place]
    return " ".join(words).encode("utf-8", "surrogatepass")


def _answer(content: bytes, rng: random.Random) -> bytes:
    """The same answer with an odd body, status, length or header."""
    head, _, body = content.partition(b"\r\n\r\n")
    lines, how = head.split(b"\r\n"), rng.randrange(5)
    if how == 0:
        body = _json(body, rng)
    elif how == 1:
        status = rng.choice(
            (100, 101, 103, 200, 204, 206, 301, 302, 304, 307, 400, 401, 404, 418, 429, 500, 503, 599, 999)
        )
        lines[0] = b"HTTP/1.1 %d Odd" % status
    elif how == 2:
        lines.append(rng.choice(_HEADERS))
    elif how == 3 and len(lines) > 1:
        del lines[rng.randrange(1, len(lines))]
    else:
        lines.append(b"X-Odd: " + rng.choice(_PIECES))
    if rng.random() < 0.5:  # a length that is right again
        lines = [line for line in lines if not line.lower().startswith(b"content-length")]
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _json(content: bytes, rng: random.Random) -> bytes:
    document = json.loads(content)
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
        for key in keys:
            places.append((node, key))
            waiting.append(node[key])
    node, key = rng.choice(places)
    if isinstance(node, dict) and rng.random() < 0.2:
        del node[key]
    elif isinstance(node[key], int) and rng.random() < 0.5:
        node[key] += rng.choice((1, -1, 10**6, 10**9))
    else:
        node[key] = rng.choice(_VALUES)
    return json.dumps(document).encode("utf-8", "surrogatepass")


def _archive(content: bytes, rng: random.Random) -> bytes:
    """The same archive with one entry changed, dropped, renamed or doubled."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        entries = [(entry.filename, file.read(entry)) for entry in file.infolist()]
    place = rng.randrange(len(entries))
    name, held = entries[place]
    how = rng.randrange(8)
    if how == 0:
        del entries[place]
    elif how == 1:
        entries[place] = (rng.choice(["../x", "a\x1b[2J", "", name + "²", name.upper(), "W1.npy", "b0.npy"]), held)
    elif how == 2:
        entries.append((name, held))
    elif name.endswith(".npy") and how < 6:
        entries[place] = (name, _array(held, rng))
    elif name.endswith(".json") and how < 7:
        entries[place] = (name, _json(held, rng))
    else:
        entries[place] = (name, _bytes(held, rng))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as file:
        for name, held in entries:
            file.writestr(zipfile.ZipInfo(name), held)
    return made.getvalue()


def _array(held: bytes, rng: random.Random) -> bytes:
    array = np.load(io.BytesIO(held), allow_pickle=False)
    how = rng.randrange(4)
    if how == 0:
        kinds = ("c8", "M8[s]", "m8[D]", "U3", "S2", "i1", "u8", "?", "f2", "f8", "V4", "i4,f4")
        array = np.zeros(array.shape, dtype=rng.choice(kinds))
    elif how == 1 and array.dtype.kind == "f" and array.size:
        array.flat[rng.randrange(array.size)] = rng.choice((np.nan, np.inf, -np.inf, 1e38))
    elif how == 2:
        array = np.resize(array, rng.choice(((0,), (), (3,), (2, 0), (1, 1, 1), (7, 2), (3, 4), (4, 4))))
    else:
        header = io.BytesIO()
        shape = rng.choice(((10**9, 10**9), (-1,), (2**62,), (1,) * 40, (3, 5)))
        np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
        return header.getvalue() + array.tobytes()
    made = io.BytesIO()
    np.save(made, array, allow_pickle=False)
    return made.getvalue()


def _onnx(content: bytes, rng: random.Random) -> bytes:
    import onnx

    model = onnx.ModelProto()
    model.ParseFromString(content)
    graph, node = model.graph, rng.choice(model.graph.node)
    how = rng.randrange(9)
    names = [name for entry in graph.node for name in (*entry.input, *entry.output)] + [
        t.name for t in graph.initializer
    ]
    if how == 0:
        node.op_type = rng.choice(["Expand", "Tile", "Range", "Loop", "If", "Scan", "RandomNormal", "Gather", "Pow",
                                   "ConstantOfShape", "ZipMap", "TreeEnsembleClassifier", "Resize", "NonZero", "\x1b[2J"])  # fmt: skip
    elif how == 1 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)
    elif how == 2:
        tensor = rng.choice(graph.initializer)
        sizes = rng.choice(([10**12], [-1], [0], [2, 2], []))
        del tensor.dims[:]
        tensor.dims.extend(sizes)
    elif how == 3:
        value = rng.choice(
            (np.array([10**10], np.int64), np.array(["a"], object), np.float32(np.nan), np.zeros((3, 2)))
        )
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), rng.choice(names)))
    elif how == 4:
        node.attribute.append(
            onnx.helper.make_attribute(rng.choice(["axis", "to", "shape", "alpha"]), rng.choice([10**9, 1]))
        )
    elif how == 5:
        graph.node.append(node)
    elif how == 6:
        del graph.node[rng.randrange(len(graph.node))]
    elif how == 7:
        model.metadata_props.add(key="fairbits.favourable", value=rng.choice(["²", "-1", "9" * 99, "\x1b", "7"]))
    else:
        rng.choice([*graph.input, *graph.output]).type.tensor_type.elem_type = rng.randrange(25)
    return bytes(model.SerializeToString())


def _table(content: bytes, rng: random.Random) -> bytes:
    """A sound table of odd columns, under the same name."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    rows = 20
    odd: list[Any] = [
        pa.nulls(rows),
        pa.array([None] * rows, pa.int64()),
        pa.array([2**63 - 1] * rows),
        pa.array([float("nan")] * rows),
        pa.array([[1]] * rows),
        pa.array([{"a": 1}] * rows),
        pa.array([b"\xff"] * rows),
        pa.array(["\x1b[2J\u202e"] * rows),
        pa.array([""] * rows),
        pa.array([True] * rows),
        pa.array([10**9] * rows, pa.timestamp("s")),
        pa.array(["F", "M"] * (rows // 2)).dictionary_encode(),
        pa.array(["1"] * rows, pa.large_string()),
        pa.array([1] * rows, pa.uint64()),
        pa.array([1] * rows, pa.decimal128(30, 2)),
    ]
    names = ["age", "sex", "pay", "hired"]
    if rng.random() < 0.2:
        names[rng.randrange(4)] = rng.choice(["age", "\x1b[2J", "", "x" * 1000])
    plain = [pa.array([1, 2] * 10), pa.array(["F", "M"] * 10), pa.array([1.5] * rows), pa.array(["yes", "no"] * 10)]
    plain[rng.randrange(4)] = rng.choice(odd)
    made, sink = pa.Table.from_arrays(plain, names=names), io.BytesIO()
    if content.startswith(b"PAR1"):
        parquet.write_table(made, sink)
    else:
        feather.write_feather(made, sink, compression="uncompressed")
    return sink.getvalue()
