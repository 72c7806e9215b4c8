"""Write a node as the library call that a person would write, for regions left to the reference's own operators."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tools.codegen.ir.constant_tensors import Tables, only_number, table_text
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Called, DType, LaidOut, Node, Raw, Ref
from tools.codegen.ir.sizes import Attribute, Fact, Varying, express_by, literal

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "floordiv": "//",
    "truediv": "/",
    "mod": "%",
    "matmul": "@",
    "small_product": "@",
}

FUNCTIONS = {
    "linear": "F.linear", "gelu": "F.gelu", "relu": "F.relu", "silu": "F.silu", "mish": "F.mish", "elu": "F.elu", "selu": "F.selu",
    "leaky_relu": "F.leaky_relu", "softplus": "F.softplus", "hardtanh": "F.hardtanh", "hardswish": "F.hardswish",
    "hardsigmoid": "F.hardsigmoid", "tanh": "torch.tanh", "sigmoid": "torch.sigmoid", "exp": "torch.exp", "log": "torch.log",
    "sqrt": "torch.sqrt", "rsqrt": "torch.rsqrt", "abs": "torch.abs", "mm": "torch.mm", "bmm": "torch.bmm", "where": "torch.where",
    "maximum": "torch.maximum", "minimum": "torch.minimum", "cumsum": "torch.cumsum", "cumprod": "torch.cumprod", "cat": "torch.cat",
    "stack": "torch.stack", "flip": "torch.flip", "reciprocal": "torch.reciprocal", "neg": "torch.neg", "tril": "torch.tril",
    "triu": "torch.triu", "erf": "torch.erf", "folded_weight": "folded_weight", "folded_bias": "folded_bias",
    "channels_last_weight": "channels_last_weight", "norm_scale": "norm_scale",
}  # fmt: skip
"""Operators whose public function takes the same arguments in the same order."""

KEYWORDS = {
    "layer_norm": ("F.layer_norm", ("input", "normalized_shape", "weight", "bias", "eps", None)),
    "rms_norm": ("F.rms_norm", ("input", "normalized_shape", "weight", "eps")),
    "group_norm": ("F.group_norm", ("input", "num_groups", "weight", "bias", "eps", None)),
    "softmax": ("torch.softmax", ("input", "dim", "dtype")),
    "log_softmax": ("torch.log_softmax", ("input", "dim", "dtype")),
    "conv1d": ("F.conv1d", ("input", "weight", "bias", "stride", "padding", "dilation", "groups")),
    "conv2d": ("F.conv2d", ("input", "weight", "bias", "stride", "padding", "dilation", "groups")),
    "conv3d": ("F.conv3d", ("input", "weight", "bias", "stride", "padding", "dilation", "groups")),
    **{
        f"conv_transpose{rank}d": (
            f"F.conv_transpose{rank}d",
            ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"),
        )
        for rank in (1, 2, 3)
    },
    "max_pool2d": ("F.max_pool2d", ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode")),
    "avg_pool2d": ("F.avg_pool2d", ("input", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")),
    "batch_norm": ("F.batch_norm", ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")),
}
"""Operators whose public function reads better with keywords: the function, and the names of its arguments in ATen's order."""
TURNING = "channels_last"
"""Function of the emitted module that brings a tensor to that layout."""
IN_ORDER = "in_order"
"""Function of the emitted module that lays the dimensions of a tensor out in another order."""
BATCH_NORM_ORDER = (0, 3, 4, 1, 2, 5, 6, 7)
"""ATen gives weight and bias before the running statistics, the public function after them."""


class Caller:
    """Writes calls with the names that values have in `forward`."""

    def __init__(self, names: Callable[[Ref], str], facts: Sequence[Fact], device: str, attributes: Sequence[Attribute] = ()) -> None:
        """Take how values are named, which sizes and attributes can be read, and a tensor whose device serves for new ones."""
        self.names, self.facts, self.device, self.attributes = names, facts, device, attributes
        self.made: Callable[[], Iterable[Fact]] = tuple
        """Lists the sizes of what is made before a call."""

    def call(self, node: Node) -> str:
        """Write the call of one node; raises LoweringError where a number it needs cannot be told from shapes."""
        special = _called if isinstance(node, Called) else _laid_out if isinstance(node, LaidOut) else VIEW_CALLS.get(node.op)
        if special is not None:
            return special(self, node)
        args = [self.text(arg) for arg in node.args]
        if node.op in INFIX and len(args) == 2 and not node.kwargs and "_mode" not in node.overload:
            return f"{_operand(args[0])} {INFIX[node.op]} {_operand(args[1])}"
        keywords = [f"{key}={self.text(value)}" for key, value in node.kwargs.items() if value != Raw("torch.strided")]
        if node.op in KEYWORDS and not keywords:
            return self._with_keywords(node, args)
        if node.op == "rsub" and len(args) == 2:
            return f"{_operand(args[1])} - {_operand(args[0])}"
        if node.op == "pow" and len(args) == 2 and not keywords:
            return f"{_operand(args[0], ast.UnaryOp)} ** {_operand(args[1])}"
        name = FUNCTIONS.get(node.op) if not keywords or node.op == "gelu" else None
        return f"{name or 'torch.ops.' + node.target}({', '.join([*args, *keywords])})"

    def text(self, arg: Any) -> str:
        """Write one argument."""
        match arg:
            case Ref():
                text = self.names(arg)
            case DType():
                text = f"torch.{arg.name}"
            case Raw():
                text = f"{self.device}.device" if arg.text == "device" else arg.text
            case Varying():
                text = self._number(arg)
            case Tables():
                text = self._table(arg)
            case list():
                text = f"[{', '.join(self.text(item) for item in arg)}]"
            case tuple():
                text = f"({', '.join(self.text(item) for item in arg)}{',' if len(arg) == 1 else ''})"
            case float():
                text = literal(arg)
            case _:
                text = repr(arg)
        return text

    def _number(self, varying: Varying) -> str:
        text = express_by(varying.values, self.facts, self.attributes)
        text = text or next((size.text for size in self.made() if size.values == varying.values), None)
        if text is None:
            seen = ", ".join(map(str, dict.fromkeys(varying.values)))
            raise LoweringError(f"a number varies with the sizes ({seen}) and cannot be told from the shapes of the inputs")
        return text

    def _table(self, tables: Tables) -> str:
        text = table_text(tables, self.facts)
        if text is None:
            raise LoweringError("a table of numbers varies with the sizes and cannot be told from the shapes of the inputs")
        return text

    def _with_keywords(self, node: Node, args: list[str]) -> str:
        name, keys = KEYWORDS[node.op]
        if node.op == "batch_norm":
            args = [args[place] for place in BATCH_NORM_ORDER]
        pairs = [(key, arg) for key, arg in zip(keys, args, strict=False) if key is not None and not (arg == "None" and key != "weight")]
        words = [arg if key == "input" else f"{key}={arg}" for key, arg in pairs if not (key == "weight" and arg == "None")]
        return f"{name}({', '.join(words)})"


def _operand(text: str, *binding: type[ast.expr]) -> str:
    """Write what stands beside an infix operator: a number that is a formula of sizes, or of a `binding` kind, goes into parentheses."""
    return f"({text})" if isinstance(ast.parse(text, mode="eval").body, (ast.BinOp, *binding)) else text


def _shaped(name: str) -> Callable[[Caller, Node], str]:
    """A view with a list of sizes, as the reference gives it; reshape copies where a view would refuse."""

    def write(caller: Caller, node: Node) -> str:
        sizes = node.args[1] if len(node.args) > 1 else node.kwargs["size"]
        # without a size it is a number, which takes an empty list
        return f"{caller.text(node.args[0])}.{name}({', '.join(caller.text(size) for size in sizes) or '()'})"

    return write


def _pieces(name: str) -> Callable[[Caller, Node], str]:
    """A cut into pieces; where there is one it is taken out of its tuple."""

    def write(caller: Caller, node: Node) -> str:
        return _method(name)(caller, node) + ("[0]" if len(node.outputs) == 1 else "")

    return write


def _called(caller: Caller, node: Node) -> str:
    """Write the call of a function that is known by its name alone."""
    assert isinstance(node, Called)
    given = [*map(caller.text, node.args), *(f"{key}={caller.text(value)}" for key, value in node.kwargs.items())]
    return f"{node.path}({', '.join(given)})"


def _laid_out(caller: Caller, node: Node) -> str:
    """Write an operator with its channels last: a convolution's input brought there, its result taken as rows of channels."""
    assert isinstance(node, LaidOut)
    text = caller.call(Node(node.name, node.target, node.args, node.kwargs, node.outputs))
    source = caller.text(node.args[0])
    if node.copied:
        text = text.replace(f"({source}", f"({turned(source)}", 1)
    return text + as_rows(node.rank, node.leading)


def turned(text: str) -> str:
    """Write a tensor brought to channels last."""
    return f"{TURNING}({text})"


def as_rows(rank: int, leading: int = 1) -> str:
    """Write the view that takes channels which lie last as the last dimension."""
    return f".permute({', '.join(map(str, (*range(leading), *range(leading + 1, rank), leading)))})"


def _permute(caller: Caller, node: Node) -> str:
    return f"{caller.text(node.args[0])}.permute({', '.join(map(str, node.args[1]))})"


def _method(name: str) -> Callable[[Caller, Node], str]:
    def write(caller: Caller, node: Node) -> str:
        return f"{caller.text(node.args[0])}.{name}({', '.join(caller.text(arg) for arg in node.args[1:])})"

    return write


def _property(name: str) -> Callable[[Caller, Node], str]:
    return lambda caller, node: f"{caller.text(node.args[0])}.{name}"


def _reversed(name: str) -> Callable[[Caller, Node], str]:
    def write(caller: Caller, node: Node) -> str:
        dim = node.args[1]
        return f"{caller.text(node.args[0])}.flip({dim}).{name}({dim}).flip({dim})"

    return write


def _item(caller: Caller, node: Node) -> str:
    return f"{caller.text(node.args[0])}[{caller.text(node.args[1])}]"


def _numbers(caller: Caller, node: Node) -> str:
    """Fill with one number on the device: copying numbers to it waits, and cannot be captured as a CUDA graph."""
    keywords = ", ".join(f"{key}={caller.text(value)}" for key, value in node.kwargs.items())
    if alike := only_number(node):
        number, shape = alike
        return f"torch.full({shape}, {caller.text(number)}, {keywords})"
    return f"torch.tensor({caller.text(node.args[0])}, {keywords})"


def _chosen_number(caller: Caller, node: Node) -> str:
    codes, numbers, dtype = (caller.text(arg) for arg in node.args)
    return f"torch.tensor({numbers}, dtype={dtype}, device={codes}.device)[{codes}.long()]"


def _chunk_maxima(caller: Caller, node: Node) -> str:
    text, chunk = caller.text(node.args[0]), node.args[1]
    return f'F.pad({text}, (0, -{text}.shape[-1] % {chunk}), value=float("-inf")).unflatten(-1, (-1, {chunk})).amax(-1)'


def _topk_of_chunks(caller: Caller, node: Node) -> str:
    return f"torch.topk({caller.text(node.args[0])}, {caller.text(node.args[2])})"


def _kept_of_chunks(caller: Caller, node: Node) -> str:
    text, row, least, number = (caller.text(node.args[place]) for place in (0, 1, 3, 4))
    return f"{text}.masked_fill({row} < {least}, {number})" if node.args[7] else f"torch.where({row} >= {least}, {text}, {number})"


def _turned_bits(caller: Caller, node: Node) -> str:
    """Write floats as whole numbers in their order, or those as floats: lower bits of negative numbers are turned around."""
    text = caller.text(node.args[0])
    if node.op == "unsorted":
        return f"({text} ^ (({text} >> 31) & 0x7FFFFFFF)).view(torch.float32).to(torch.{node.outputs[0].dtype})"
    bits = f"({text}.float() + 0.0).view(torch.int32)"
    return f"torch.where({text} != {text}, 0x7FFFFFFF, {bits} ^ (({bits} >> 31) & 0x7FFFFFFF))"


def _segments(caller: Caller, node: Node) -> str:
    """Say of each number where its run begins and where it stops."""
    keys, count = (caller.text(arg) for arg in node.args)
    numbers = f"{keys}, torch.arange({count}, dtype={keys}.dtype, device={keys}.device), out_int32=True"
    return f"(torch.searchsorted({numbers}), torch.searchsorted({numbers}, right=True))"


def _by_segment(caller: Caller, node: Node) -> str:
    """Reduce by the sorted index, as if its runs were not known."""
    base, dim, keys, source = (caller.text(arg) for arg in node.args[:4])
    if node.args[4] == "sum":
        return f"{base}.index_add({dim}, {keys}, {source})"
    return f'{base}.index_reduce({dim}, {keys}, {source}, "{node.args[4]}")'


VIEW_CALLS: dict[str, Callable[[Caller, Node], str]] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _shaped("reshape")), "expand": _shaped("expand"),
    **{name: _method(name) for name in ("flatten", "unflatten", "squeeze", "expand_as")},
    **dict.fromkeys(("view_as", "reshape_as"), _method("reshape_as")),
    "permute": _permute, "transpose": _method("transpose"), "unsqueeze": _method("unsqueeze"), "chunk": _pieces("chunk"),
    "split": _pieces("split"), "split_with_sizes": _pieces("split"), "select": _method("select"), "t": _method("t"),
    "numpy_T": _property("T"), "mT": _property("mT"), "narrow": _method("narrow"),
    **{name: _pieces(name) for name in ("unbind", "tensor_split")},
    "broadcast_to": _shaped("expand"), "copy_": _method("copy_"),
    **dict.fromkeys(("numbers", "constant", "scalar_tensor"), _numbers), "bits": _method("view"),
    "cumsum_reversed": _reversed("cumsum"), "cumprod_reversed": _reversed("cumprod"),
    "chosen_number": _chosen_number, "chunk_maxima": _chunk_maxima, "topk_of_chunks": _topk_of_chunks, "kept_of_chunks": _kept_of_chunks,
    "segments": _segments, "by_segment": _by_segment,
    "getitem": _item, "sortable": _turned_bits, "unsorted": _turned_bits,
}  # fmt: skip
"""How views, and what reads better as a method, are written."""
