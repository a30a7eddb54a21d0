"""``utils.checkpoint`` with policies, operators of a program's own, and operators on lists."""

import contextlib

import torch
from helpers import attempt, section
from torch.library import custom_op
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts, detach_variable

section("checkpoint")
calls = []


def block(x, *, scale=1.0):
    calls.append(1)
    return (x.cos() * scale).relu()


for reentrant in (True, False):
    calls.clear()
    x = torch.zeros(3, requires_grad=True)
    out = checkpoint(block, x, use_reentrant=reentrant, **({} if reentrant else {"scale": 2.0}))
    out.sum().backward()
    print(reentrant, x.grad, len(calls))
x = torch.zeros(2, requires_grad=True)
attempt("keywords", lambda: checkpoint(block, x, use_reentrant=True, scale=2.0))
attempt("check", lambda: checkpoint(block, x, use_reentrant=False, determinism_check="some"))
print([t.requires_grad for t in detach_variable((x, torch.ones(1)))])


@contextlib.contextmanager
def said(word):
    print("    enter", word)
    yield
    print("    leave", word)


checkpoint(block, x, use_reentrant=False, context_fn=lambda: (said("first"), contextlib.nullcontext())).sum().backward()

section("selective")
asked = []


def policy(context, op, *args, **kwargs):
    asked.append((str(op), context.is_recompute))
    keep = op == torch.ops.aten.mm.default
    return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE


def product(x, w):
    return torch.mm(x, w).sigmoid()


for given in (policy, [torch.ops.aten.mm.default]):
    x, w = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    contexts = lambda given=given: create_selective_checkpoint_contexts(given)
    checkpoint(product, x, w, use_reentrant=False, context_fn=contexts).sum().backward()
    print(x.grad, w.grad)
print(asked)
print([p.name for p in CheckpointPolicy])
attempt("policy", lambda: create_selective_checkpoint_contexts(3))

section("operators of one's own")


@custom_op("scripts::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return x * by


print(scaled(torch.ones(2)), torch.ops.scripts.scaled(torch.ones(2), 3.0), scaled)
attempt("backward", lambda: scaled(torch.ones(2, requires_grad=True)).sum().backward())
attempt("meta", lambda: type(scaled._opoverload).__name__ and scaled(torch.ones(1)).shape)
scaled.register_fake(lambda x, by=2.0: torch.empty_like(x))
print(scaled(torch.empty(3, device="meta")).shape)
keep = lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
scaled.register_autograd(lambda ctx, g: (g * ctx.by, None), setup_context=keep)
x = torch.ones(2, requires_grad=True)
scaled(x, 5.0).sum().backward()
print(x.grad)
try:
    scaled(3)
except RuntimeError as error:
    print(str(error).splitlines()[:3])

section("lists")
numbers = lambda: [torch.tensor([[1.0, 4.0], [2.0, 2.0]]), torch.tensor([[0.5]])]
print(torch._foreach_clone(numbers()), torch._foreach_powsum(numbers()), torch._foreach_powsum(numbers(), 1))
print(torch._foreach_mm(numbers(), numbers()), torch._foreach_max(numbers()))
for wrong in (2.0, [2.0, 3.0]):
    try:
        torch._foreach_copy_(numbers(), wrong)
    except TypeError:
        print("refused")
