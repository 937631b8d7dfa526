"""A graph from PyTorch: what `torch.export` makes of a module or a function. PyTorch is imported here alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import prod
from types import BuiltinFunctionType, FunctionType
from typing import Any, Protocol, runtime_checkable

from pebble.errors import InputError
from pebble.graphs import shapes
from pebble.graphs.graph import Builder, Graph, Shape, Use, View, masked, use
from pebble.graphs.operators import CHOOSES, CONVOLUTIONS, CREATES, NOTHING, PIECES, POOLS, VIEWS, kind_of


@runtime_checkable
class _Tensor(Protocol):
    """`torch.Tensor`."""

    shape: Any
    dtype: Any


@runtime_checkable
class _Node(Protocol):
    """`torch.fx.Node`: a call, its arguments and what is known of its value."""

    op: str
    meta: dict[str, Any]


@runtime_checkable
class _Named(Protocol):
    """An argument of an exported program that has a placeholder; constants have none."""

    name: str


@runtime_checkable
class _Overload(Protocol):
    """`torch.ops.aten.mm.default`, an operator with its schema."""

    _schema: Any


def read_program(program: Any, name: str, shared: dict[str, str]) -> Graph:
    """The graph of a `torch.export.ExportedProgram`; ``shared`` names placeholders that are one tensor with another."""
    builder = Builder(name)
    reader = _Reader(builder)
    weights = {*program.graph_signature.parameters, *program.graph_signature.buffers}
    stored = {
        spec.arg.name: spec.target
        for spec in program.graph_signature.input_specs
        if spec.target in weights and isinstance(spec.arg, _Named)
    }
    outputs: list[str] = []
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            if _is_tensor(value):
                first = builder.views.get(shared.get(node.name, ""))
                shape, dtype, width = _stored(value)
                if first is not None:
                    builder.views[node.name] = View(first.tensor, shape, dtype, min(first.elements, prod(shape)))
                else:
                    builder.tensor(node.name, shape, dtype, width, "weight" if node.name in stored else "input")
                    held = min(prod(shape), value.untyped_storage().nbytes() // width)  # an expanded one holds less
                    builder.tensors[node.name] = replace(builder.tensors[node.name], elements=held)
                    builder.views[node.name] = replace(builder.views[node.name], elements=held)
        elif node.op == "call_function":
            reader.call(node)
        elif node.op == "get_attr" and _is_tensor(value):
            shape, dtype, width = _stored(value)
            builder.tensor(node.name, shape, dtype, width, "weight")
        elif node.op == "output":
            outputs = list(dict.fromkeys(item.name for item in _nodes(node.args) if item.name in builder.views))
    return builder.graph(outputs)


class _Reader:
    """One call after the other."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def call(self, node: Any) -> None:
        """What a call of the graph is."""
        name = _name(node)
        value = node.meta.get("val")
        if name == "getitem":
            self._item(node)
            return
        sources = [item for item in _nodes((node.args, node.kwargs)) if item.name in self.builder.views]
        if name in NOTHING or not (_is_tensor(value) or isinstance(value, tuple | list)):
            return
        first = self.builder.views[sources[0].name] if sources else None
        if name in PIECES and first is not None:
            parts = [part for part in value if _is_tensor(part)]
            names = [f"{node.name}.{i}" for i in range(len(parts))]
            self.builder.pieces(names, first, [_shape(part) for part in parts])
            return
        if first is not None and name in VIEWS and _same_type(value, first):
            result = value[0] if isinstance(value, tuple | list) else value
            self.builder.view(node.name, first, _shape(result))
            for i, part in enumerate(value if isinstance(value, tuple | list) else ()):
                if _is_tensor(part):
                    self.builder.views[f"{node.name}.{i}"] = self.builder.views[node.name]
            return
        if name == "broadcast_tensors":
            for i, (source, part) in enumerate(zip(sources, value, strict=True)):
                self.builder.view(f"{node.name}.{i}", self.builder.views[source.name], _shape(part))
            return
        if first is not None and name == "unfold" and first.plain:  # windows along one dimension
            axis, size, step = node.args[1:4]
            along, count = first.shape[axis], _shape(value)[axis]
            shown = (count - 1) * min(step, size) + size
            self.builder.view(node.name, first, _shape(value), first.elements // along * min(along, shown))
            return
        if first is not None and name == "to" and _same_type(value, first) and _shape(value) == first.shape:
            self.builder.view(node.name, first, first.shape)
            return
        self._operation(node, name, [self.builder.views[item.name] for item in sources])

    def _item(self, node: Any) -> None:
        source, index = node.args
        views = self.builder.views
        result = views.get(f"{source.name}.{index}") or (views.get(source.name) if index == 0 else None)
        if result is not None:
            views[node.name] = result

    def _operation(self, node: Any, name: str, sources: Sequence[View]) -> None:
        value = node.meta.get("val")
        many = isinstance(value, tuple | list)
        results = []
        for i, part in enumerate(value if many else (value,)):
            used = not many or any(user.args[1] == i for user in node.users if _name(user) == "getitem")
            if _is_tensor(part) and used:
                results.append((f"{node.name}.{i}" if many else node.name, *_stored(part)))
        out = results[0][2] if results else ""
        kind, reads, workload, counted = self._kind(node, name, sources, out)
        if name.endswith("_") and not name.startswith("_") and sources and not self._whole(sources[0]):
            self.builder.operation(node.name, kind or name, reads, [], workload, known=bool(kind), counted=counted)
            self.builder.write_over(node.name, sources[0])
            return
        self.builder.operation(node.name, kind or name, reads, results, workload, known=bool(kind), counted=counted)

    def _whole(self, view: View) -> bool:
        """Whether it is all of a tensor that was computed here, so that to write over it makes another."""
        stored = self.builder.tensors[view.tensor]
        return stored.role == "computed" and not stored.parent and view.size == view.elements == stored.elements

    def _kind(self, node: Any, name: str, sources: Sequence[View], out: str) -> tuple[str, list[Use], Any, bool]:
        """What kind of operation it is ('' for one that is not known), what it reads, and its workload."""
        everything = [use(view) for view in sources]
        if name in CREATES or name in ("fill_", "zero_"):
            return "creation", [], None, True
        if name in _MAKERS:
            kind, operands, workload, counted = _MAKERS[name](self._view, node, out)
            extra = [view for view in sources if view not in operands]
            reads = [*(use(view) for view in operands), *(use(view, extra=True) for view in extra)]
            return kind, reads, workload, counted
        if name == "scaled_dot_product_attention":
            return self._attention(node, sources, out)
        if name in CHOOSES:  # all indices may be the same
            row = sources[0].shape[-1] if name == "embedding" and sources[0].shape else 1
            return "indexing", [use(sources[0], row), *(use(view) for view in sources[1:])], None, True
        if name == "where":  # of each place one of the two
            return "elementwise", [*map(use, sources[:1]), *map(masked, sources[1:])], None, True
        if name in ("constant_pad_nd", "pad"):  # a negative one cuts
            size = prod(_shape(node.meta["val"]))
            return "elementwise", [use(view, size) for view in sources], None, True
        if name.removesuffix("_") == "copy":
            return "elementwise", everything[1:], None, True
        if name in ("masked_fill", "triu", "tril"):
            return "elementwise", [*map(masked, sources[:1]), *everything[1:]], None, True
        if name in POOLS:
            return "pooling", [use(sources[0], _pooled(node, sources[0]))], None, True
        return kind_of(name), everything, None, True

    def _view(self, item: Any) -> View:
        return self.builder.views[item.name]

    def _attention(self, node: Any, sources: Sequence[View], out: str) -> tuple[str, list[Use], Any, bool]:
        q, k, v, *_ = sources
        arguments = dict(zip(("attn_mask", "dropout_p", "is_causal"), node.args[3:], strict=False)) | dict(node.kwargs)
        causal, mask = bool(arguments.get("is_causal", False)), arguments.get("attn_mask")
        if mask is not None:  # each key is taken to be seen by some query
            return "attention", [use(view) for view in sources], None, True
        m, n = q.shape[-2], k.shape[-2]
        seen = min(m, n) if causal else n
        reads = [use(q), use(k, k.elements * seen // n), use(v, v.elements * seen // n)]
        return "attention", reads, shapes.attention(q, k, v, out, causal), True


_Made = tuple[str, list[View], Any, bool]
_Look = Callable[[Any], View]


def _linear(look: _Look, node: Any, out: str) -> _Made:
    x, w = map(look, node.args[:2])
    return "product", [x, w], shapes.product(x, w, out, transposed=True), True


def _matmul(look: _Look, node: Any, out: str) -> _Made:
    a, b = map(look, node.args[:2])
    return "product", [a, b], shapes.product(a, b, out), True


def _added(look: _Look, node: Any, out: str) -> _Made:
    a, b = map(look, node.args[1:3])
    return "product", [a, b], shapes.product(a, b, out), True


def _einsum(look: _Look, node: Any, out: str) -> _Made:
    operands = [look(item) for item in node.args[1]]
    return "product", operands, shapes.einsum(node.args[0], operands, out), True


def _convolution(look: _Look, node: Any, out: str) -> _Made:
    names = ["input", "weight", "bias", "stride", "padding", "dilation"]
    names += ["transposed", "output_padding"] * (_name(node) == "convolution") + ["groups"]
    arguments = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
    x, w = look(arguments["input"]), look(arguments["weight"])
    if arguments.get("transposed"):
        return "convolution", [x, w], None, False
    stride, dilation = _numbers(arguments.get("stride", 1)), _numbers(arguments.get("dilation", 1))
    workload = shapes.convolution(x, w, out, stride, dilation, int(arguments.get("groups", 1)))
    return "convolution", [x, w], workload, False


_MAKERS: dict[str, Callable[[_Look, Any, str], _Made]] = {
    "linear": _linear,
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "__matmul__"), _matmul),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _added),
    "einsum": _einsum,
    **dict.fromkeys(CONVOLUTIONS, _convolution),
}


def _pooled(node: Any, x: View) -> int:
    names = ("input", "kernel_size", "stride", "padding")
    arguments = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
    value = node.meta["val"]
    out = _shape(value[0] if isinstance(value, tuple | list) else value)
    dims = {"1": 1, "2": 2, "3": 3}.get(next((c for c in _name(node) if c.isdigit()), "2"), 2)
    kernel = _spread(arguments["kernel_size"], dims)
    stride = _spread(arguments.get("stride") or kernel, dims)
    if len(node.args) > 4 or any(key in node.kwargs for key in ("dilation", "ceil_mode")):
        return min(prod(out), x.elements)
    return shapes.pooled(x, out, kernel, stride, _spread(arguments.get("padding", 0), dims))


def _spread(values: Any, dims: int) -> list[int]:
    numbers = _numbers(values)
    return numbers * dims if len(numbers) == 1 else numbers


def _numbers(values: Any) -> list[int]:
    return [int(x) for x in values] if isinstance(values, list | tuple) else [int(values)]


def _name(node: Any) -> str:
    target = node.target
    if isinstance(target, _Overload):
        return str(target._schema.name).rpartition("::")[2]
    return target.__name__ if isinstance(target, FunctionType | BuiltinFunctionType) else str(target)


def _nodes(items: Any) -> list[Any]:
    """All nodes in nested arguments."""
    if isinstance(items, _Node):
        return [items]
    if isinstance(items, dict):
        items = items.values()
    if isinstance(items, list | tuple) or (isinstance(items, Iterable) and not isinstance(items, str)):
        return [node for item in items for node in _nodes(item)]
    return []


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _Tensor)


def _shape(value: Any) -> Shape:
    try:
        return tuple(int(n) for n in value.shape)
    except Exception:
        raise InputError(f"audit: got a shape {value.shape} that is not fixed, expected whole numbers.") from None


def _stored(value: Any) -> tuple[Shape, str, int]:
    return _shape(value), _DTYPES.get(str(value.dtype).removeprefix("torch."), str(value.dtype)), value.dtype.itemsize


def _same_type(value: Any, view: View) -> bool:
    value = value[0] if isinstance(value, tuple | list) else value
    return _is_tensor(value) and _stored(value)[1] == view.dtype


_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8"}


def export(module: Any, inputs: tuple[Any, ...], named: dict[str, Any], name: str) -> Graph:
    """The graph of a module or function on example inputs.

    Raises
    ------
    InputError
        PyTorch is not installed, or cannot export it.
    """
    try:
        import torch
    except ImportError:
        raise InputError(
            "audit: PyTorch is not installed; run `pip install 'torch>=2.10'`, or give an ONNX file."
        ) from None
    if not isinstance(module, torch.nn.Module):
        function = module

        class Function(torch.nn.Module):
            def forward(self, *args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

        module = Function()
    try:
        program = torch.export.export(module.eval(), inputs, named or None, strict=False)
        if any("set_grad_enabled" in str(node.target) for node in program.graph.nodes):  # a part without gradients
            with torch.no_grad():  # where it is no graph of its own
                program = torch.export.export(module, inputs, named or None, strict=False)
    except Exception as error:
        why = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"audit: torch.export cannot follow {name}: {why[:300]}.") from None
    return read_program(program, name, _shared(program, inputs, named))


def _shared(program: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> dict[str, str]:
    """Placeholders that hold the same tensor as one before, a weight that is tied or an input given twice."""
    first: dict[int, str] = {}
    result: dict[str, str] = {}
    state = dict(program.state_dict) | dict(program.constants)
    arguments = _tensors((*inputs, *named.values()))
    for spec in program.graph_signature.input_specs:
        name = spec.arg.name if isinstance(spec.arg, _Named) else None
        tensor = state.get(spec.target) if spec.target is not None else (arguments.pop(0) if arguments else None)
        if name is None or tensor is None or not _is_tensor(tensor):
            continue
        seen = first.setdefault(tensor.untyped_storage()._cdata, name)
        if seen != name:
            result[name] = seen
    return result


def _tensors(items: Any) -> list[Any]:
    """Arguments in the order of the placeholders."""
    if isinstance(items, dict):
        items = list(items.values())
    if not isinstance(items, list | tuple):
        return [items]
    return [tensor for item in items for tensor in _tensors(item)]
