"""A graph from an ONNX file. `onnx` is imported here alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from pebble.errors import InputError
from pebble.graphs import shapes
from pebble.graphs.graph import Builder, Graph, Shape, Use, View, masked, use

_VIEWS = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Expand", "Slice", "Dropout", "Cast"}
_KINDS = {
    "softmax": "Softmax LogSoftmax",
    "norm": "LayerNormalization BatchNormalization InstanceNormalization GroupNormalization RMSNormalization LRN "
    "LpNormalization SimplifiedLayerNormalization MeanVarianceNormalization",
    "reduction": "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp "
    "ReduceSumSquare GlobalAveragePool GlobalMaxPool ArgMax ArgMin CumSum TopK",
    "elementwise": "Add Sub Mul Div Pow Sqrt Exp Log Neg Abs Relu Gelu Sigmoid Tanh Erf Clip LeakyRelu Elu Selu Celu "
    "HardSwish HardSigmoid Softplus Softsign Mish PRelu Min Max Sum Mean Equal Less Greater LessOrEqual Not And Or Xor "
    "GreaterOrEqual Floor Ceil Round Sign Reciprocal Sin Cos Concat Tile Cast CastLike DepthToSpace SpaceToDepth Swish",
    "convolution": "ConvTranspose",
}
_KIND = {name: kind for kind, names in _KINDS.items() for name in names.split()}


def read_onnx(path: str) -> Graph:
    """The graph of an ONNX file.

    Raises
    ------
    InputError
        ``onnx`` is not installed, the file is none, or a shape is not fixed.
    """
    try:
        import onnx
    except ImportError:
        raise InputError("audit: onnx is not installed; run `pip install 'onnx>=1.16'`.") from None
    if not Path(path).is_file():
        raise InputError(f"audit: {path} is no file, expected model.onnx.")
    try:
        model = onnx.load(path, load_external_data=False)
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        raise InputError(f"audit: {path} is no ONNX file: {str(error)[:200]}.") from None
    return _Reader(onnx, model, Path(path).name).read()


class _Reader:
    def __init__(self, onnx: Any, model: Any, name: str) -> None:
        self.onnx, self.graph, self.builder = onnx, model.graph, Builder(name)
        values = (*self.graph.input, *self.graph.value_info, *self.graph.output)
        self.types = {value.name: value.type.tensor_type for value in values if value.type.HasField("tensor_type")}
        self.small: dict[str, Any] = {}

    def read(self) -> Graph:
        """All nodes, in their order."""
        for weight in self.graph.initializer:
            self._stored(weight.name, tuple(weight.dims), weight.data_type, "weight")
        for value in self.graph.input:
            if value.name not in self.builder.views:
                self._stored(value.name, self._shape(value.name), self._type(value.name), "input")
        for number, node in enumerate(self.graph.node):
            self._node(node, node.name or f"{node.op_type}_{number}")
        return self.builder.graph([v.name for v in self.graph.output if v.name in self.builder.views])

    def _shape(self, name: str) -> Shape:
        result = self.types.get(name)
        dims = [] if result is None else list(result.shape.dim)
        if result is None or not result.HasField("shape") or any(not dim.HasField("dim_value") for dim in dims):
            raise InputError(f"audit: the shape of {name!r} is not fixed, expected whole numbers for every dimension.")
        return tuple(dim.dim_value for dim in dims)

    def _type(self, name: str) -> int:
        return int(self.types[name].elem_type) if name in self.types else 1

    def _width(self, kind: int) -> tuple[str, int]:
        names = {"BFLOAT16": "bf16", "FLOAT16": "fp16", "FLOAT": "fp32", "FLOAT8E4M3FN": "fp8", "FLOAT8E5M2": "fp8"}
        name = self.onnx.TensorProto.DataType.Name(kind)
        if name in ("INT4", "UINT4", "FLOAT4E2M1"):
            raise InputError(f"audit: got values of type {name}, expected whole bytes: half bytes are not counted yet.")
        wide = {"DOUBLE": 8, "INT64": 8, "UINT64": 8, "FLOAT": 4, "INT32": 4, "UINT32": 4, "COMPLEX64": 8}
        narrow = {"FLOAT16": 2, "BFLOAT16": 2, "INT16": 2, "UINT16": 2, "COMPLEX128": 16}
        return names.get(name, name), (wide | narrow).get(name, 1)

    def _stored(self, name: str, shape: Shape, kind: int, role: str) -> None:
        dtype, width = self._width(kind)
        self.builder.tensor(name, shape, dtype, width, role)

    def _node(self, node: Any, name: str) -> None:
        builder, attributes = self.builder, self._attributes(node)
        sources = [builder.views[x] for x in node.input if x in builder.views]
        results = [x for x in node.output if x]
        if node.op_type in ("Constant", "ConstantOfShape", "Shape", "Size", "Range"):
            for result in results:  # known before it runs
                if result in self.types:
                    self._stored(result, self._shape(result), self._type(result), "weight")
                    builder.views[result] = replace(builder.views[result], elements=0)
            return
        first = sources[0] if sources else None
        if first is not None and node.op_type in _VIEWS and self._same(results[0], first):
            builder.view(results[0], first, self._shape(results[0]))
            return
        if first is not None and node.op_type == "Split":
            builder.pieces(results, first, [self._shape(result) for result in results])
            return
        kind, reads, workload, counted = self._kind(node, sources, attributes, self._shape(results[0]))
        made = [
            (result, self._shape(result), *self._width(self._type(result)))
            for result in results
            if result in self.types
        ]
        builder.operation(name, kind or node.op_type, reads, made, workload, known=bool(kind), counted=counted)

    def _same(self, result: str, view: View) -> bool:
        return result in self.types and self._width(self._type(result))[0] == view.dtype

    def _attributes(self, node: Any) -> dict[str, Any]:
        return {a.name: self.onnx.helper.get_attribute_value(a) for a in node.attribute}

    def _kind(
        self, node: Any, sources: Sequence[View], attributes: dict[str, Any], out: Shape
    ) -> tuple[str, list[Use], Any, bool]:
        everything, op = [use(view) for view in sources], node.op_type
        made = self._width(self._type(node.output[0]))[0]
        if op in ("MatMul", "Gemm"):
            a, b = sources[:2]
            if attributes.get("transA", 0):
                a = View(a.tensor, a.shape[::-1], a.dtype, a.elements)
            workload = shapes.product(a, b, made, transposed=bool(attributes.get("transB", 0)))
            return "product", [use(a), use(b), *(use(view, extra=True) for view in sources[2:])], workload, True
        if op == "Einsum":
            return "product", everything, shapes.einsum(attributes["equation"].decode(), sources, made), True
        if op == "Conv":
            x, w = sources[:2]
            dims = len(w.shape) - 2
            stride, dilation = attributes.get("strides", [1] * dims), attributes.get("dilations", [1] * dims)
            workload = shapes.convolution(x, w, made, stride, dilation, attributes.get("group", 1))
            return "convolution", [use(x), use(w), *(use(v, extra=True) for v in sources[2:])], workload, False
        if op in ("MaxPool", "AveragePool"):
            kernel = list(attributes["kernel_shape"])
            stride, pads = (
                list(attributes.get("strides", [1] * len(kernel))),
                attributes.get("pads", [0] * 2 * len(kernel)),
            )
            most = [max(pads[i], pads[i + len(kernel)]) for i in range(len(kernel))]
            plain = not any(key in attributes for key in ("dilations", "ceil_mode", "auto_pad"))
            read = shapes.pooled(sources[0], out, kernel, stride, most) if plain else prod(out)
            return "pooling", [use(sources[0], read)], None, True
        if op in ("Gather", "GatherElements", "GatherND"):  # all indices may be the same
            axis = attributes.get("axis", 0)
            row = prod(sources[0].shape[1:]) if op == "Gather" and axis == 0 else 1
            return "indexing", [use(sources[0], row), *everything[1:]], None, True
        if op == "Where":
            return "elementwise", [*everything[:1], *map(masked, sources[1:])], None, True
        if op == "Trilu":
            return "elementwise", [*map(masked, sources[:1]), *everything[1:]], None, True
        if op == "Pad":
            return "elementwise", [use(sources[0], prod(out)), *everything[1:]], None, True
        return _KIND.get(op, ""), everything, None, True
