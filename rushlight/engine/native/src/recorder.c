/* What the deferred engine does for every recorded call; `scan`, `promise` and `once` in engine/deferred/ are the
   definition. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "recorder.h"

enum { SHIFT = 16, LONG = 2000 }; /* as in engine/deferred/recording.py */

static PyObject *promise_type, *leaves, *other; /* Deferred; classes of constants; `scan` itself, for all the rest */
static PyObject *known;                         /* kinds, by the key of their calls */
static PyObject *aval, *shape, *dtype, *place, *value, *recording, *slot, *flight, *owned, *enter;
static PyObject *owner, *name, *lock, *leaving, *journal, *outputs, *build, *acquire, *release;

static PyObject *uses(PyObject *module, PyObject *args)
{
    PyObject *given[4];
    if (!PyArg_ParseTuple(args, "OOOO!", &given[0], &given[1], &given[2], &PyDict_Type, &given[3]))
        return NULL;
    PyObject **kept[] = {&promise_type, &leaves, &other, &known};
    for (int i = 0; i < 4; i++) {
        PyObject *before = *kept[i];
        *kept[i] = Py_NewRef(given[i]);
        Py_XDECREF(before);
    }
    static const struct { PyObject **name; const char *text; } names[] = {
        {&aval, "aval"}, {&shape, "shape"}, {&dtype, "dtype"}, {&place, "place"}, {&value, "value"},
        {&recording, "recording"}, {&slot, "slot"}, {&flight, "flight"}, {&owned, "owned"}, {&enter, "_enter"},
        {&owner, "owner"}, {&name, "name"}, {&lock, "lock"}, {&leaving, "leaving"}, {&journal, "log"},
        {&outputs, "outputs"}, {&build, "build"}, {&acquire, "acquire"}, {&release, "release"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!*names[i].name && !(*names[i].name = PyUnicode_InternFromString(names[i].text)))
            return NULL;
    Py_RETURN_NONE;
}

/* Append and let go. */
static int put(PyObject *list, PyObject *item)
{
    if (!item)
        return -1;
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return failed;
}

static int put_class(PyObject *key, PyObject *item) { return PyList_Append(key, (PyObject *)Py_TYPE(item)); }

static int walk(PyObject *item, PyObject *arrays, PyObject *key)
{
    PyObject *class = (PyObject *)Py_TYPE(item);
    if (class == promise_type)
        return PyList_Append(arrays, item) || put(key, PyObject_GetAttr(item, aval));
    if (class == (PyObject *)&PyTuple_Type || class == (PyObject *)&PyList_Type) {
        int is_tuple = class == (PyObject *)&PyTuple_Type;
        Py_ssize_t size = is_tuple ? PyTuple_Size(item) : PyList_Size(item);
        if (put_class(key, item) || put(key, PyLong_FromSsize_t(size)) || Py_EnterRecursiveCall(" in a recorded call"))
            return -1;
        int failed = 0;
        for (Py_ssize_t i = 0; i < size && !failed; i++)
            failed = walk(is_tuple ? PyTuple_GetItem(item, i) : PyList_GetItem(item, i), arrays, key);
        Py_LeaveRecursiveCall();
        return failed;
    }
    if (class == (PyObject *)&PyDict_Type) {
        PyObject *name, *part;
        Py_ssize_t at = 0;
        if (put(key, PyLong_FromSsize_t(PyDict_Size(item))) || Py_EnterRecursiveCall(" in a recorded call"))
            return -1;
        int failed = 0;
        while (!failed && PyDict_Next(item, &at, &name, &part))
            failed = PyList_Append(key, name) || walk(part, arrays, key);
        Py_LeaveRecursiveCall();
        return failed;
    }
    int constant = PySet_Contains(leaves, class);
    if (constant < 0)
        return -1;
    if (constant)
        return put_class(key, item) || PyList_Append(key, item);
    if (class == (PyObject *)&PyFloat_Type) {
        double number = PyFloat_AsDouble(item);
        if (number == number && number != 0)
            return put_class(key, item) || PyList_Append(key, item);
    }
    PyObject *done = PyObject_CallFunctionObjArgs(other, item, arrays, key, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *scan(PyObject *module, PyObject *args)
{
    PyObject *item, *arrays, *key;
    if (!PyArg_ParseTuple(args, "OO!O!", &item, &PyList_Type, &arrays, &PyList_Type, &key))
        return NULL;
    if (walk(item, arrays, key))
        return NULL;
    Py_RETURN_NONE;
}

/* Where an array comes from in this recording: a new reference. */
static PyObject *source(PyObject *array, PyObject *mine)
{
    PyObject *whose = PyObject_GetAttr(array, recording);
    if (!whose)
        return NULL;
    int ours = whose == mine;
    Py_DECREF(whose);
    return ours ? PyObject_GetAttr(array, slot) : PyObject_CallMethodObjArgs(mine, enter, array, NULL);
}

static PyObject *promised(PyObject *what, PyObject *where, PyObject *mine, Py_ssize_t number)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)promise_type, Py_tp_alloc);
    PyObject *made = allocate((PyTypeObject *)promise_type, 0), *at = PyLong_FromSsize_t(number);
    PyObject *its_shape = PyObject_GetAttr(what, shape), *its_dtype = PyObject_GetAttr(what, dtype);
    int failed = !made || !at || !its_shape || !its_dtype || PyObject_SetAttr(made, aval, what) ||
                 PyObject_SetAttr(made, shape, its_shape) || PyObject_SetAttr(made, dtype, its_dtype) ||
                 PyObject_SetAttr(made, place, where) || PyObject_SetAttr(made, value, Py_None) ||
                 PyObject_SetAttr(made, recording, mine) || PyObject_SetAttr(made, slot, at) ||
                 PyObject_SetAttr(made, flight, Py_None) || PyObject_SetAttr(made, owned, Py_True);
    Py_XDECREF(at);
    Py_XDECREF(its_shape);
    Py_XDECREF(its_dtype);
    if (failed)
        Py_CLEAR(made);
    return made;
}

/* Fills the lists of sources and of promises. */
static int promise_all(PyObject *mine, PyObject *where, PyObject *arrays, PyObject *avals, Py_ssize_t number,
                       PyObject *sources, PyObject *made)
{
    for (Py_ssize_t i = 0; i < PyList_Size(arrays); i++)
        if (put(sources, source(PyList_GetItem(arrays, i), mine)))
            return -1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(avals); i++)
        if (put(made, promised(PyTuple_GetItem(avals, i), where, mine, number + i)))
            return -1;
    return 0;
}

static PyObject *promise(PyObject *module, PyObject *args)
{
    PyObject *mine, *where, *arrays, *avals;
    Py_ssize_t number;
    if (!PyArg_ParseTuple(args, "OOO!O!n", &mine, &where, &PyList_Type, &arrays, &PyTuple_Type, &avals, &number))
        return NULL;
    PyObject *sources = PyList_New(0), *made = PyList_New(0);
    int failed = !sources || !made || promise_all(mine, where, arrays, avals, number, sources, made);
    PyObject *both = failed ? NULL : PyTuple_Pack(2, sources, made);
    Py_XDECREF(sources);
    Py_XDECREF(made);
    return both;
}

/* The recording that a call on these arrays enters, borrowed from the first of them; NULL: let Python see. */
static PyObject *at_hand(PyObject *arrays)
{
    if (PyList_Size(arrays) == 0)
        return NULL;
    PyObject *mine = PyObject_GetAttr(PyList_GetItem(arrays, 0), recording);
    if (!mine || mine == Py_None)
        goto none;
    PyObject *whose = PyObject_GetAttr(mine, owner);
    int ours = whose && PyLong_AsUnsignedLong(whose) == PyThread_get_thread_ident();
    Py_XDECREF(whose);
    if (ours) {
        Py_DECREF(mine); /* the array holds it */
        return mine;
    }
none:
    PyErr_Clear();
    Py_XDECREF(mine);
    return NULL;
}

/* Under the recording's lock: the promises of one more call of a kind, NULL without an error: let Python see. */
static PyObject *enter_call(PyObject *mine, PyObject *kind, PyObject *arrays)
{
    PyObject *made = NULL, *sources = NULL, *call = NULL;
    PyObject *calls = PyObject_GetAttr(mine, journal), *gone = PyObject_GetAttr(mine, leaving);
    PyObject *where = PyObject_GetAttr(mine, place), *avals = PyObject_GetAttr(kind, outputs);
    if (!calls || !gone || !where || !avals)
        goto end;
    Py_ssize_t number = PyList_Size(calls);
    if (number < 0 || number >= LONG || gone != Py_None)
        goto end;
    made = PyList_New(0), sources = PyList_New(0);
    PyObject *empty = PyTuple_New(0);
    if (!made || !sources || !empty || promise_all(mine, where, arrays, avals, number << SHIFT, sources, made) ||
        !(call = PyTuple_Pack(5, kind, sources, made, empty, Py_None)) || PyList_Append(calls, call))
        Py_CLEAR(made);
    Py_XDECREF(empty);
end:
    Py_XDECREF(calls);
    Py_XDECREF(gone);
    Py_XDECREF(where);
    Py_XDECREF(avals);
    Py_XDECREF(sources);
    Py_XDECREF(call);
    return made;
}

/* What the kind's function would have returned, of these promises. */
static PyObject *built(PyObject *kind, PyObject *made)
{
    PyObject *form = PyObject_GetAttr(kind, build), *result = NULL;
    if (form == Py_None)
        result = Py_NewRef(PyList_GetItem(made, 0));
    else if (form)
        result = PyObject_CallFunctionObjArgs(form, made, NULL);
    Py_XDECREF(form);
    return result;
}

/* once(function, constants, args, setting): a call of a kind that is known, recorded; None: let Python see. */
static PyObject *once(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "once takes 4 arguments, not %zd", count);
    PyObject *arrays = PyList_New(0), *key = PyList_New(0), *full = NULL, *kind = NULL, *result = NULL;
    PyObject *named = NULL, *held = NULL;
    if (!arrays || !key || PyList_Append(key, args[0]) || PyList_Append(key, args[1]) || walk(args[2], arrays, key))
        goto end;
    PyObject *mine = at_hand(arrays);
    if (!mine || !(named = PyObject_GetAttr(mine, name)) || PyList_Append(key, named) || PyList_Append(key, args[3]) ||
        !(full = PyList_AsTuple(key)) || !(kind = PyDict_GetItemWithError(known, full)))
        goto end;
    Py_INCREF(kind);
    PyObject *guard = PyObject_GetAttr(mine, lock);
    if (!guard || !(held = PyObject_CallMethodObjArgs(guard, acquire, NULL))) {
        Py_XDECREF(guard);
        goto end;
    }
    PyObject *made = enter_call(mine, kind, arrays), *error, *value_, *trace;
    PyErr_Fetch(&error, &value_, &trace);
    Py_XDECREF(PyObject_CallMethodObjArgs(guard, release, NULL));
    PyErr_Restore(error, value_, trace);
    Py_DECREF(guard);
    if (made)
        result = built(kind, made);
    Py_XDECREF(made);
end:
    Py_XDECREF(held);
    Py_XDECREF(named);
    Py_XDECREF(kind);
    Py_XDECREF(full);
    Py_XDECREF(key);
    Py_XDECREF(arrays);
    if (!result && !PyErr_Occurred())
        Py_RETURN_NONE;
    return result;
}

static PyMethodDef METHODS[] = {
    {"recorder_uses", uses, METH_VARARGS, "The class of promises, the classes of constants, what scans all the rest."},
    {"scan", scan, METH_VARARGS, "See engine/deferred/kinds.py."},
    {"promise", promise, METH_VARARGS, "See engine/deferred/recording.py."},
    {"once", (PyCFunction)(void *)once, METH_FASTCALL, "See engine/deferred/namespace.py."},
    {NULL, NULL, 0, NULL},
};

int rl_add_recorder(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
