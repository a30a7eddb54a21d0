"""Trade time for memory: forget a block's intermediate values and compute them again in backward."""

from __future__ import annotations

import contextlib
import enum
from collections import defaultdict

from ..autograd.function import Function
from ..autograd.grad import backward
from ..autograd.graph import saved_tensors_hooks, surroundings
from ..autograd.mode import enable_grad, state
from ..errors import warn_user
from ..tensor import Tensor
from ._python_dispatch import TorchDispatchMode

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


def __dir__():
    return __all__


class CheckpointError(RuntimeError):
    """The recomputed block did not save the same tensors as the first time."""


def noop_context_fn():
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


_early_stop = True


@contextlib.contextmanager
def _as_around(contexts):
    with contextlib.ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context())
        yield


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """Whether recomputation stops as soon as everything that backward needs is there (the default)."""
    global _early_stop
    outer, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = outer


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Accepted: the error about a recomputation that went another way says here at once which tensor it was."""
    yield


class DefaultDeviceType:
    """The device whose random state is kept beside the CPU's when no argument says one."""

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._type


def detach_variable(inputs: tuple) -> tuple:
    """The tensors among ``inputs`` outside the graph, requiring gradients where they did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple([t.detach().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t for t in inputs])


def check_backward_validity(inputs) -> None:
    """Warn if no input requires gradients."""
    if not any(isinstance(t, Tensor) and t.requires_grad for t in inputs):
        warn_user("None of the inputs have requires_grad=True. Gradients will be None")


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    **kwargs,
):
    """``function(*args, **kwargs)``, whose intermediate values are computed again when backward needs them.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> y = rushlight.utils.checkpoint.checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False)
    """
    if use_reentrant is None:
        warn_user(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    frame = _Frame(function, args, kwargs, preserve, recompute_context, early_stop and _early_stop, determinism_check)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Run a Sequential (or a list of functions) in ``segments`` checkpointed pieces; the last one is kept as it is."""
    if use_reentrant is None:
        warn_user(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can "
            "pass "
            "use_reentrant=True."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments
    ends = [size * (i + 1) for i in range(segments - 1)]
    start = 0
    for end in ends:
        piece = _in_order(functions[start:end])
        input = checkpoint(piece, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
        start = end
    return _in_order(functions[start:])(input)


def _in_order(functions):
    def run(input):
        for function in functions:
            input = function(input)
        return input

    return run


class _Frame:
    """One checkpointed call: how many tensors it saved, and those tensors again once backward asked for one."""

    def __init__(self, function, args, kwargs, preserve, context, early_stop, determinism_check) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.context, self.early_stop, self.determinism_check = context, early_stop, determinism_check
        self.random = _random_state() if preserve else None
        self.around = [surrounding(function) for surrounding in surroundings]
        self.described: list = []  # (shape, dtype) of every tensor the first run saved
        self.again: dict = {}  # place -> tensor

    def pack(self, tensor):
        self.described.append((tuple(tensor.shape), tensor.dtype))
        return len(self.described) - 1

    def unpack(self, place):
        if place not in self.again:
            self._recompute()
        # Used once, then forgotten; a graph that is kept computes it again.
        return self.again.pop(place)

    def _recompute(self):
        found = []

        def keep(tensor):
            found.append(tensor.detach())
            if self.early_stop and len(found) == len(self.described):
                raise _Enough
            return len(found) - 1

        hooks = saved_tensors_hooks(keep, found.__getitem__)
        around = _as_around(self.around)
        with enable_grad(), _restored(self.random), around, hooks, self.context, contextlib.suppress(_Enough):
            self.function(*self.args, **self.kwargs)
        if len(found) != len(self.described):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.described)}\nNumber of tensors "
                f"saved "
                f"during recomputation: {len(found)}."
            )
        if self.determinism_check == "default":
            self._check(found)
        self.again = dict(enumerate(found))

    def _check(self, found):
        for i, (t, (shape, dtype)) in enumerate(zip(found, self.described)):
            if tuple(t.shape) != shape or t.dtype is not dtype:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                    f"during the forward pass.\ntensor at position {i}:\nsaved metadata: shape {shape}, {dtype}\n"
                    f"recomputed metadata: shape {tuple(t.shape)}, {t.dtype}"
                )


# -- selective: some results are kept ----------------------------------------------------------------------------------


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result: kept, or computed again. Without a compiler, PREFER is MUST."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told beside the operator."""

    def __init__(self, *, is_recompute: bool, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation: bool = False):
    """For ``context_fn``: results of operators that the policy (or a list of them) wants are kept, others are not.

    >>> keep = lambda: rushlight.utils.checkpoint.create_selective_checkpoint_contexts([rushlight.ops.aten.mm.default])
    >>> x = rushlight.ones(2, 2, requires_grad=True)
    >>> f = lambda x: (x @ x).sigmoid()
    >>> y = rushlight.utils.checkpoint.checkpoint(f, x, use_reentrant=False, context_fn=keep)
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        for op in policy:
            if not hasattr(op, "overloadpacket"):
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.")
        policy = _keeping(policy)
    elif not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict = defaultdict(list)
    return _Keeping(policy, kept), _Reusing(kept)


def _keeping(operators):
    save, again = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE
    return lambda context, op, *args, **kwargs: save if op in operators else again


_NOT_ASKED = ("detach", "lift_fresh", "_local_scalar_dense")  # views and numbers, which cost nothing
_AGAIN = object()  # of a result that is computed again


class _Keeping(TorchDispatchMode):
    """The first run: ``kept`` has, for each operator, its results or _AGAIN in the order of its calls."""

    def __init__(self, policy, kept):
        super().__init__()
        self.policy, self.kept = policy, kept

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func._opname in _NOT_ASKED:
            return out
        wanted = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=out), func, *args, **kwargs)
        if isinstance(wanted, bool):
            wanted = CheckpointPolicy.MUST_SAVE if wanted else CheckpointPolicy.PREFER_RECOMPUTE
        saves = "RECOMPUTE" not in wanted.name
        self.kept[func].append(_outside(out) if saves else _AGAIN)
        return out


class _Reusing(TorchDispatchMode):
    """The recomputation: what was kept is not computed."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._opname in _NOT_ASKED:
            return func(*args, **(kwargs or {}))
        if not self.kept[func]:
            raise RuntimeError(
                f"{func} encountered during backward, but not found in storage: a checkpointed block with a selective "
                "policy can be run backward once, and must call the same operators again"
            )
        out = self.kept[func].pop(0)
        return func(*args, **(kwargs or {})) if out is _AGAIN else _outside(out)


def _outside(out):
    """A result without its place in the graph: it gets one again when it is used again."""
    if isinstance(out, Tensor):
        return out.detach()
    return type(out)([_outside(part) for part in out]) if isinstance(out, (tuple, list)) else out


class _Enough(Exception):
    """Raised inside a recomputation when everything needed is there."""


class CheckpointFunction(Function):
    """The older way: no graph at all in forward; backward runs the block again and differentiates it in place."""

    @staticmethod
    def forward(ctx, function, preserve, *args):
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            warn_user("None of the inputs have requires_grad=True. Gradients will be None")
        ctx.function, ctx.random = function, _random_state() if preserve else None
        ctx.around = [surrounding(function) for surrounding in surroundings]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if state.running is not None and state.running[1] is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for i, t in zip(ctx.places, ctx.saved_tensors):
            args[i] = t.detach().requires_grad_(t.requires_grad)
        with enable_grad(), _restored(ctx.random), _as_around(ctx.around):
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, None, *(a.grad if isinstance(a, Tensor) and a.is_leaf else None for a in args)


def _random_state():
    from .. import random

    return random.get_rng_state()


@contextlib.contextmanager
def _restored(random_state):
    """Replay the random numbers of the first run, then go on where the program was."""
    if random_state is None:
        yield
        return
    from .. import random

    now = random.get_rng_state()
    random.set_rng_state(random_state)
    try:
        yield
    finally:
        random.set_rng_state(now)


def get_device_states(*args) -> tuple[list[int], list]:
    """The GPUs that tensors among ``args`` lie on, and the states of their generators."""
    from .. import cuda

    devices = sorted({a.get_device() for a in args if isinstance(a, Tensor) and a.is_cuda})
    return devices, [cuda.get_rng_state(i) for i in devices]


def set_device_states(devices, states, *, device_type: str | None = None) -> None:
    """Put back what ``get_device_states`` found."""
    from .. import cuda

    for i, state_of_one in zip(devices, states):
        cuda.set_rng_state(state_of_one, i)
