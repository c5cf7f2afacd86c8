"""What can be said about a model besides where it is: the keys of ``[model]`` in a subject file, checked once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Literal, cast, get_args, get_type_hints

from fairbits.domain import MAX_MODEL_BYTES, MAX_REQUESTS, MAX_SECONDS, GrantOptions, text_of
from fairbits.errors import OptionError, choose_from
from fairbits.options import LoadingOptions, flag_words
from fairbits.shape import fits

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
Output = Literal["probability", "logit", "value"]
InputFormat = Literal["frame", "array", "codes"]

#: Spellings of earlier releases that audit files still have.
_OLD_OUTPUTS = {"probabilities": "probability", "logits": "logit"}
_OLD_NAMES = {"eats": "input_format"}

#: Rows that a foreign model gets at once: large enough to keep it busy, small enough to stay in the caches.
BATCH = 65_536
#: What only whoever runs fairbits can say; a subject file cannot.
GRANTS = (
    *("trust", "trust_code", "trust_pickle", "credential"),
    *("max_model_bytes", "max_rows", "max_seconds", "max_requests", "max_cost"),
)


_LEAST = {
    "batch": 1,
    "retries": 0,
    "concurrency": 1,
    "cache": 0,
    "max_requests": 0,
    "max_model_bytes": 1,
    "max_rows": 1,
}
_CHOICES = {"output": get_args(Output), "input_format": get_args(InputFormat)}
_POSITIVE = ("timeout", "wait", "rate", "max_seconds", "max_cost")
_MUST = {
    **dict.fromkeys(("columns", "layers"), "a list of names"),
    **{"inputs": "lists of attributes by input", "headers": "texts by name", "favourable": "the position of an output"},
    **dict.fromkeys(("trust", "trust_code", "trust_pickle"), "true or false"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Everything has a default that suits most models.

    ``favourable`` is the output of the favourable class where there is no schema to name it. ``columns`` are the
    attributes that the model sees, in its order (default: all). ``output`` says what comes out, a probability, a logit
    or a value (default: told from the model), and ``score_of`` which of two classes a single output speaks of.
    ``input_format`` is what goes into a model that brings its own preprocessing, ``inputs`` which attributes go into
    each of several inputs, where these are not called like them. ``factory`` makes the module that a
    file of weights belongs to. ``train`` names your own training, ``module:function``, called with people, labels and a
    seed to make a model like this one. ``layers`` names the layers of a PyTorch module to look into. The rest is for
    endpoints: ``rate`` in requests per second, ``cache`` in rows, ``timeout`` (of a whole request) and
    ``wait`` in seconds.

    ``trust_code`` lets a reference such as ``module:function`` be imported, ``trust_pickle`` a pickle be opened,
    ``trust`` both. ``credential`` names the environment variable whose secret the endpoint gets, ``NAME`` or
    ``NAME@https://host``. ``max_model_bytes``, ``max_rows`` and ``max_seconds`` bound what files may ask for,
    ``max_requests`` and ``max_cost`` what a language model may be asked for.

    Parameters
    ----------
    trust, trust_code, trust_pickle, credential, max_model_bytes, max_rows, max_seconds, max_requests, max_cost
        What is granted to files and endpoints: see above.
    favourable, columns, output, score_of, input_format, inputs, factory, train, layers
        How the model is read: see above.
    batch
        Rows that the model is asked about at a time; an endpoint, at most.
    authorization_env, credential_header
        The environment variable that a subject file would like, and the header that carries its secret.
    headers
        Further headers of every request.
    timeout, retries, wait, concurrency, rate, cache
        Of an endpoint: seconds for a whole request, attempts after a failure, seconds before the first of them,
        requests at a time at most, requests per second, and rows whose answers are remembered.
    """

    trust: bool = False
    trust_code: bool = False
    trust_pickle: bool = False
    credential: str | None = None
    max_model_bytes: int = MAX_MODEL_BYTES
    max_rows: int | None = None
    max_seconds: float = MAX_SECONDS
    max_requests: int = MAX_REQUESTS
    max_cost: float | None = None
    favourable: int | None = None
    columns: tuple[str, ...] | None = None
    output: Output | None = None
    score_of: str | None = None
    input_format: InputFormat | None = None
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    factory: str | None = None
    train: str | None = None
    layers: tuple[str, ...] | None = None
    batch: int = BATCH
    authorization_env: str | None = None
    credential_header: str = "Authorization"
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 10.0
    retries: int = 4
    wait: float = 0.25
    concurrency: int = 32
    rate: float | None = None
    cache: int = 1_000_000

    def __post_init__(self) -> None:
        names: dict[str, Any] = {"columns": self.columns, "layers": self.layers}
        inputs: Any = dict(self.inputs) if isinstance(self.inputs, Mapping) else {}
        for lists in (names, inputs):
            lists |= {name: tuple(one) for name, one in lists.items() if isinstance(one, list)}
        settled: dict[str, Any] = {
            **names,
            "inputs": inputs if isinstance(self.inputs, Mapping) else self.inputs,
            "output": _OLD_OUTPUTS.get(self.output, self.output) if isinstance(self.output, str) else self.output,
            "score_of": None if self.score_of is None else text_of(self.score_of),
            **(dict.fromkeys(("trust_code", "trust_pickle"), True) if self.trust else {}),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        for name, kind in _kinds().items():
            value, least = getattr(self, name), _LEAST.get(name)
            fit = fits(value, kind)
            if name in _CHOICES and not fit:
                raise OptionError(f"the model's {name} is {value!r}; {choose_from(str(value), _CHOICES[name])}")
            small = fit and value is not None and least is not None and value < least
            if not fit or small or (name in _POSITIVE and value is not None and not 0 < value < 1e9):
                must = "a number larger than 0" if name in _POSITIVE else _MUST.get(name, "a text")
                must = must if least is None else f"a whole number from {least} up"
                raise OptionError(f"the model's {name} is {value!r}; it must be {must}.")
        if not _HEADER.fullmatch(self.credential_header):
            raise OptionError(
                f"the model's credential_header is {self.credential_header!r}; give a header such as X-Api-Key."
            )

    def section(self) -> dict[str, Any]:
        """What a subject file would say under [model]: whatever is not as by default, except what is granted."""
        said: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            usual = entry.default if entry.default is not MISSING else {}
            if value != usual and entry.name not in {*GRANTS, "favourable"}:
                said[entry.name] = list(value) if isinstance(value, tuple) else value
        if self.inputs:
            said["inputs"] = {name: list(names) for name, names in self.inputs.items()}
        return said

    def grants(self) -> GrantOptions:
        """What was granted, to load the same subject again."""
        return cast(GrantOptions, {name: getattr(self, name) for name in GRANTS if name != "trust"})

    def typed_grants(self) -> list[str]:
        """What was granted beyond the usual, as flags: a command that opens the same model needs them again."""
        usual = {entry.name: entry.default for entry in fields(self)}
        return flag_words(LoadingOptions(**{name: v for name, v in self.grants().items() if v != usual[name]}))  # type: ignore[arg-type]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ModelOptions:
        """Options from keywords; old names are understood."""
        given = {_OLD_NAMES.get(name, name): value for name, value in given.items()}
        known = [entry.name for entry in fields(cls)]
        for name in given:
            if name not in known:
                raise OptionError(f"a model has no option {name!r}; {choose_from(name, known)}")
        return cls(**given)


@cache
def _kinds() -> dict[str, Any]:
    return get_type_hints(ModelOptions)


#: What suits most models.
DEFAULTS = ModelOptions()
