"""Hooks, retained and accumulated gradients, saved tensors, anomalies, in-place rules, names of nodes, errors."""

import threading
import warnings

import torch
from helpers import attempt, section
from torch.autograd.graph import (
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
    saved_tensors_hooks,
)


def leaf(*values):
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


section("errors of backward")
a = leaf()
attempt("not a scalar", a.backward)
attempt("no graph", torch.ones(()).backward)
attempt("shape of the gradient", (a * 2).backward, torch.ones(3))
attempt("type of the gradient", (a * 2).backward, 3)
attempt("no inputs", torch.autograd.grad, (a * 2).sum(), [])
attempt("no inputs", torch.autograd.backward, (a * 2).sum(), inputs=[])
attempt("unused", torch.autograd.grad, (a * 2).sum(), leaf())
attempt("unused allowed", torch.autograd.grad, (a * 2).sum(), leaf(), allow_unused=True)
attempt("unused made", torch.autograd.grad, (a * 2).sum(), leaf(), materialize_grads=True)
attempt("contradiction", torch.autograd.grad, (a * 2).sum(), a, allow_unused=False, materialize_grads=True)
y = (a * a).sum()
y.backward()
attempt("twice", y.backward)
attempt("integers", torch.tensor([1, 2]).requires_grad_)
attempt("flag of a computed tensor", (a * 2).requires_grad_, False)

section("in place")
attempt("leaf", a.add_, 1)
attempt("view of a leaf", a[:1].add_, 1)
y = a.exp()
y.add_(1)
attempt("saved output", y.sum().backward)
w = leaf()
y = a * 2
z = y * w
y.add_(1)
attempt("saved input", z.sum().backward)
q = torch.ones(2)
z = q * w
q.add_(1)
attempt("saved constant", z.sum().backward)
z = w * w
with torch.no_grad():
    w.add_(1)
attempt("saved leaf", z.sum().backward)
z = w * w
increment_version(w)
attempt("counted by hand", z.sum().backward)
attempt("one of several views", torch.split(a * 2, 1)[0].add_, 1)

section("hooks of tensors")
attempt("no gradient", torch.ones(2).register_hook, print)
attempt("no gradient", torch.ones(2).retain_grad)
attempt("not a leaf", (a * 2).register_post_accumulate_grad_hook, print)
attempt("no gradient", torch.ones(2).register_post_accumulate_grad_hook, print)
a = leaf()
a.register_hook(lambda g: print("   first", g))
handle = a.register_hook(lambda g: g * 2)
a.register_hook(lambda g: print("   third", g))
a.register_post_accumulate_grad_hook(lambda p: print("   accumulated", p.grad))
(a * 2).sum().backward()
handle.remove()
a.grad = None
(a * 2).sum().backward()
print(torch.autograd.grad((a * 2).sum(), a))
(a * 3).sum().backward(inputs=[a])
c = a * 2
(c * 3).sum().backward(inputs=[c])
print(c.grad, c.retains_grad)
a = leaf()
for label, result in (("another size", torch.ones(3)), ("a number", 3)):
    c = a * 2
    c.register_hook(lambda g, result=result: result)
    attempt(label, c.sum().backward)
c = a * 2
c.retain_grad()
c.register_hook(lambda g: g * 10)
c.sum().backward()
print(c.grad, c.retains_grad, a.retains_grad, a.retain_grad())
c = a * 2
c.retain_grad()
c.register_hook(lambda g: print("   old value", g))
c.mul_(3)
c.register_hook(lambda g: print("   new value", g))
c.sum().backward()
print(c.grad)
base = a * 2
base.retain_grad()
view = base[:1]
view.retain_grad()
view.mul_(5)
base.sum().backward()
print(base.grad, view.grad)

section("hooks of nodes")
y = a * 2
y.grad_fn.register_prehook(lambda g: print("   before", g))
y.grad_fn.register_hook(lambda inputs, outputs: print("   after", inputs, outputs))
print(torch.autograd.grad(y.sum(), y, retain_graph=True))
print(torch.autograd.grad(y.sum(), a))
b, c = leaf(), leaf(3.0, 4.0)
for mode in ("all", "any"):
    handle = register_multi_grad_hook([b, c], lambda g, mode=mode: print("  ", mode, g), mode=mode)
    (b * c).sum().backward()
    (b * 2).sum().backward()
    handle.remove()
    (b * c).sum().backward()
attempt("mode", register_multi_grad_hook, [b], print, mode="some")

section("names")
y = (a * b).sum()
node = y.grad_fn
print(node.name(), node.metadata, [n.name() for n, _ in node.next_functions])
print(
    [n.name() for n, _ in node.next_functions[0][0].next_functions],
    y.grad_fn.next_functions[0][0].next_functions[0][0].variable is a,
)
u, v = (a * 2).unbind()
print(u.grad_fn.name(), u.output_nr, v.output_nr, isinstance(node, torch.autograd.graph.Node))
edge = get_gradient_edge(u)
print(edge.node.name(), edge.output_nr, get_gradient_edge(a).node.name())
attempt("no edge", get_gradient_edge, torch.ones(2))
y = a * 2
attempt("grad at an edge", torch.autograd.grad, y.sum(), get_gradient_edge(y))

section("accumulation")
a = leaf()
(a * 2).sum().backward()
first = a.grad
(a * 3).sum().backward()
print(first is a.grad, first, first._version)
a.grad = None
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    (a * a * a).sum().backward(create_graph=True)
    print(a.grad)
    (a * a * a).sum().backward(create_graph=True)
print(a.grad)
b, c = leaf(), leaf()
(b + c).sum().backward()
b.grad.zero_()
print(c.grad)

section("saved tensors")
with saved_tensors_hooks(lambda t: (print("   pack", t), t * 1)[1], lambda t: (print("   unpack", t), t)[1]):
    y, z = b * c, (b * 2).sum()
y.sum().backward()
z.backward()
with saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
    y = b.exp() * c
(g,) = torch.autograd.grad(y.sum(), b, create_graph=True)
print(g, torch.autograd.grad(g.sum(), (b, c)))
with disable_saved_tensors_hooks("not here"):
    attempt("disabled", saved_tensors_hooks(print, print).__enter__)
with saved_tensors_hooks(lambda t: t, lambda t: 3):
    y = b * c
attempt("unpacked to a number", y.sum().backward)
with saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
    attempt("packed in place", lambda: b * c)
with torch.autograd.graph.save_on_cpu():
    y = b * c
y.sum().backward()

section("anomalies")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with torch.autograd.detect_anomaly():
        y = torch.sqrt(torch.zeros(2, requires_grad=True)) * 0
        try:
            y.sum().backward()
        except RuntimeError as error:
            print(error)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y = torch.sqrt(torch.zeros(2, requires_grad=True)) * 0
        y.sum().backward()
        y = b.exp()
        y.add_(1)
        try:
            y.sum().backward()
        except RuntimeError as error:
            print(error)
messages = [str(w.message) for w in caught if w.category is UserWarning]
print(len(messages), messages[0], [m.splitlines()[0] for m in messages[1:]])
print(all("y = torch.sqrt" in m or "y = b.exp()" in m for m in messages[1:]), torch.is_anomaly_enabled())

section("inference mode and threads")
with torch.inference_mode():
    i = torch.ones(2)
    print((i * b).requires_grad, torch.is_inference_mode_enabled())
    i.add_(1)
attempt("saved", lambda: i * b)
attempt("written", i.add_, 1)
attempt("required", i.requires_grad_)
print(i.is_inference(), (i * 2).is_inference(), i.clone().is_inference())
seen = []
with torch.no_grad():
    thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
    thread.start()
    thread.join()
print(seen, torch.is_grad_enabled())
shared = leaf()
threads = [threading.Thread(target=lambda: [(shared * 2).sum().backward() for _ in range(50)]) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(shared.grad)
