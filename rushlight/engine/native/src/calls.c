/* Calls of operators where everything is common: float32, float64 or int64 on NumPy, perhaps with indices or a mask
   beside them, no mode but the grad switch, views that have seen the last write. `single`, `pair` and `trio` in autograd/shortcuts.py are the definition and do the rest. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "arrays.h"
#include "calls.h"
#include "slots.h"

enum { MOST = 8, FEW = 3 }; /* arrays of a call; so many are handed on without a tuple */

/* What `calls_use` was given, in this order. */
static PyObject *tensor, *op_node, *view_class, *plain, *engine, *single_precision, *double_precision, *truth;
static PyObject *whole;
static PyObject *switches, *modes, *layouts, *counter, *as_array;

static rl_slot array = SLOT("_array"), count = SLOT("count"), details = SLOT("details"), dtype = SLOT("dtype");
static rl_slot edges = SLOT("edges"), fixed = SLOT("static"), grad = SLOT("_grad"), guard = SLOT("guard");
static rl_slot hooks = SLOT("hooks"), inference = SLOT("inference"), inputs = SLOT("inputs"), node = SLOT("_node");
static rl_slot output = SLOT("output"), plan_of = SLOT("plan"), saved = SLOT("saved"), saves_more = SLOT("saves_more");
static rl_slot seen = SLOT("seen"), sequence = SLOT("sequence"), shape = SLOT("shape"), storage = SLOT("_storage");
static rl_slot collected = SLOT("views"), from = SLOT("base"), from_node = SLOT("node"), is_recorded = SLOT("recorded");
static rl_slot way = SLOT("_way"); /* of views */
static rl_slot version = SLOT("version"), versions = SLOT("versions"), view = SLOT("_view"), xp = SLOT("xp");
static PyObject *active, *itemsize, *keep, *kind, *recording, *watched; /* names */

static PyObject *use(PyObject *module, PyObject *args)
{
    static PyObject **const kept[] = {&tensor, &op_node, &view_class, &plain, &engine, &single_precision,
                                      &double_precision, &truth, &whole, &switches, &modes, &layouts, &counter,
                                      &as_array};
    static rl_slot *const of_views[] = {&from, &from_node, &is_recorded, &way};
    static rl_slot *const slots[] = {&array, &collected, &count, &details, &dtype, &edges, &grad, &guard, &hooks, &inference,
                                     &inputs, &node, &output, &plan_of, &saved, &saves_more, &seen, &sequence, &shape,
                                     &fixed, &storage, &version, &versions, &view, &xp};
    static const struct { PyObject **name; const char *text; } names[] = {
        {&active, "active"}, {&itemsize, "itemsize"}, {&keep, "keep"}, {&kind, "kind"}, {&recording, "grad"},
        {&watched, "watched"}};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!(*kept[i] = PySequence_GetItem(args, (Py_ssize_t)i)))
            return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].name = PyUnicode_InternFromString(names[i].text)))
            return NULL;
    PyObject *classes = PySequence_GetItem(args, sizeof kept / sizeof *kept), *one = PyTuple_Pack(1, view_class);
    int failed = !classes || !one || rl_find_slots(of_views, sizeof of_views / sizeof *of_views, one) ||
                 rl_find_slots(slots, sizeof slots / sizeof *slots, classes);
    Py_XDECREF(classes);
    Py_XDECREF(one);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

enum { SEVERAL = 1, UNLIKE }; /* kinds of outputs of which there are several */

/* What an operator's calls have in common. */
typedef struct {
    PyObject *function, *first;  /* what computes, and what it is given before the arrays, or NULL */
    PyObject *op, *plans, *link; /* link: what links a view with its base; NULL if the op makes none */
    int arrays, recorded, several;
    int many;  /* does it take any number of arrays? */
    int mask;  /* the place of an array of truth values beside the others, or -1 */
    int index; /* may arrays hold places or truth values beside the others, or alone? */
    int ints;  /* are whole numbers of one dtype computed with as they are? */
    int some;  /* may arrays but the first be truths and None, or only numbers? */
    int plain; /* do results lie in plain order if the arrays do? */
    int turns; /* does it make the first view whose dimensions are turned around? */
    int statics; /* how many static arguments it takes; -1: its views are not simply parts of memory */
} operator_;

/* One call. All objects are borrowed from its arguments but ``given``, ``nodes`` and ``out``: what computes may let
   other threads write to the operands. */
typedef struct {
    const operator_ *o;
    PyObject *const *args;
    PyObject *fixed, *given[MOST], *nodes[MOST], *dtype, *out;
    int arrays, needs, written;
    int beside, first;                  /* are there indices or a mask; is the first array one? */
    int ordered;                        /* all must lie in plain order */
} call;

static int is_on(PyObject *table, PyObject *name)
{
    PyObject *value = PyDict_GetItemWithError(table, name);
    return !value || PyObject_IsTrue(value) != 0;
}

static int is_tensor(PyObject *object)
{
    PyObject *class = (PyObject *)Py_TYPE(object);
    return class == tensor || PySet_Contains(plain, class) == 1;
}

static int is_number(const operator_ *o, PyObject *object)
{
    PyTypeObject *class = Py_TYPE(object);
    return class == &PyFloat_Type || class == &PyLong_Type || (o->some && (class == &PyBool_Type || object == Py_None));
}

/* Has a view seen the last version of what it is a view of? */
static int is_fresh(PyObject *x)
{
    PyObject *way = rl_peek(x, &view);
    if (way == Py_None)
        return 1;
    if ((PyObject *)Py_TYPE(way) != view_class)
        return 0;
    return PyObject_RichCompareBool(rl_peek(way, &seen), rl_peek(rl_peek(x, &storage), &version), Py_EQ) == 1;
}

static Py_ssize_t size_of(PyObject *dtype)
{
    if (dtype == single_precision || dtype == double_precision || dtype == whole || dtype == truth)
        return dtype == truth ? 1 : dtype == single_precision ? 4 : 8;
    PyObject *found = PyObject_GetAttr(dtype, itemsize);
    Py_ssize_t size = found ? PyLong_AsSsize_t(found) : -1;
    Py_XDECREF(found);
    return size;
}

/* Does it lie as PyTorch lays out what is new? */
static int is_plain(const rl_array *a)
{
    Py_ssize_t step = size_of(a->dtype);
    for (int i = a->ndim; i-- > 0; step *= a->shape[i] ? a->shape[i] : 1)
        if (a->strides[i] != step)
            return 0;
    return 1;
}

/* Does it stand beside the numbers that are computed with? */
static int is_beside(const call *c, int i, const rl_array *a, PyObject *x)
{
    int may = a->dtype == truth ? c->o->index || c->o->mask == i : a->dtype == whole && c->o->index;
    return may && rl_peek(x, &node) == Py_None;
}

static int is_computed_with(const call *c, const rl_array *a, PyObject *x)
{
    if (a->dtype == whole)
        return c->o->ints && rl_peek(x, &node) == Py_None;
    return a->dtype == single_precision || a->dtype == double_precision;
}

static int take_tensor(call *c, int i, PyObject *x)
{
    const rl_array *a = is_fresh(x) ? rl_array_of(rl_peek(x, &array)) : NULL;
    if (!a || (c->ordered && !is_plain(a)))
        return 0;
    int beside = is_beside(c, i, a, x);
    if (!beside && (!is_computed_with(c, a, x) || (c->dtype && a->dtype != c->dtype)))
        return 0;
    PyObject *counted = rl_peek(x, &storage);
    if (counted != Py_None) {
        if (rl_peek(counted, &inference) != Py_False)
            return 0;
        c->written |= PyLong_AsLong(rl_peek(counted, &version)) != 0;
    }
    c->beside |= beside;
    c->first |= beside && !i;
    c->dtype = beside ? c->dtype : a->dtype;
    c->given[i] = Py_NewRef((PyObject *)a), c->nodes[i] = Py_NewRef(rl_peek(x, &node));
    c->needs |= (c->nodes[i] != Py_None) << i;
    return 1;
}

/* Are the numbers beside whole ones whole, too? They are made arrays: what does not fit is then of another dtype. */
static int are_whole(call *c)
{
    for (int i = 0; i < c->arrays; i++) {
        PyObject *x = c->given[i];
        if (Py_TYPE(x) == &PyLong_Type) {
            c->given[i] = PyObject_CallFunctionObjArgs(as_array, x, NULL);
            Py_DECREF(x);
            const rl_array *a = c->given[i] ? rl_array_of(c->given[i]) : NULL;
            if (!a || a->dtype != whole)
                return 0;
        } else if (Py_TYPE(x) == &PyFloat_Type || Py_TYPE(x) == &PyBool_Type)
            return 0;
    }
    return 1;
}

/* Are arrays of one dtype computed with, beside others or not, or only such as an operator of indices takes? */
static int is_common(call *c)
{
    if (c->dtype == whole)
        return are_whole(c);
    return c->dtype ? !c->first || !c->o->index : c->o->index;
}

static int take_all(call *c)
{
    for (int i = 0; i < c->arrays; i++) {
        PyObject *x = c->args[i];
        if (is_tensor(x)) {
            if (!take_tensor(c, i, x))
                return 0;
        } else if (i && is_number(c->o, x))
            c->given[i] = Py_NewRef(x), c->nodes[i] = Py_NewRef(Py_None);
        else
            return 0;
    }
    return is_common(c) && !PyErr_Occurred();
}

/* -- the result -------------------------------------------------------------------------------------------------- */

static PyObject *computed(const call *c)
{
    PyObject *p[MOST + 1] = {c->o->first}, *found = NULL;
    int first = c->o->first != NULL, n = first + c->arrays, is_fixed = c->fixed != Py_None && PyDict_Size(c->fixed);
    for (int i = 0; i < c->arrays; i++)
        p[first + i] = c->given[i];
    if (!is_fixed && c->arrays <= FEW)
        return PyObject_CallFunctionObjArgs(c->o->function, p[0], p[1], p[2], p[3], NULL);
    PyObject *all = PyTuple_New(n);
    for (int i = 0; all && i < n; i++)
        PyTuple_SetItem(all, i, Py_NewRef(p[i]));
    if (all)
        found = PyObject_Call(c->o->function, all, is_fixed ? c->fixed : NULL);
    Py_XDECREF(all);
    return found;
}

/* Is it an error that Python's own call will meet again, and explain? */
static int is_explained(void)
{
    return PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError) ||
           PyErr_ExceptionMatches(PyExc_MemoryError) || PyErr_ExceptionMatches(PyExc_OverflowError) ||
           PyErr_ExceptionMatches(PyExc_NotImplementedError);
}

/* Is it of the op's own making, and does it lie as the result should? */
static int is_as_made(const call *c, PyObject *out)
{
    for (int i = 0; (c->beside || c->dtype == whole) && i < c->arrays; i++)
        if (c->given[i] == out)
            return 0; /* what is no view has memory of its own */
    const rl_array *a = rl_array_of(out);
    return a && (!c->ordered || c->o->link || a->ndim < 2 || is_plain(a));
}

/* Are several outputs Python's? It makes views and nodes of them, and what does not lie as it should. */
static int is_for_python(const call *c)
{
    return c->o->link || c->o->several == UNLIKE || (c->needs && c->o->recorded);
}

static PyObject *an_array(PyObject *out)
{
    return rl_array_of(out) ? Py_NewRef(out) : PyObject_CallFunctionObjArgs(as_array, out, NULL);
}

static PyObject *all_arrays(PyObject *outs)
{
    Py_ssize_t n = PyTuple_Size(outs);
    PyObject *made = PyTuple_New(n);
    for (Py_ssize_t i = 0; made && i < n; i++) {
        PyObject *one = an_array(PyTuple_GetItem(outs, i));
        if (one)
            PyTuple_SetItem(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* Compute ``out``; 0: let Python see, -1: failed. */
static int compute(call *c, operator_ *o)
{
    PyObject *out = computed(c);
    if (!out) {
        if (!is_explained())
            return -1;
        PyErr_Clear();
        return 0;
    }
    if (PyTuple_Check(out)) {
        o->several = SEVERAL;
        c->out = is_for_python(c) ? NULL : all_arrays(out);
        int made = c->out != NULL;
        for (Py_ssize_t i = 0; made && i < PyTuple_Size(c->out); i++)
            made = is_as_made(c, PyTuple_GetItem(c->out, i));
        if (!made && !is_for_python(c))
            o->several = UNLIKE;
        Py_DECREF(out);
        return PyErr_Occurred() ? -1 : made;
    }
    c->out = an_array(out);
    Py_DECREF(out);
    return c->out && rl_array_of(c->out) ? is_as_made(c, c->out) : -1;
}

PyObject *rl_wrapped(PyObject *out)
{
    PyObject *made = rl_make(tensor);
    if (made && (rl_put(made, &array, out) || rl_put(made, &node, Py_None) || rl_put(made, &grad, Py_None) ||
                 rl_put(made, &storage, Py_None) || rl_put(made, &view, Py_None)))
        Py_CLEAR(made);
    return made;
}

/* -- the node ---------------------------------------------------------------------------------------------------- */

static int has_gradient(const call *c)
{
    const rl_array *a = rl_array_of(c->out);
    if (!a || a->dtype == c->dtype)
        return a != NULL;
    PyObject *letter = PyObject_GetAttr(a->dtype, kind);
    int whole = letter && (!PyUnicode_CompareWithASCIIString(letter, "b") ||
                           !PyUnicode_CompareWithASCIIString(letter, "i") ||
                           !PyUnicode_CompareWithASCIIString(letter, "u"));
    Py_XDECREF(letter);
    return letter && !whole;
}

static PyObject *shape_of(const rl_array *a)
{
    PyObject *sizes = PyTuple_New(a->ndim);
    for (int i = 0; sizes && i < a->ndim; i++)
        PyTuple_SetItem(sizes, i, PyLong_FromSsize_t(a->shape[i]));
    return sizes;
}

static PyObject *tuple_of(PyObject *const *items, int n)
{
    PyObject *made = PyTuple_New(n);
    for (int i = 0; made && i < n; i++)
        PyTuple_SetItem(made, i, Py_NewRef(items[i]));
    return made;
}

/* What the plan keeps of the call. */
static PyObject *kept(const call *c, PyObject *plan)
{
    if (rl_peek(plan, &saves_more) == Py_True) {
        PyObject *all = tuple_of(c->args, c->arrays), *found = NULL;
        if (all)
            found = PyObject_CallMethodObjArgs(plan, keep, all, c->out, NULL);
        Py_XDECREF(all);
        return found;
    }
    PyObject *places = rl_peek(plan, &inputs), *values[MOST + 1];
    int n = (int)PyTuple_Size(places);
    for (int i = 0; i < n; i++)
        values[i] = c->args[PyLong_AsLong(PyTuple_GetItem(places, i))];
    if (rl_peek(plan, &output) == Py_True)
        values[n++] = c->out;
    return tuple_of(values, n);
}

/* (storage, version) of each input that was kept, None for what was never written; () if nothing ever was. */
static PyObject *versions_of(const call *c, PyObject *plan, PyObject *values)
{
    Py_ssize_t n = c->written ? PyLong_AsSsize_t(rl_peek(plan, &count)) : 0;
    PyObject *made = PyTuple_New(n);
    for (Py_ssize_t i = 0; made && i < n; i++) {
        PyObject *value = PyTuple_GetItem(values, i), *one = Py_None;
        PyObject *counted = is_tensor(value) ? rl_peek(value, &storage) : Py_None;
        if (counted != Py_None)
            one = PyTuple_Pack(2, counted, rl_peek(counted, &version));
        PyTuple_SetItem(made, i, counted == Py_None ? Py_NewRef(one) : one);
    }
    return made;
}

static PyObject *noted(const call *c, PyObject *plan)
{
    PyObject *made = rl_make(op_node), *values = made ? kept(c, plan) : NULL;
    PyObject *old = values ? versions_of(c, plan, values) : NULL;
    PyObject *to = tuple_of(c->nodes, c->arrays), *sizes = shape_of(rl_array_of(c->out));
    PyObject *age = PyIter_Next(counter);
    int failed = !made || !values || !old || !to || !sizes || !age || rl_put(made, &plan_of, plan) ||
                 rl_put(made, &edges, to) || rl_put(made, &xp, engine) || rl_put(made, &saved, values) ||
                 rl_put(made, &fixed, c->fixed) || rl_put(made, &versions, old) || rl_put(made, &shape, sizes) ||
                 rl_put(made, &dtype, rl_array_of(c->out)->dtype) || rl_put(made, &sequence, age) ||
                 rl_put(made, &hooks, Py_None) || rl_put(made, &guard, Py_None) || rl_put(made, &details, Py_None);
    Py_XDECREF(values);
    Py_XDECREF(old);
    Py_XDECREF(to);
    Py_XDECREF(sizes);
    Py_XDECREF(age);
    if (failed || PyErr_Occurred())
        Py_CLEAR(made);
    return made;
}

static int is_recording(void)
{
    PyObject *found = PyObject_GetAttr(switches, recording);
    int is = found && PyObject_IsTrue(found);
    Py_XDECREF(found);
    return is;
}

static int record(const call *c, PyObject *made)
{
    PyObject *needs = PyLong_FromLong(c->needs), *plan = NULL, *one = NULL;
    if (needs && (plan = PyDict_GetItemWithError(c->o->plans, needs)))
        Py_INCREF(plan);
    else if (needs && !PyErr_Occurred())
        plan = PyObject_GetItem(c->o->plans, needs); /* which makes it */
    int failed = !plan || !(one = noted(c, plan)) || rl_put(made, &node, one);
    Py_XDECREF(needs);
    Py_XDECREF(plan);
    Py_XDECREF(one);
    return failed;
}

/* Is the view a part of a tensor's memory, or of such a part's, made while gradients are recorded and nobody collects
   views? -1: failed. */
static int is_part(const call *c, PyObject *before, PyObject *counted)
{
    const rl_array *whole = (const rl_array *)c->given[0], *part = rl_array_of(c->out);
    int is = c->o->statics >= 0 && PyDict_Size(c->fixed) == c->o->statics && counted != Py_None && part && part->base &&
             (part->base == (PyObject *)whole || part->base == whole->base) &&
             rl_peek(counted, &collected) == Py_None &&
             (before == Py_None || rl_peek(before, &is_recorded) == Py_True) &&
             (!c->o->turns || is_on(layouts, watched)) && is_recording();
    return PyErr_Occurred() ? -1 : is;
}

/* `link_view` of the commonest; 0: that one is to see it, -1: failed. */
static int link_part(const call *c, PyObject *made)
{
    PyObject *base = c->args[0], *before = rl_get(base, &view), *counted = rl_get(base, &storage);
    PyObject *root = NULL, *one = NULL, *steps = NULL;
    int done = before && counted ? is_part(c, before, counted) : -1;
    if (done > 0) {
        root = before == Py_None ? Py_NewRef(base) : rl_get(before, &from);
        one = rl_make(view_class);
        steps = Py_BuildValue("(O((OOO)))", before, c->o->op, c->fixed, Py_None);
        if (!root || !one || !steps || rl_put(one, &from, root) || rl_put(one, &way, steps) ||
            rl_put(one, &seen, rl_peek(counted, &version)) || rl_put(one, &is_recorded, Py_True) ||
            rl_put(one, &from_node, rl_peek(root, &node)) || rl_put(made, &storage, counted) ||
            rl_put(made, &view, one))
            done = -1;
    }
    Py_XDECREF(before);
    Py_XDECREF(counted);
    Py_XDECREF(root);
    Py_XDECREF(one);
    Py_XDECREF(steps);
    return done;
}

static PyObject *several_results(const call *c)
{
    Py_ssize_t n = PyTuple_Size(c->out);
    PyObject *made = PyTuple_New(n);
    for (Py_ssize_t i = 0; made && i < n; i++) {
        PyObject *one = rl_wrapped(PyTuple_GetItem(c->out, i));
        if (one)
            PyTuple_SetItem(made, i, one);
        else
            Py_CLEAR(made);
    }
    return made;
}

static PyObject *result(const call *c)
{
    if (PyTuple_Check(c->out))
        return several_results(c);
    PyObject *made = rl_wrapped(c->out);
    int linked = made && c->o->link ? link_part(c, made) : 1;
    if (linked < 0)
        Py_CLEAR(made);
    if (made && !linked) {
        PyObject *done = PyObject_CallFunctionObjArgs(c->o->link, c->o->op, c->args[0], made, c->fixed, NULL);
        Py_XDECREF(done);
        if (!done)
            Py_CLEAR(made);
    }
    if (made && c->needs && c->o->recorded && is_recording() && has_gradient(c) && record(c, made))
        Py_CLEAR(made);
    if (made && PyErr_Occurred())
        Py_CLEAR(made);
    return made;
}

/* call(static, *arrays): the Tensor, or several; or None: let Python see. */
static PyObject *call_operator(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    operator_ *o = PyCapsule_GetPointer(self, NULL);
    if (n < 2 || n > MOST + 1 || (!o->many && n != o->arrays + 1))
        Py_RETURN_NONE;
    int laid_out = is_on(layouts, watched);
    if (is_on(modes, active) || (laid_out && !o->plain))
        Py_RETURN_NONE;
    call c = {.o = o, .args = args + 1, .arrays = (int)n - 1, .fixed = args[0], .ordered = laid_out || o->turns};
    int done = take_all(&c);
    PyErr_Clear(); /* Python will say what is wrong */
    if (done && !(o->several && is_for_python(&c))) /* not computed twice */
        done = compute(&c, o);
    else
        done = 0;
    PyObject *made = done > 0 ? result(&c) : NULL;
    for (int i = 0; i < c.arrays; i++)
        Py_XDECREF(c.given[i]), Py_XDECREF(c.nodes[i]);
    Py_XDECREF(c.out);
    if (!made && !done)
        Py_RETURN_NONE;
    return made;
}

/* short_call(op, arrays, function, first or None, plans, recorded, link or None, some, plain, turns, statics, many, index,
   ints, mask) */
static PyObject *short_call(PyObject *module, PyObject *args)
{
    static PyMethodDef method = {"short", (PyCFunction)(void *)call_operator, METH_FASTCALL,
                                 "See autograd/shortcuts.py."};
    operator_ *o = PyMem_Calloc(1, sizeof *o); /* for as long as the process lives, as operators do */
    if (!o || !PyArg_ParseTuple(args, "OiOOOpOpppipppi", &o->op, &o->arrays, &o->function, &o->first, &o->plans,
                                &o->recorded, &o->link, &o->some, &o->plain, &o->turns, &o->statics, &o->many,
                                &o->index, &o->ints, &o->mask)) {
        PyMem_Free(o);
        return o ? NULL : PyErr_NoMemory();
    }
    Py_INCREF(o->op), Py_INCREF(o->function), Py_INCREF(o->plans);
    o->first = o->first == Py_None ? NULL : Py_NewRef(o->first);
    o->link = o->link == Py_None ? NULL : Py_NewRef(o->link);
    PyObject *self = PyCapsule_New(o, NULL, NULL), *made = self ? PyCFunction_NewEx(&method, self, NULL) : NULL;
    Py_XDECREF(self);
    return made;
}

/* arrays_of(tensors, places): the arrays of those at these places; None if one is a view, which has to be asked. */
static PyObject *arrays_of(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2 || !PyList_Check(args[0]) || !PyList_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "arrays_of takes two lists");
    Py_ssize_t count = PyList_Size(args[1]);
    PyObject *found = PyList_New(count);
    for (Py_ssize_t i = 0; found && i < count; i++) {
        PyObject *x = PyList_GetItem(args[0], PyLong_AsSsize_t(PyList_GetItem(args[1], i)));
        PyObject *held = x && rl_peek(x, &view) == Py_None ? rl_get(x, &array) : NULL;
        if (held)
            PyList_SetItem(found, i, held);
        else
            Py_CLEAR(found);
    }
    if (!found && !PyErr_Occurred())
        Py_RETURN_NONE;
    return found;
}

static PyMethodDef METHODS[] = {
    {"arrays_of", (PyCFunction)(void *)arrays_of, METH_FASTCALL, "See compiler/played.py."},
    {"calls_use", use, METH_VARARGS, "Classes, tables and functions of autograd."},
    {"short_call", short_call, METH_VARARGS, "See autograd/shortcuts.py."},
    {NULL, NULL, 0, NULL},
};

int rl_add_calls(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
