"""``PipelineStage``: a part of a model, what comes into it and what goes out.

Parts of a batch are numbered. What a stage computes of a part goes to the next stage; its gradient comes back from
there. The first time, the shapes go ahead; from then on both sides know them.
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Any

from ...autograd.grad import backward
from ...autograd.in_two import inputs_first
from ...ops.public import PUBLIC
from ...tensor import Tensor
from ..objects import recv_objects, send_objects
from ..point_to_point import irecv, isend
from ..world import ProcessGroup, the

__all__ = ["PipelineStage"]


class PipelineStage:
    """Stage ``stage_index`` of ``num_stages``, whose module is ``submodule``; stages go round the group's processes."""

    def __init__(
        self,
        submodule,
        stage_index: int,
        num_stages: int,
        device,
        input_args=None,
        output_args=None,
        output_grads=None,
        input_grads=None,
        group: ProcessGroup | None = None,
        dw_builder=None,
        get_mesh=None,
    ):
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if dw_builder is not None or get_mesh is not None:
            raise NotImplementedError("PipelineStage: dw_builder and get_mesh are not built yet")
        if type(submodule).__name__ == "DistributedDataParallel":
            raise NotImplementedError(
                "PipelineStage: a stage that is a DistributedDataParallel is not built yet; average the gradients of "
                "its parameters after step()"
            )
        self.submod, self.stage_index, self.num_stages, self.device = submodule, stage_index, num_stages, device
        self.group = the(group)
        self.group_rank, self.group_size = self.group.rank(), self.group.size()
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.has_backward = False
        self.rank_of = lambda stage: stage % self.group_size  # the process that has a stage
        self.neighbours: dict[int, PipelineStage] = {}  # the stages of this process, by their numbers
        self._known: dict = {}  # (direction, part) -> shapes and dtypes of what goes over
        self.clear_runtime_states()

    @property
    def is_first(self) -> bool:
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        return self.stage_index == self.num_stages - 1

    def clear_runtime_states(self) -> None:
        """Forget the parts of the last batch."""
        self.inputs: dict[int, list[Tensor]] = {}
        self.outputs: dict[int, Any] = {}
        self.output_chunks: list = []
        self._rest: dict = {}  # what carries the gradients of parameters, by part
        self._handed: dict = {}  # what a stage of this process has for this one: (direction, part) -> tensors

    # -- one part ------------------------------------------------------------------------------------------------------

    def forward_one_chunk(self, index: int, args: tuple, kwargs: dict | None = None) -> Any:
        """Compute part ``index``: of ``args`` in the first stage, of what the stage before sent in the others."""
        if not self.is_first:
            args = tuple(self._received(index))
            self.inputs[index] = list(args)
        output = self.submod(*args, **(kwargs or {}))
        tensors = [output] if isinstance(output, Tensor) else list(output)
        if self.is_last:
            self.output_chunks.append(output)
        else:
            self._send(1, index, [t.detach() for t in tensors], [t.requires_grad for t in tensors])
        if self.has_backward:
            self.outputs[index] = tensors
        return output

    def backward_one_chunk(self, index: int, loss: Tensor | None = None) -> None:
        """Carry the gradients of part ``index`` through this stage, and give those of its inputs to the one before."""
        inputs, outputs, gradients = self._at_end(index, loss)
        if outputs:
            backward(outputs, gradients)
        self._send_back(index, inputs, [t.grad for t in inputs])

    def backward_input_one_chunk(self, index: int, loss: Tensor | None = None) -> None:
        """Only what the stage before waits for; ``backward_weight_one_chunk`` does the rest."""
        inputs, outputs, gradients = self._at_end(index, loss)
        found: list = [None] * len(inputs)
        if inputs and outputs:
            found, self._rest[index] = inputs_first(outputs, gradients, inputs)
        elif outputs:
            self._rest[index] = partial(backward, outputs, gradients)
        self._send_back(index, inputs, found)

    def backward_weight_one_chunk(self, index: int) -> None:
        """The gradients of this stage's parameters for part ``index``, whose inputs' gradients are gone already."""
        rest = self._rest.pop(index, None)
        if rest is not None:
            rest()

    def _at_end(self, index: int, loss: Tensor | None) -> tuple[list, list, list]:
        """(inputs, outputs, gradients of the outputs) of part ``index``: of what has gradients."""
        inputs = [t for t in self.inputs.pop(index, []) if t.requires_grad]
        outputs = [t for t in self.outputs.pop(index) if t.requires_grad]
        if self.is_last:
            return inputs, [loss], [None]
        return inputs, outputs, self._gradients(index, outputs) if outputs else []

    def _send_back(self, index: int, inputs: list[Tensor], found: list) -> None:
        if inputs:
            self._send(-1, index, [PUBLIC["zeros_like"](t) if g is None else g for t, g in zip(inputs, found)])

    def scale_grads(self, factor: int) -> None:
        """Divide all gradients: the mean over the parts, not the sum."""
        if factor != 1:
            for p in self.submod.parameters():
                if p.grad is not None:
                    p.grad.div_(factor)

    # -- what goes over ------------------------------------------------------------------------------------------------

    def _rank(self, steps: int) -> int:
        return self.rank_of(self.stage_index + steps)

    def _send(self, steps: int, index: int, tensors: list[Tensor], needs_gradient=()) -> None:
        """Give part ``index`` to the stage so many ``steps`` on, in another process or in this one."""
        near = self.neighbours.get(self.stage_index + steps)
        if near is not None:
            needs = needs_gradient or repeat(False)
            near._handed[steps, index] = [t.requires_grad_(needed) for t, needed in zip(tensors, needs)]
            return
        if steps == 1:
            self._announce(index, tensors, needs_gradient)
        for t in tensors:
            isend(t, group=self.group, group_dst=self._rank(steps), tag=self._tag(steps))

    def _tag(self, steps: int, other: int = 0) -> int:
        """Two processes may have several stages each: what goes between two of these has a number of its own."""
        return 4 * (self.stage_index + other) + steps + 1

    def _announce(self, index: int, tensors: list[Tensor], needs_gradient) -> None:
        about = [(tuple(t.shape), t.dtype, needs) for t, needs in zip(tensors, needs_gradient)]
        known = self._known.get(("to", index))
        if known is None:
            self._known["to", index] = about
            send_objects([about], None, self.group, self._tag(0), self._rank(1))
        elif [a[:2] for a in known] != [a[:2] for a in about]:
            raise RuntimeError(
                f"PipelineStage {self.stage_index}: the outputs of part {index} were {_shapes(known)} in the first "
                f"step and are {_shapes(about)} now; make new stages for batches of another size"
            )

    def _received(self, index: int) -> list[Tensor]:
        handed = self._handed.pop((1, index), None)
        if handed is not None:
            return [t.requires_grad_(t.requires_grad and self.has_backward) for t in handed]
        known = self._known.get(("from", index))
        if known is None:
            box: list = [None]
            recv_objects(box, None, self.group, self._tag(0, -1), self._rank(-1))
            known = self._known["from", index] = box[0]
        tensors = [PUBLIC["empty"](shape, dtype=dtype, device=self.device) for shape, dtype, _ in known]
        for t in tensors:
            irecv(t, group=self.group, group_src=self._rank(-1), tag=self._tag(1, -1)).wait()
        for t, (_, _, needs_gradient) in zip(tensors, known):
            t.requires_grad_(needs_gradient and self.has_backward)
        return tensors

    def _gradients(self, index: int, outputs: list[Tensor]) -> list[Tensor]:
        handed = self._handed.pop((-1, index), None)
        if handed is not None:
            return handed
        gradients = [PUBLIC["empty_like"](t).detach() for t in outputs]
        for gradient in gradients:
            irecv(gradient, group=self.group, group_src=self._rank(1), tag=self._tag(-1, 1)).wait()
        return gradients


def _shapes(about: list) -> str:
    return ", ".join(f"{list(shape)} {dtype}" for shape, dtype, _ in about)
