"""How one module is cut: which way its parameters lie, and what is done to its inputs and outputs."""

from __future__ import annotations

from ..dtensor import DTensor, distribute_module, distribute_tensor
from ..placement_types import Replicate, Shard

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel",
]  # fmt: skip


class ParallelStyle:
    """A way to cut a module."""

    src_data_rank: int | None = 0

    def _apply(self, module, device_mesh):
        raise NotImplementedError


class ColwiseParallel(ParallelStyle):
    """A Linear cut by outputs, an Embedding by columns: every rank computes some of the features."""

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output

    def _apply(self, module, device_mesh):
        from ....nn import Embedding, Linear

        if isinstance(module, Linear):
            lay = {"weight": Shard(0), "bias": Shard(0)}
        elif isinstance(module, Embedding):
            lay = {"weight": Shard(1)}
        else:
            raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")
        return _cut(self, module, device_mesh, lay)

    def __repr__(self) -> str:
        return _text(self, "input_layouts", "output_layouts", "use_local_output")


class RowwiseParallel(ParallelStyle):
    """A Linear cut by inputs, an Embedding by rows: every rank has a part of the sum."""

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.desired_input_layouts: tuple = (Shard(-1),)
        self.use_local_output = use_local_output

    def _apply(self, module, device_mesh):
        from ....nn import Embedding, Linear

        if isinstance(module, Linear):
            self.desired_input_layouts = (Shard(-1),)
            lay = {"weight": Shard(1), "bias": Replicate()}
        elif isinstance(module, Embedding):
            self.desired_input_layouts = (Replicate(),)
            lay = {"weight": Shard(0)}
        else:
            raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")
        return _cut(self, module, device_mesh, lay)

    def __repr__(self) -> str:
        return _text(self, "input_layouts", "output_layouts", "use_local_output")


class SequenceParallel(ParallelStyle):
    """A normalization or dropout of which every rank has a part of the sequence; parameters are replicated."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module, device_mesh):
        def enter(module, inputs, mesh):
            x = inputs[0]
            if isinstance(x, DTensor):
                return (x.redistribute(mesh, self.sequence_sharding), *inputs[1:])
            return (DTensor.from_local(x, mesh, self.sequence_sharding), *inputs[1:])

        leave = lambda module, output, mesh: output.to_local() if self.use_local_output else output
        return distribute_module(module, device_mesh, None, enter, leave)

    def __repr__(self) -> str:
        dim = self.sequence_sharding[0].dim
        return f"{type(self).__name__}(sequence_dim={dim}, use_local_output={self.use_local_output})"


class PrepareModuleInput(ParallelStyle):
    """Inputs that are parts become DTensors, laid as the module wants them."""

    def __init__(
        self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None, use_local_output: bool = False,
    ):  # fmt: skip
        self.input_layouts, self.desired_input_layouts = _tuple(input_layouts), _tuple(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        _check_lengths(self.input_layouts, self.desired_input_layouts, "input_layouts", "desired_input_layouts")
        if len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _apply(self, module, device_mesh):
        def enter(module, args, kwargs):
            if self.input_layouts is not None:
                if len(args) != len(self.input_layouts):
                    raise ValueError("module inputs and input_layouts should have same length!")
                wanted = zip(args, self.input_layouts, self.desired_input_layouts)
                args = tuple([_laid(x, device_mesh, a, b, self.use_local_output) for x, a, b in wanted])
            for name in kwargs.keys() & self.desired_input_kwarg_layouts.keys():
                layouts = self.input_kwarg_layouts.get(name), self.desired_input_kwarg_layouts[name]
                kwargs = {**kwargs, name: _laid(kwargs[name], device_mesh, *layouts, self.use_local_output)}
            return args, kwargs

        module.register_forward_pre_hook(enter, with_kwargs=True)
        return module

    def __repr__(self) -> str:
        names = ("input_layouts", "desired_input_layouts", "input_kwarg_layouts", "desired_input_kwarg_layouts")
        return _text(self, *names, "use_local_output")


class PrepareModuleOutput(ParallelStyle):
    """Outputs that are parts become DTensors, laid as what comes after wants them."""

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output: bool = True):
        self.output_layouts, self.desired_output_layouts = _tuple(output_layouts), _tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        _check_lengths(self.output_layouts, self.desired_output_layouts, "output_layouts", "desired_output_layouts")

    def _apply(self, module, device_mesh):
        def leave(module, inputs, outputs):
            given = outputs if isinstance(outputs, tuple) else (outputs,)
            if len(given) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            wanted = zip(given, self.output_layouts, self.desired_output_layouts)
            made = tuple([_laid(x, device_mesh, a, b, self.use_local_output) for x, a, b in wanted])
            return made if isinstance(outputs, tuple) else made[0]

        module.register_forward_hook(leave)
        return module

    def __repr__(self) -> str:
        return _text(self, "output_layouts", "desired_output_layouts", "use_local_output")


class PrepareModuleInputOutput(ParallelStyle):
    """Both ``PrepareModuleInput`` and ``PrepareModuleOutput``."""

    def __init__(
        self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None, use_local_input: bool = False, output_layouts, desired_output_layouts,
        use_local_output: bool = True,
    ):  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )  # fmt: skip

    def _apply(self, module, device_mesh):
        return self.prepare_module_output._apply(self.prepare_module_input._apply(module, device_mesh), device_mesh)


def _cut(style, module, mesh, lay: dict):
    """Lay the parameters out, and what goes in and comes out of the module."""
    from ....nn.parameter import Parameter

    def partition(name, part, mesh):
        for key, p in part._parameters.items():
            if p is not None and not isinstance(p, DTensor):
                laid = distribute_tensor(p.detach(), mesh, [lay[key]], src_data_rank=style.src_data_rank)
                part._parameters[key] = Parameter(laid, p.requires_grad)

    def enter(module, inputs, mesh):
        return (_laid(inputs[0], mesh, style.input_layouts[0], style.desired_input_layouts[0]), *inputs[1:])

    def leave(module, output, mesh):
        output = output.redistribute(placements=style.output_layouts)
        return output.to_local() if style.use_local_output else output

    return distribute_module(module, mesh, partition, enter, leave)


def _laid(x, mesh, layout, desired, local: bool = False):
    """An input or output as a DTensor that lies as ``desired``; what has no layout stays as it is."""
    if layout is None:
        return x
    if not isinstance(x, DTensor) or _is_own_part(x, mesh):
        x = DTensor.from_local(x, mesh, (layout,))
    if desired is not None:
        x = x.redistribute(mesh, (desired,))
    return x.to_local() if local else x


def _is_own_part(x, mesh) -> bool:
    """Is it what ``to_local`` gives in a process with several devices of the mesh: spread over those alone?"""
    return x._array.grid != mesh.grid and x._array.grid == mesh.part().grid


def _tuple(layouts):
    return layouts if layouts is None or isinstance(layouts, (tuple, list)) else (layouts,)


def _check_lengths(given, desired, first: str, second: str) -> None:
    if given is not None:
        if desired is None:
            raise AssertionError("desired module inputs should not be None!")
        if len(given) != len(desired):
            raise AssertionError(f"{first} and {second} should have same length!")


def _text(style, *names: str) -> str:
    return f"{type(style).__name__}({', '.join(f'{name}={getattr(style, name)}' for name in names)})"
