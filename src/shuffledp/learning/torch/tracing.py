# pyright: reportMissingImports=false, reportUnknownParameterType=false
"""Modules of one's own on the fast path: their forward is traced, and every operation must keep examples apart.

What is run afterwards is the traced graph itself, not the forward it came from. So a forward that would do something
else at its next call changes nothing: each output row is computed by operations that are known to look at one row.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from shuffledp.learning.torch.layers import ROW_BY_ROW, supported

_ELEMENTWISE = {
    torch.relu, torch.tanh, torch.sigmoid, torch.exp, functional.relu, functional.gelu, functional.silu,
    functional.elu, functional.leaky_relu, functional.softplus, functional.tanh, functional.sigmoid,
    operator.add, operator.sub, operator.mul, operator.neg, torch.add, torch.sub, torch.mul,
}  # fmt: skip
"""Functions that give each number from the number in its own place, and fixed ones."""
_METHODS = {"relu", "tanh", "sigmoid", "exp", "add", "sub", "mul", "neg"}


def traced(module: nn.Module) -> nn.Module | None:
    """Return the module as a graph whose every operation keeps examples apart; None where that is not known.

    Parameters
    ----------
    module : nn.Module
        Any; one input. Operations that join two tensors, such as a residual connection, are not known to keep examples
        apart, since shapes may be spread over each other; such a module takes the slow path.
    """
    try:
        graph = fx.symbolic_trace(module)
    except Exception:  # a forward that asks about its input cannot be traced: whatever it raises, the slow path serves
        return None
    parts, used = dict(graph.named_modules()), list[str]()
    inputs = 0
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            inputs += 1
        elif node.op == "call_module":
            part = parts[str(node.target)]
            used.append(str(node.target))
            if not _keeps_rows(part) or len(node.args) != 1 or node.kwargs or not isinstance(node.args[0], fx.Node):
                return None
        elif node.op == "output":
            if not isinstance(node.args[0], fx.Node):
                return None
        elif not _alone(node):
            return None
    trained = [part for name in used for part in [parts[name]] if any(p.requires_grad for p in part.parameters())]
    numbers = [id(p) for part in trained for p in part.parameters() if p.requires_grad]
    wanted = {id(p) for p in module.parameters() if p.requires_grad}
    if inputs != 1 or len(set(numbers)) != len(numbers) or set(numbers) != wanted:
        return None
    return graph


def _keeps_rows(part: nn.Module) -> bool:
    """Whether one layer looks at one row at a time."""
    row = type(part) in ROW_BY_ROW and getattr(part, "start_dim", 1) >= 1
    return (row or supported(part)) and not getattr(part, "inplace", False)


def _alone(node: Any) -> bool:
    """Whether an operation that is no layer keeps examples apart."""
    if "out" in node.kwargs or node.kwargs.get("inplace"):
        return False
    given = [each for each in node.args if isinstance(each, fx.Node)]
    fixed = [each for each in node.args if not isinstance(each, fx.Node)]
    if node.target is torch.flatten or (node.op == "call_method" and node.target == "flatten"):
        start = fixed[0] if fixed else node.kwargs.get("start_dim", 0)
        return len(given) == 1 and isinstance(start, int) and start >= 1
    known = node.target in (_ELEMENTWISE if node.op == "call_function" else _METHODS)
    plain = all(isinstance(each, int | float) for each in fixed)
    return node.op in ("call_function", "call_method") and known and plain and len(given) == 1
