"""The front door to graphs: what PyTorch or an ONNX file makes of a model."""

from __future__ import annotations

import csv
import importlib.util
import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pebble.errors import InputError, UnknownNameError
from pebble.graphs.forward import forward_pass
from pebble.graphs.graph import Graph
from pebble.models.machine import Machine
from pebble.reports.audit import Audit
from pebble.reports.target import chip_of
from pebble.system.files import read_bytes
from pebble.workloads import model_names
from pebble.workloads.named import MIXTURES

Measured = Mapping[str, int] | str | Path | None


def from_torch(
    module_or_function: Any,
    example_inputs: Any,
    example_keywords: dict[str, Any] | None = None,
    *,
    gpu: str | Machine | None = None,
    machine: str | None = None,
    measured: Measured = None,
) -> Audit:
    """The floors of a PyTorch module or function, by `torch.export`.

    Parameters
    ----------
    module_or_function : torch.nn.Module or callable
        A module is taken in evaluation mode.
    example_inputs : tuple of tensors
        Their shapes and types are those of the question; on the ``meta`` device they take no memory.
    example_keywords : dict, optional
        Arguments by name.
    gpu, machine : str
        A SKU, or a machine file.
    measured : mapping of str to int, or a file, optional
        DRAM bytes of operations whose kernels were measured; a CSV file with the columns operation and dram_bytes.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        PyTorch is not installed, or cannot export it.
    """
    from pebble.graphs.exported import export

    inputs = tuple(example_inputs) if isinstance(example_inputs, tuple | list) else (example_inputs,)
    name = getattr(module_or_function, "__name__", type(module_or_function).__name__)
    chip = chip_of(gpu, machine)
    return Audit(export(module_or_function, inputs, dict(example_keywords or {}), name), chip, _measured(measured))


def audit(
    target: Any,
    *,
    gpu: str | Machine | None = None,
    machine: str | None = None,
    measured: Measured = None,
    tokens: int | None = None,
    context: int | None = None,
    batch: int | None = None,
    dtype: str | None = None,
    routing: str | None = None,
) -> Audit:
    """The floors of what a file holds, or of a forward pass of a named model.

    Parameters
    ----------
    target : str
        ``FILE.py:NAME``, a module, a class of modules or a function of the file, which has ``get_inputs()`` or
        ``example_inputs``, and ``get_init_inputs()`` where the class takes arguments; ``model.onnx``; or a model of
        ``pebble workloads``, such as ``llama-3-8b``.
    gpu, machine : str
        A SKU, or a machine file.
    measured : mapping of str to int, or a file, optional
        As for `pebble.from_torch`.
    tokens, context, batch : int, optional
        Of a named model: new tokens of each sequence; keys that the last of them sees (``context`` alone is a decode
        step, of one token); sequences (1).
    dtype : str, optional
        Of a named model: the type of weights, activations and KV cache (bf16).
    routing : str, optional
        Of a named model with experts: ``any``, by default, counts the fewest experts that tokens can choose; ``even``
        as many tokens for each expert.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        No such file or name, no inputs, a library missing, or a model that cannot be exported; a named model without
        tokens, or a routing where there are no experts.
    UnknownNameError
        No such model or type.
    """
    chip = chip_of(gpu, machine)
    if not isinstance(target, str | Path):
        raise InputError(
            f"audit: got {str(target)[:60]!r}, expected FILE.py:NAME, model.onnx or the name of a model; "
            "pebble.from_torch takes modules."
        )
    model = str(target).lower()
    if model in model_names() or model in MIXTURES:
        graph = forward_pass(model, tokens, context, batch, dtype or "bf16", routing)
        return Audit(graph, chip, _measured(measured))
    if any(option is not None for option in (tokens, context, batch, dtype, routing)):
        if ".py" in model or model.endswith(".onnx"):
            raise InputError(
                f"audit: got tokens, context, batch, dtype or routing with {target}, expected them with a model's name."
            )
        raise UnknownNameError("model", model, (*model_names(), *MIXTURES), "pebble audit --help")
    path, _, name = str(target).rpartition(":") if ".py:" in str(target) else (str(target), "", "")
    if path.endswith(".onnx"):
        from pebble.graphs.onnx_files import read_onnx

        return Audit(read_onnx(path), chip, _measured(measured))
    if not path.endswith(".py") or not name:
        raise InputError(
            f"audit: got {str(target)[:80]!r}, expected FILE.py:NAME, such as model.py:Model, model.onnx, or the name "
            "of a model, such as llama-3-8b."
        )
    return Audit(_from_file(Path(path), name), chip, _measured(measured))


def _measured(spec: Measured) -> Mapping[str, int]:
    """Bytes by operation, from a mapping or a table."""
    if spec is None or isinstance(spec, Mapping):
        return dict(spec or {})
    rows = csv.DictReader(io.StringIO(read_bytes(spec, "measured: ").decode(errors="replace"), newline=""))
    if not {"operation", "dram_bytes"} <= set(rows.fieldnames or ()):
        raise InputError(f"measured: {spec} has other columns, expected operation and dram_bytes in its first line.")
    result: dict[str, int] = {}
    for row in rows:
        text = str(row["dram_bytes"]).strip()
        if not text.isdecimal():
            raise InputError(
                f"measured: {spec}: got {text[:40]!r} bytes of {row['operation']}, expected a whole number."
            )
        result[str(row["operation"])] = result.get(str(row["operation"]), 0) + int(text)
    return result


def _from_file(path: Path, name: str) -> Graph:
    if not path.is_file():
        raise InputError(f"audit: {path} is no file, expected FILE.py:NAME.")
    try:
        import torch
    except ImportError:
        raise InputError(
            "audit: PyTorch is not installed; run `pip install 'torch>=2.10'`, or give an ONNX file."
        ) from None
    from pebble.graphs.exported import export

    try:
        with torch.device("meta"):  # shapes are all that is asked for
            made, inputs = _loaded(torch, path, name)
    except (RuntimeError, NotImplementedError) as error:
        if "meta" not in str(error):
            raise _failed(path, error) from None
        try:
            made, inputs = _loaded(torch, path, name)  # it looks at values as it is made
        except Exception as again:
            raise _failed(path, again) from None
    except InputError:
        raise
    except Exception as error:
        raise _failed(path, error) from None
    if inputs is None:
        raise InputError(f"audit: {path} has no inputs, expected `def get_inputs():` or `example_inputs = (...)`.")
    named = inputs if isinstance(inputs, dict) else {}
    listed = () if named else tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    return export(made, listed, named, f"{path.name}:{name}")


def _failed(path: Path, error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    return InputError(f"audit: {path} fails with {type(error).__name__}: {str(error)[:200]}.")


def _loaded(torch: Any, path: Path, name: str) -> tuple[Any, Any]:
    """What is called so in a file, made, and its inputs."""
    spec = importlib.util.spec_from_file_location("pebble_audited", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    try:
        spec.loader.exec_module(loaded)
        result = vars(loaded).get(name)
        if result is None:
            raise InputError(f"audit: {path} has no {name!r}, expected a module, a class of modules or a function.")
        return _made(torch, result, loaded), _called(vars(loaded), ("get_inputs", "example_inputs"))
    finally:
        del sys.modules[spec.name]


def _made(torch: Any, member: Any, loaded: Any) -> Callable[..., Any]:
    if isinstance(member, type) and issubclass(member, torch.nn.Module):
        inputs = _called(vars(loaded), ("get_init_inputs",)) or ()
        module: Callable[..., Any] = member(**inputs) if isinstance(inputs, dict) else member(*inputs)
        return module
    if not callable(member):
        raise InputError(f"audit: got a {type(member).__name__}, expected a module, a class of modules or a function.")
    made: Callable[..., Any] = member
    return made


def _called(names: dict[str, Any], which: tuple[str, ...]) -> Any:
    value = next((names[name] for name in which if name in names), None)
    return value() if callable(value) else value
