/* The backward pass of what is common: recorded operators on NumPy without hooks, and leaves that had no gradient yet.
   `run_backward`, `OpNode.apply` and `AccumulateGrad.take` in autograd/ are the definition. What is not common, and what
   is wrong, is left to them before anything was changed. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "arrays.h"
#include "calls.h"
#include "slots.h"
#include "tape.h"

/* What `tape_uses` was given, in this order. */
static PyObject *op_node, *output_node, *leaf, *tensor, *engine, *backwards, *deliver, *push, *pop, *acquire, *release;
static PyObject *as_seen;
/* Their attributes; `quick`, `dtype` and others are of several classes, or are no slots: those are asked for. */
static rl_slot array = SLOT("_array"), asked = SLOT("asked"), compute = SLOT("compute"), details = SLOT("details");
static rl_slot dtype = SLOT("dtype"), edges = SLOT("edges"), fixed = SLOT("static"), frees = SLOT("frees");
static rl_slot grad = SLOT("_grad"), guard = SLOT("guard"), hooks = SLOT("hooks"), index_ = SLOT("index");
static rl_slot inputs = SLOT("inputs"), is_leaf = SLOT("is_leaf"), name = SLOT("name"), names = SLOT("names");
static rl_slot node = SLOT("_node"), op = SLOT("op"), outputs = SLOT("outputs"), packed = SLOT("packed");
static rl_slot plan = SLOT("plan"), quick = SLOT("quick"), residuals = SLOT("residuals"), rules = SLOT("rules");
static rl_slot saved = SLOT("saved"), sequence = SLOT("sequence"), shape = SLOT("shape"), storage = SLOT("_storage");
static rl_slot unasked = SLOT("unasked"), variable = SLOT("_variable"), version = SLOT("version");
static rl_slot versions = SLOT("versions"), xp = SLOT("xp");
static PyObject *aux, *incoming, *take; /* names of what is no attribute, or is called */

static PyObject *uses(PyObject *module, PyObject *args)
{
    static PyObject **const kept[] = {&op_node, &output_node, &leaf, &tensor, &engine, &backwards,
                                      &deliver, &push,        &pop,  &acquire, &release, &as_seen};
    static rl_slot *const slots[] = {
        &array,   &asked, &compute, &details, &dtype,  &edges,  &fixed, &frees,     &grad,  &guard,   &hooks, &index_,
        &inputs,  &is_leaf, &name,  &names,   &node,   &op,     &outputs, &packed,  &plan,  &quick,   &residuals,
        &rules,   &saved, &sequence, &shape,  &storage, &unasked, &variable, &version, &versions, &xp};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!(*kept[i] = PySequence_GetItem(args, (Py_ssize_t)i)))
            return NULL;
    PyObject *classes = PySequence_GetItem(args, sizeof kept / sizeof *kept);
    int failed = !classes || rl_find_slots(slots, sizeof slots / sizeof *slots, classes);
    Py_XDECREF(classes);
    if (failed || !(aux = PyUnicode_InternFromString("aux")) || !(incoming = PyUnicode_InternFromString("_incoming")) ||
        !(take = PyUnicode_InternFromString("take")))
        return NULL;
    Py_RETURN_NONE;
}

/* Is an attribute this object? Not, too, if it cannot be read; the exception stays. */
static int has(PyObject *object, const rl_slot *attribute, const void *expected)
{
    PyObject *found = rl_get(object, attribute);
    Py_XDECREF(found);
    return found && found == expected;
}

static int is_tensor(PyObject *value) { return PyObject_TypeCheck(value, (PyTypeObject *)tensor); }

/* -- how many edges lead to each node ---------------------------------------------------------------------------- */

static int count_edge(PyObject *waiting, PyObject *stack, PyObject *edge)
{
    PyObject *before = PyDict_GetItemWithError(waiting, edge);
    if (!before && (PyErr_Occurred() || PyList_Append(stack, edge)))
        return -1;
    PyObject *now = PyLong_FromLong(before ? PyLong_AsLong(before) + 1 : 1);
    int failed = !now || PyDict_SetItem(waiting, edge, now);
    Py_XDECREF(now);
    return failed ? -1 : 0;
}

static PyObject *count_waiting(PyObject *module, PyObject *roots)
{
    PyObject *zero = PyLong_FromLong(0), *waiting = PyDict_New(), *stack = NULL;
    int failed = !zero || !waiting;
    for (Py_ssize_t i = 0, n = PySequence_Size(roots); !failed && i < n; i++) {
        PyObject *root = PySequence_GetItem(roots, i);
        failed = !root || PyDict_SetItem(waiting, root, zero);
        Py_XDECREF(root);
    }
    failed = failed || !(stack = PyDict_Keys(waiting));
    for (Py_ssize_t i = 0; !failed && i < PyList_Size(stack); i++) {
        PyObject *found = rl_get(PyList_GetItem(stack, i), &edges);
        PyObject *each = found ? PySequence_Tuple(found) : NULL;
        failed = !each;
        for (Py_ssize_t k = 0; !failed && k < PyTuple_Size(each); k++)
            if (PyTuple_GetItem(each, k) != Py_None)
                failed = count_edge(waiting, stack, PyTuple_GetItem(each, k));
        Py_XDECREF(found);
        Py_XDECREF(each);
    }
    Py_XDECREF(zero);
    Py_XDECREF(stack);
    if (failed)
        Py_CLEAR(waiting);
    return waiting;
}

/* -- may this node be run here? ---------------------------------------------------------------------------------- */

/* The node and what it has, all ours; saved is NULL where it is not common. asked: its edges, None in place of those that
   this pass does not go along. */
typedef struct {
    PyObject *node, *g, *edges, *asked, *plan, *op, *fixed, *saved, *details;
} call;

/* Is the storage of this version? None was never written. */
static int is_at(PyObject *counted, long expected)
{
    return counted == Py_None ? 1 : PyLong_AsLong(rl_peek(counted, &version)) == expected;
}

/* Was an input that was saved neither written nor detached since? ``noted``: (storage, version), or None. */
static int is_as_it_was(PyObject *value, PyObject *noted, PyObject *edge)
{
    if (noted == Py_None ? !is_at(rl_peek(value, &storage), 0)
                         : !is_at(PyTuple_GetItem(noted, 0), PyLong_AsLong(PyTuple_GetItem(noted, 1))))
        return 0;
    return edge == Py_None || !has(value, &node, Py_None) || has(edge, &is_leaf, Py_True);
}

static int inputs_are_as_they_were(const call *c)
{
    PyObject *places = rl_peek(c->plan, &inputs), *notes = rl_peek(c->node, &versions);
    Py_ssize_t noted = PyTuple_Size(notes), width = PyTuple_Size(c->edges);
    int same = 1;
    for (Py_ssize_t i = 0, n = PyTuple_Size(places); same && i < n; i++) {
        PyObject *value = PyTuple_GetItem(c->saved, i);
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GetItem(places, i));
        if (value && is_tensor(value))
            same = is_as_it_was(value, noted > 0 ? PyTuple_GetItem(notes, i) : Py_None,
                                place < width ? PyTuple_GetItem(c->edges, place) : Py_None);
    }
    return same;
}

static int edges_have_no_hooks(const call *c)
{
    int none = PyTuple_Check(c->edges);
    for (Py_ssize_t i = 0; none && i < PyTuple_Size(c->edges); i++)
        none = PyTuple_GetItem(c->edges, i) == Py_None || has(PyTuple_GetItem(c->edges, i), &hooks, Py_None);
    return none;
}

/* Is it a list of arrays, and of None for outputs that no gradient came from? */
static int are_arrays(PyObject *g)
{
    int all = PyList_Check(g);
    for (Py_ssize_t i = 0; all && i < PyList_Size(g); i++)
        all = PyList_GetItem(g, i) == Py_None || rl_array_of(PyList_GetItem(g, i));
    return all;
}

/* Are there no details, or only several outputs, and what a fused forward left for backward? */
static int details_are_common(const call *c)
{
    if (!c->details || c->details == Py_None)
        return c->details && rl_array_of(c->g);
    int several = !has(c->details, &outputs, Py_None);
    return has(c->details, &packed, Py_False) && has(c->details, &compute, Py_None) &&
           (several ? are_arrays(c->g) : rl_array_of(c->g) != NULL);
}

static int is_common(call *c)
{
    if ((PyObject *)Py_TYPE(c->node) != op_node || !has(c->node, &hooks, Py_None) || !has(c->node, &guard, Py_None) ||
        !has(c->node, &xp, engine) || !(c->plan = rl_get(c->node, &plan)) || !has(c->plan, &quick, Py_True))
        return 0;
    c->details = rl_get(c->node, &details);
    if (!details_are_common(c))
        return 0;
    c->edges = rl_get(c->node, &edges), c->op = rl_get(c->plan, &op);
    c->fixed = rl_get(c->node, &fixed), c->saved = rl_get(c->node, &saved);
    return c->edges && c->op && c->fixed && c->saved && PyTuple_Check(c->saved) && edges_have_no_hooks(c) &&
           inputs_are_as_they_were(c);
}

static void drop(call *c)
{
    PyObject **const held[] = {&c->node, &c->g,     &c->edges, &c->asked,  &c->plan,
                               &c->op,   &c->fixed, &c->saved, &c->details};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        Py_CLEAR(*held[i]);
}

/* -- its gradients ----------------------------------------------------------------------------------------------- */

static int put(PyObject *list, PyObject *item)
{
    int failed = !item || PyList_Append(list, item);
    Py_XDECREF(item);
    return failed;
}

/* A static argument as it was given, or its default: a new reference. */
static PyObject *argument(const call *c, PyObject *which)
{
    PyObject *found = c->fixed == Py_None ? NULL : PyDict_GetItemWithError(c->fixed, which);
    if (found || PyErr_Occurred())
        return Py_XNewRef(found);
    PyObject *defaults = rl_get(c->op, &fixed), *value = defaults ? PyObject_GetItem(defaults, which) : NULL;
    Py_XDECREF(defaults);
    return value;
}

/* A list of what the plan names. */
static PyObject *values_of(const call *c)
{
    PyObject *values = PyList_New(0), *others = rl_get(c->plan, &asked);
    int failed = !values || !others;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_Size(c->saved); i++) {
        PyObject *value = PyTuple_GetItem(c->saved, i);
        failed = put(values, is_tensor(value) ? rl_get(value, &array) : Py_NewRef(value));
    }
    for (Py_ssize_t i = 0; !failed && i < PyTuple_Size(others); i++)
        failed = put(values, argument(c, PyTuple_GetItem(others, i)));
    Py_XDECREF(others);
    if (failed)
        Py_CLEAR(values);
    return values;
}

/* Is there an array without elements among them? Then forward was the plain one, though there are fused ones. */
static int has_empty(PyObject *values)
{
    int empty = 0;
    for (Py_ssize_t i = 0; !empty && i < PyList_Size(values); i++) {
        const rl_array *a = rl_array_of(PyList_GetItem(values, i));
        for (int k = 0; a && k < a->ndim; k++)
            empty |= !a->shape[k];
    }
    return empty;
}

/* By the engine's function for all gradients at once; None: by the rules. ``kept`` is what a fused forward left, NULL where
   there is none for the op. */
static PyObject *by_engine(const call *c, PyObject *function, PyObject *values, PyObject *kept)
{
    if (kept && (kept == Py_None || has_empty(values)))
        return Py_NewRef(Py_None);
    PyObject *known = PyDict_New(), *words = rl_get(c->plan, &names), *grads = NULL;
    PyObject *others = rl_get(c->plan, &unasked);
    int failed = !known || !words || !others;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_Size(words); i++)
        failed = PyDict_SetItem(known, PyTuple_GetItem(words, i), PyList_GetItem(values, i));
    for (Py_ssize_t i = 0; !failed && i < PyTuple_Size(others); i++) {
        PyObject *value = argument(c, PyTuple_GetItem(others, i));
        failed = !value || PyDict_SetItem(known, PyTuple_GetItem(others, i), value);
        Py_XDECREF(value);
    }
    failed = failed || (kept && PyDict_SetItem(known, aux, kept));
    if (!failed)
        grads = PyObject_CallFunctionObjArgs(function, c->g, c->asked, known, NULL);
    Py_XDECREF(known);
    Py_XDECREF(words);
    Py_XDECREF(others);
    return grads;
}

/* rule(xp, g, *those of the values that it asks for) */
static PyObject *by_rule(const call *c, PyObject *rule, PyObject *places, PyObject *values)
{
    Py_ssize_t n = PyTuple_Size(places);
    PyObject *args = PyTuple_New(n + 2), *found = NULL;
    if (args) {
        PyTuple_SetItem(args, 0, Py_NewRef(engine)), PyTuple_SetItem(args, 1, Py_NewRef(c->g));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SetItem(args, i + 2, Py_NewRef(PyList_GetItem(values, PyLong_AsSsize_t(PyTuple_GetItem(places, i)))));
        found = PyObject_CallObject(rule, args);
        Py_DECREF(args);
    }
    return found;
}

static PyObject *by_rules(const call *c, PyObject *values)
{
    PyObject *all = rl_get(c->plan, &rules), *grads = PyList_New(0);
    int failed = !all || !grads;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_Size(c->edges); i++)
        failed = PyList_Append(grads, Py_None);
    for (Py_ssize_t i = 0; !failed && i < PyTuple_Size(all); i++) {
        PyObject *which = PyTuple_GetItem(all, i);
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(which, 0));
        if (PyTuple_GetItem(c->asked, at) != Py_None) {
            PyObject *found = by_rule(c, PyTuple_GetItem(which, 1), PyTuple_GetItem(which, 2), values);
            failed = !found || PyList_SetItem(grads, at, found);
        }
    }
    Py_XDECREF(all);
    if (failed)
        Py_CLEAR(grads);
    return grads;
}

static PyObject *gradients(call *c, int keep)
{
    PyObject *values = values_of(c), *grads = NULL, *title = NULL, *kept = NULL;
    if (!values || !(title = rl_get(c->op, &name)))
        goto end;
    if (PyList_Check(c->g)) { /* zeros where there is nothing */
        PyObject *all = PyObject_CallMethodObjArgs(c->node, incoming, engine, c->g, Py_False, NULL);
        if (!all)
            goto end;
        Py_DECREF(c->g);
        c->g = all;
    }
    if (has(c->op, &residuals, Py_True) && !(kept = rl_get(c->details, &residuals)))
        goto end;
    if (!keep && has(c->plan, &frees, Py_True) &&
        (rl_put(c->node, &saved, Py_None) || (kept && rl_put(c->details, &residuals, Py_None))))
        goto end;
    Py_CLEAR(c->saved);
    PyObject *function = PyDict_GetItemWithError(backwards, title);
    if (function)
        grads = by_engine(c, function, values, kept);
    if ((!function && !PyErr_Occurred()) || grads == Py_None) {
        Py_XDECREF(grads);
        grads = by_rules(c, values);
    }
end:
    Py_XDECREF(values);
    Py_XDECREF(title);
    Py_XDECREF(kept);
    return grads;
}

/* -- where they go ----------------------------------------------------------------------------------------------- */

/* Does an array that only ``grads`` has lie as the leaf does, so that it may become its gradient? */
static int may_be_taken(const rl_array *g, const rl_array *like)
{
    size_t size = sizeof *g->shape * (size_t)(g ? g->ndim : 0);
    return g && like && Py_REFCNT((PyObject *)g) == 1 && !g->base && g->dtype == like->dtype && g->ndim == like->ndim &&
           !memcmp(g->shape, like->shape, size) && !memcmp(g->strides, like->strides, size);
}

/* A leaf's first gradient; 0: it is not so simple. */
static int taken(PyObject *edge, PyObject *g)
{
    PyObject *held = rl_get(edge, &variable), *owner = held ? PyObject_CallNoArgs(held) : NULL;
    Py_XDECREF(held);
    int done = 0;
    if (owner && owner != Py_None && !has(owner, &node, Py_None) && has(owner, &grad, Py_None) &&
        may_be_taken(rl_array_of(g), rl_array_of(rl_peek(owner, &array)))) {
        PyObject *made = rl_wrapped(g), *locked = made ? PyObject_CallNoArgs(acquire) : NULL;
        if (locked) { /* another thread may have been quicker */
            done = has(owner, &grad, Py_None) && !rl_put(owner, &grad, made);
            Py_XDECREF(PyObject_CallNoArgs(release));
        }
        Py_XDECREF(locked);
        Py_XDECREF(made);
    }
    Py_XDECREF(owner);
    return done;
}

/* Is it what the node, where nothing has arrived yet, expects? Then it is put there; else Python does it. */
static int delivered(PyObject *edge, PyObject *g, PyObject *pending)
{
    const rl_array *a = rl_array_of(g);
    PyObject *sizes = rl_get(edge, &shape); /* a leaf makes it now */
    int fits = a && sizes && PyTuple_Check(sizes) && PyTuple_Size(sizes) == a->ndim && has(edge, &dtype, a->dtype);
    for (int i = 0; fits && i < a->ndim; i++)
        fits = PyLong_AsSsize_t(PyTuple_GetItem(sizes, i)) == a->shape[i];
    Py_XDECREF(sizes);
    return fits && !PyErr_Occurred() && !PyDict_GetItemWithError(pending, edge) && !PyErr_Occurred() &&
           !PyDict_SetItem(pending, edge, g);
}

typedef struct {
    PyObject *ready, *pending, *waiting, *owned;
    PyObject *useful, *wanted, *captured; /* where only some gradients are asked for, otherwise NULL */
    long turn;
} pass;

static int called(PyObject *result)
{
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static int make_ready(pass *p, PyObject *edge)
{
    PyObject *age = rl_get(edge, &sequence), *first = age ? PyNumber_Negative(age) : NULL;
    PyObject *turn = PyLong_FromLong(++p->turn);
    PyObject *entry = first && turn ? PyTuple_Pack(3, first, turn, edge) : NULL;
    int failed = !entry || called(PyObject_CallFunctionObjArgs(push, p->ready, entry, NULL));
    Py_XDECREF(age);
    Py_XDECREF(first);
    Py_XDECREF(turn);
    Py_XDECREF(entry);
    return failed;
}

/* How many edges are still to be waited for. */
static long one_less(pass *p, PyObject *edge)
{
    PyObject *before = PyDict_GetItemWithError(p->waiting, edge);
    if (!before)
        return PyErr_Occurred() ? -1 : (PyErr_SetObject(PyExc_KeyError, edge), -1);
    long left = PyLong_AsLong(before) - 1;
    PyObject *now = PyLong_FromLong(left);
    int failed = !now || PyDict_SetItem(p->waiting, edge, now);
    Py_XDECREF(now);
    return failed ? -1 : left;
}

/* ``grads``, a list or tuple, holds ``g``. */
static int hand_on_one(pass *p, PyObject *edge, PyObject *g)
{
    long left = one_less(p, edge);
    if (left < 0)
        return -1;
    int is_useful = !p->useful || PyDict_GetItemWithError(p->useful, edge);
    if (!is_useful)
        g = Py_None;
    if (g != Py_None) {
        int is_last = !left && !p->useful && (PyObject *)Py_TYPE(edge) == leaf && rl_array_of(g);
        if (is_last && !PyDict_GetItemWithError(p->pending, edge)) {
            if (PyErr_Occurred() || taken(edge, g))
                return PyErr_Occurred() ? -1 : 0;
            Py_INCREF(g); /* one of the holders that `take` counts */
            int failed = PyErr_Occurred() || called(PyObject_CallMethodObjArgs(edge, take, g, NULL));
            Py_DECREF(g);
            return failed ? -1 : 0;
        }
        if (PyErr_Occurred() || (!delivered(edge, g, p->pending) &&
                                 (PyErr_Occurred() || called(PyObject_CallFunctionObjArgs(
                                                          deliver, edge, g, p->pending, p->owned, Py_False, NULL)))))
            return -1;
    }
    return left || (!is_useful && (PyObject *)Py_TYPE(edge) == leaf) ? 0 : make_ready(p, edge);
}

static int hand_on(pass *p, const call *c, PyObject *grads)
{
    int failed = 0, is_tuple = PyTuple_Check(grads);
    for (Py_ssize_t i = 0; !failed && i < PyTuple_Size(c->edges); i++) {
        PyObject *edge = PyTuple_GetItem(c->edges, i);
        if (edge == Py_None)
            continue;
        PyObject *g = is_tuple ? PyTuple_GetItem(grads, i) : PyList_GetItem(grads, i);
        failed = !g || hand_on_one(p, edge, g);
    }
    return failed;
}

/* The node of one of several outputs, that no hook looks at: its gradient goes to its place among the others'. 1: done, 0:
   it is not so simple, -1: failed. */
static int placed(pass *p, PyObject *one, PyObject *g)
{
    PyObject *whole = rl_peek(one, &edges), *parent = PyTuple_Check(whole) ? PyTuple_GetItem(whole, 0) : NULL;
    if (!parent || (PyObject *)Py_TYPE(parent) != op_node || !rl_array_of(g) || !has(one, &hooks, Py_None))
        return 0;
    PyObject *all = rl_peek(rl_peek(parent, &details), &outputs), *slots = PyDict_GetItemWithError(p->pending, parent);
    Py_ssize_t at = PyLong_AsSsize_t(rl_peek(one, &index_));
    if (PyErr_Occurred() || !PyTuple_Check(all) || at >= PyTuple_Size(all) ||
        (slots && PyList_GetItem(slots, at) != Py_None))
        return 0;
    Py_INCREF(parent), Py_INCREF(one), Py_INCREF(g);
    int failed = called(PyObject_CallFunctionObjArgs(pop, p->ready, NULL)) || PyDict_DelItem(p->pending, one);
    if (!failed && !slots) {
        PyObject *made = PyList_New(0);
        for (Py_ssize_t i = 0; made && i < PyTuple_Size(all); i++)
            failed = failed || PyList_Append(made, Py_None);
        failed = failed || !made || PyDict_SetItem(p->pending, parent, made);
        slots = made; /* held by the dict */
        Py_XDECREF(made);
    }
    failed = failed || PyList_SetItem(slots, at, Py_NewRef(g));
    long left = failed ? -1 : one_less(p, parent);
    failed = left < 0 || (!left && make_ready(p, parent));
    Py_DECREF(parent), Py_DECREF(one), Py_DECREF(g);
    return failed ? -1 : 1;
}

/* Its edges, those that lead to nothing wanted left out. */
static PyObject *asked_of(const pass *p, PyObject *whole)
{
    if (!p->useful)
        return Py_NewRef(whole);
    PyObject *some = PyTuple_New(PyTuple_Size(whole));
    for (Py_ssize_t i = 0; some && i < PyTuple_Size(whole); i++) {
        PyObject *edge = PyTuple_GetItem(whole, i);
        int leads = edge != Py_None && PyDict_GetItemWithError(p->useful, edge);
        PyTuple_SetItem(some, i, Py_NewRef(leads ? edge : Py_None));
    }
    return some;
}

/* Run the first of the nodes that are ready; 1: done, 0: not common, -1: failed. */
static int run_first(pass *p, int keep)
{
    PyObject *first = PyTuple_GetItem(PyList_GetItem(p->ready, 0), 2);
    PyObject *g = first ? PyDict_GetItemWithError(p->pending, first) : NULL;
    if (!g)
        return PyErr_Occurred() ? -1 : 0;
    if (p->useful && ((PyObject *)Py_TYPE(first) != op_node || PyDict_GetItemWithError(p->useful, first) != Py_True))
        return PyErr_Occurred() ? -1 : 0;
    if ((PyObject *)Py_TYPE(first) == output_node) {
        int done = placed(p, first, g);
        if (!done)
            PyErr_Clear(); /* Python will say what is wrong */
        return done;
    }
    call c = {.node = Py_NewRef(first), .g = Py_NewRef(g)};
    int done = is_common(&c);
    if (PyErr_Occurred()) {
        PyErr_Clear(); /* Python will say what is wrong */
        done = 0;
    }
    if (done) {
        PyObject *grads = NULL;
        int captured = p->wanted ? PySequence_Contains(p->wanted, c.node) : 0;
        if (called(PyObject_CallFunctionObjArgs(pop, p->ready, NULL)) || PyDict_DelItem(p->pending, c.node) ||
            captured < 0 || (captured && PyDict_SetItem(p->captured, c.node, c.g)) ||
            !(c.asked = asked_of(p, c.edges)) || !(grads = gradients(&c, keep)))
            done = -1;
        if (grads && p->wanted) {
            PyObject *seen = PyObject_CallFunctionObjArgs(as_seen, c.node, grads, c.g, p->wanted, NULL);
            Py_DECREF(grads);
            grads = seen;
        }
        Py_CLEAR(c.g); /* let go of the array before the next node runs */
        if (grads && !PyTuple_Check(grads) && !PyList_Check(grads)) {
            PyObject *listed = PySequence_List(grads);
            Py_DECREF(grads);
            grads = listed;
        }
        if (done > 0 && (!grads || hand_on(p, &c, grads)))
            done = -1;
        Py_XDECREF(grads);
    }
    drop(&c);
    return done;
}

/* run_ready(ready, pending, waiting, owned, keep, turn, useful, wanted, captured): until the first of those that are ready is not common, or there
   is none. Returns the turn. */
static PyObject *run_ready(PyObject *module, PyObject *const *args, Py_ssize_t number)
{
    if (number != 9 || !PyList_Check(args[0]) || !PyDict_Check(args[1]) || !PyDict_Check(args[2]) ||
        (args[6] != Py_None && (!PyDict_Check(args[6]) || !PyDict_Check(args[8]))))
        return PyErr_Format(PyExc_TypeError, "run_ready takes what run_backward has");
    pass p = {args[0], args[1], args[2], args[3], NULL, NULL, NULL, PyLong_AsLong(args[5])};
    if (args[6] != Py_None)
        p.useful = args[6], p.wanted = args[7], p.captured = args[8];
    int keep = PyObject_IsTrue(args[4]), done = PyErr_Occurred() ? -1 : 1;
    while (done > 0 && PyList_Size(p.ready) > 0)
        done = run_first(&p, keep);
    return done < 0 ? NULL : PyLong_FromLong(p.turn);
}

static PyMethodDef METHODS[] = {
    {"tape_uses", uses, METH_VARARGS, "Classes, tables and functions of autograd."},
    {"count_waiting", count_waiting, METH_O, "See autograd/tape.py."},
    {"run_ready", (PyCFunction)(void *)run_ready, METH_FASTCALL, "See run_backward in autograd/tape.py."},
    {NULL, NULL, 0, NULL},
};

int rl_add_tape(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
