/* What the deferred engine does for every recorded call; `scan` and `promise` in engine/deferred/ are the definition. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "recorder.h"

static PyObject *promise_type, *leaves, *other; /* Deferred; classes of constants; `scan` itself, for all the rest */
static PyObject *aval, *shape, *dtype, *place, *value, *recording, *slot, *flight, *owned, *enter;

static PyObject *uses(PyObject *module, PyObject *args)
{
    PyObject *given[3];
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &given[2]))
        return NULL;
    PyObject **kept[] = {&promise_type, &leaves, &other};
    for (int i = 0; i < 3; i++) {
        PyObject *before = *kept[i];
        *kept[i] = Py_NewRef(given[i]);
        Py_XDECREF(before);
    }
    static const struct { PyObject **name; const char *text; } names[] = {
        {&aval, "aval"}, {&shape, "shape"}, {&dtype, "dtype"}, {&place, "place"}, {&value, "value"},
        {&recording, "recording"}, {&slot, "slot"}, {&flight, "flight"}, {&owned, "owned"}, {&enter, "_enter"}};
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

static PyObject *promise(PyObject *module, PyObject *args)
{
    PyObject *mine, *where, *arrays, *outputs;
    Py_ssize_t number;
    if (!PyArg_ParseTuple(args, "OOO!O!n", &mine, &where, &PyList_Type, &arrays, &PyTuple_Type, &outputs, &number))
        return NULL;
    PyObject *sources = PyList_New(0), *made = PyList_New(0);
    int failed = !sources || !made;
    for (Py_ssize_t i = 0; !failed && i < PyList_Size(arrays); i++)
        failed = put(sources, source(PyList_GetItem(arrays, i), mine));
    for (Py_ssize_t i = 0; !failed && i < PyTuple_Size(outputs); i++)
        failed = put(made, promised(PyTuple_GetItem(outputs, i), where, mine, number + i));
    PyObject *both = failed ? NULL : PyTuple_Pack(2, sources, made);
    Py_XDECREF(sources);
    Py_XDECREF(made);
    return both;
}

static PyMethodDef METHODS[] = {
    {"recorder_uses", uses, METH_VARARGS, "The class of promises, the classes of constants, what scans all the rest."},
    {"scan", scan, METH_VARARGS, "See engine/deferred/kinds.py."},
    {"promise", promise, METH_VARARGS, "See engine/deferred/recording.py."},
    {NULL, NULL, 0, NULL},
};

int rl_add_recorder(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
