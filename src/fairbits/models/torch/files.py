"""PyTorch files: exported programs (.pt2), and weights (.pt, .pth) with the function that builds their module."""

from __future__ import annotations

import pickletools
import warnings
import zipfile
from pathlib import Path
from typing import Any

from fairbits.domain import Schema
from fairbits.errors import FairbitsError, ModelError
from fairbits.models.black_box import reason
from fairbits.models.callables import check_reference, made_by, named_object
from fairbits.models.limits import MAX_DESCRIPTION
from fairbits.models.native.chain import NotNative
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, read_output
from fairbits.models.torch.adapter import from_torch, import_torch
from fairbits.models.torch.pt2 import Archive
from fairbits.models.trial import tried

#: Homes of what a state dict is made of.
_OF_TENSORS = {"torch", "torch._utils", "torch.storage", "collections"}


def read_pt2(path: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """An exported program: read as data where it is a chain of dense layers, else run, if trusted."""
    archive = Archive(path)
    try:
        return Loaded(read_output(archive.chain().network(options.favourable), options))
    except NotNative as error:
        why = str(error)
        if not options.trust_pickle:
            raise ModelError(
                f"the model {str(path)!r} is no chain of dense layers ({str(error).rstrip('.')}), and running it means "
                f"unpickling parts of it; add --trust-pickle if you trust whoever made it."
            ) from None
    torch = import_torch("running an exported program")
    options = tried(path, schema, options, needs=("torch",))
    try:
        program = torch.export.load(str(path))
        module, names = program.module(), list(program.graph_signature.user_inputs)
    except Exception as error:  # noqa: BLE001 - a damaged archive can break anything inside
        raise ModelError(f"the model {str(path)!r} cannot be loaded by torch.export: {reason(error)}") from None
    fixed = _fixed_rows(program)
    if fixed is not None:
        raise ModelError(
            f"the model {str(path)!r} was exported for {fixed:,} rows at a time and takes no others; export it with "
            f"dynamic_shapes, the first size of each input being torch.export.Dim.DYNAMIC."
        )
    from fairbits.models.torch.inputs import running

    return running(module, schema, options, why, names=[str(name) for name in names])


def _fixed_rows(program: Any) -> int | None:
    """The only number of rows that an exported program takes; None where it takes any."""
    wanted = set(program.graph_signature.user_inputs)
    places = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in wanted]
    shapes = [tuple(getattr(node.meta.get("val"), "shape", ())) for node in places]
    sizes = [shape[0] for shape in shapes if shape]
    return next((size for size in sizes if type(size) is int), None)


def read_weights(path: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A state dict for the module that ``factory`` builds; a whole pickled module only if trusted."""
    if options.factory is not None:
        check_reference(options.factory, trust_code=options.trust_code)
    elif not options.trust_pickle:
        raise _more_than_weights(path) if _holds_more(path) else _no_factory(path)
    import_torch("reading PyTorch weights")
    if options.factory is None:  # code that its owner grants runs once, here; only files are tried out first
        options = tried(path, schema, options, needs=("torch",))
    return from_torch(module_of(path, options), schema, options)


def module_of(path: Path, options: ModelOptions) -> Any:
    """The module with its weights in place."""
    torch = import_torch("reading PyTorch weights")
    held = load_content(torch, path, options)
    if isinstance(held, torch.nn.Module):
        return held
    if options.factory is None:
        raise _no_factory(path)
    try:
        module = made_by(named_object(options.factory, trust_code=options.trust_code), options.factory)
        if not isinstance(module, torch.nn.Module):
            raise ModelError(f"the factory {options.factory!r} made a {type(module).__name__!r}, not a torch module.")
        module.load_state_dict(held)
    except FairbitsError:
        raise
    except Exception as error:  # noqa: BLE001 - the factory is foreign code
        raise ModelError(f"the weights in {str(path)!r} do not fit {options.factory!r}: {reason(error)}") from None
    return module


def _more_than_weights(path: Path) -> ModelError:
    return ModelError(
        f"the model {str(path)!r} holds more than weights, and opening it runs code; save its state_dict(), or "
        f"add --trust-pickle if you trust whoever made it."
    )


def _holds_more(path: Path) -> bool:
    """Whether a file names classes besides those of plain tensors; told from its opcodes, which are not run."""
    try:
        with zipfile.ZipFile(path) as file:
            entry = next(entry for entry in file.infolist() if entry.filename.endswith("data.pkl"))
            if entry.file_size > MAX_DESCRIPTION:
                return True
            for code, argument, _ in pickletools.genops(file.read(entry)):
                if code.name == "STACK_GLOBAL":
                    return True
                if code.name == "GLOBAL" and str(argument).partition(" ")[0] not in _OF_TENSORS:
                    return True
    except Exception:  # noqa: BLE001 - a damaged file is named by whoever reads it
        return False
    return False


def _no_factory(path: Path) -> ModelError:
    return ModelError(
        f"the model {str(path)!r} holds weights but not the module they belong to; name the function that builds "
        f'it: factory = "package.module:function" under [model], with --trust-code; '
        f"or add --trust-pickle if it is a whole module and you trust whoever made it."
    )


def load_content(torch: Any, path: Path, options: ModelOptions) -> Any:
    """What a file holds: tensors by name, or a module where the user trusts pickles."""
    with path.open("rb") as file:
        start = file.read(2)
    if not start.startswith((b"PK", b"\x80")):  # a zip archive, or a pickle from before PyTorch 1.6
        raise ModelError(f"the model {str(path)!r} is not a readable PyTorch file; save its state_dict() again.")
    if _is_script(path):
        return _load_script(torch, path, options)
    try:
        return torch.load(path, map_location="cpu", weights_only=not options.trust_pickle)
    except Exception as error:  # noqa: BLE001 - a damaged file can break anything inside
        if "weights_only" in str(error) or "Unsupported global" in str(error):
            raise _more_than_weights(path) from None
        raise ModelError(f"the model {str(path)!r} is not a readable PyTorch file: {reason(error)}") from None


def _is_script(path: Path) -> bool:
    """Whether a file holds compiled code (torch.jit.save) beside its weights."""
    try:
        with zipfile.ZipFile(path) as file:
            return any("/code/" in name and name.endswith(".py") for name in file.namelist())
    except Exception:  # noqa: BLE001 - a damaged file, or no archive, is named by whoever reads it
        return False


def _load_script(torch: Any, path: Path, options: ModelOptions) -> Any:
    if not options.trust_pickle:
        raise _more_than_weights(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is called old; files of it are there
            return torch.jit.load(str(path), map_location="cpu")
    except Exception as error:  # noqa: BLE001 - a damaged file can break anything inside
        raise ModelError(f"the model {str(path)!r} is not a readable TorchScript file: {reason(error)}") from None
