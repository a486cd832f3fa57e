"""Compiled methods as operators of torch, for torch.compile and torch.export.

    torch.compile(model)          # one of its modules is fast.to_torch()

A traced graph has one node for the method, `sheaf::call`, and one for its gradients, `sheaf::back`. That is
for methods that are given tensors and give tensors of f32 with fixed extents. Others, and those that draw
while they are trained, are run between two graphs.
"""
import itertools
import threading
import weakref

import torch

# Runs that can be gone back from without being made again, of each module: gradients may never be asked for.
_KEPT = 2

_modules = weakref.WeakValueDictionary()  # by handle
_handles = itertools.count(1)
_lock = threading.Lock()  # any thread may run a graph


def compiling():
    """Whether torch traces this."""
    return _known is not None and torch.compiler.is_compiling()


def traced(module, columns):
    """What a graph has in place of a call."""
    drawn = module._draws and module.training
    if module._fixed is None or drawn or not all(isinstance(one, torch.Tensor) for one in columns):
        return _untraced(module, columns)
    shapes, joined = module._fixed
    outputs = torch.ops.sheaf.call(module._handle, list(columns),
                                   [module.get_parameter(path) for path in module._paths])
    return joined(outputs[:len(shapes)])


def register(module):
    """Makes a module one that graphs can name."""
    module._handle, module._held = next(_handles), {}
    _modules[module._handle] = module


def _module_of(handle):
    try:
        return _modules[handle]
    except KeyError:
        raise RuntimeError("the graph calls a compiled method that is not in this process: it belongs to the object "
                           "that to_torch() gave") from None


def _run(module, columns):
    return module._run(columns)


def _call(handle, inputs, weights):
    module = _module_of(handle)
    call = module._call(inputs, [])
    held, tensors = call.run()
    with _lock:
        module._held[serial := next(_handles)] = call, held
        while len(module._held) > _KEPT:
            del module._held[next(iter(module._held))]
    return [*tensors, torch.tensor([serial, call.step, call.version])]


def _call_shapes(handle, inputs, weights):
    shapes, _ = _module_of(handle)._fixed
    count = inputs[0].shape[0]
    return [inputs[0].new_empty((count, *shape), dtype=torch.float32) for shape in shapes] + [
        inputs[0].new_empty(3, dtype=torch.int64)]


def _back(handle, ticket, arriving, inputs, weights):
    """Gradients of the inputs that are floats, then of the weights."""
    module = _module_of(handle)
    serial, step, version = ticket.tolist()
    with _lock:
        call, held = module._held.pop(serial, (None, None))
    if call is None:
        call = module._call(inputs, [], step)
        held, _ = call.run()
        if call.version != version:
            raise RuntimeError("the weights have changed since these results were computed: the gradients are of what "
                               "they were")
    floats = [one.is_floating_point() for one in inputs]
    gradients = call.back(held, arriving, floats + [True] * len(weights))
    wanted = [one for one, real in zip(gradients, floats) if real] + list(gradients[len(inputs):])
    return [one.to_dense() if one.is_sparse else one.clone() for one in wanted]


def _back_shapes(handle, ticket, arriving, inputs, weights):
    return [torch.empty(one.shape, dtype=one.dtype) for one in (*(x for x in inputs if x.is_floating_point()), *weights)]


def _keep(ctx, inputs, output):
    ctx.handle, columns, weights = inputs
    ctx.count = len(columns)
    ctx.save_for_backward(output[-1], *columns, *weights)


def _backward(context, arriving):
    ticket, *saved = context.saved_tensors
    columns, weights = saved[:context.count], saved[context.count:]
    gradients = iter(torch.ops.sheaf.back(context.handle, ticket, arriving[:-1], columns, weights))
    return (None, [next(gradients) if one.is_floating_point() else None for one in columns],
            [next(gradients) for _ in weights])


def _register():
    """With the torch that there is; None before 2.4."""
    if not hasattr(getattr(torch, "library", None), "custom_op"):
        return None
    call = torch.library.custom_op("sheaf::call", _call, mutates_args=(),
                                   schema="(int handle, Tensor[] inputs, Tensor[] weights) -> Tensor[]")
    call.register_fake(_call_shapes)
    call.register_autograd(_backward, setup_context=_keep)
    back = torch.library.custom_op(
        "sheaf::back", _back, mutates_args=(),
        schema="(int handle, Tensor ticket, Tensor?[] arriving, Tensor[] inputs, Tensor[] weights) -> Tensor[]")
    back.register_fake(_back_shapes)
    return torch.compiler.disable(_run)


_known = _register()


def _untraced(module, columns):
    return _known(module, columns)
