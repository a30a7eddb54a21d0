/* Is a compiled function's world as it was? ``World._passes`` (compiler/guards.py) says what is looked at; this is the
   same walk without an iterator, a call and a truth for each thing that is found.

   unchanged(expected, cells, whole, holders, keys, getters, spaces, tensors, watched, growing): all are lists. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "guards.h"

enum { EXPECTED, CELLS, WHOLE, HOLDERS, KEYS, GETTERS, SPACES, TENSORS, WATCHED, GROWING, LISTS };

typedef struct {
    PyObject *const *lists;
    Py_ssize_t at; /* how many of the expected things were found */
} walk;

static PyObject *contents, *node, *grad; /* names */

static PyObject *next_expected(walk *w)
{
    return w->at < PyList_Size(w->lists[EXPECTED]) ? PyList_GetItem(w->lists[EXPECTED], w->at++) : NULL;
}

/* Is it what is expected next? ``found`` is a new reference, or NULL after an exception. */
static int meets(walk *w, PyObject *found)
{
    Py_XDECREF(found);
    return found && found == next_expected(w);
}

static int meets_attributes(walk *w, int list, PyObject *name)
{
    int same = 1;
    for (Py_ssize_t i = 0, n = PyList_Size(w->lists[list]); same && i < n; i++)
        same = meets(w, PyObject_GetAttr(PyList_GetItem(w->lists[list], i), name));
    return same;
}

static int meets_all_of(walk *w, PyObject *container)
{
    PyObject *each = container ? PyObject_GetIter(container) : NULL, *found;
    int same = each != NULL;
    while (same && (found = PyIter_Next(each)))
        same = meets(w, found);
    Py_XDECREF(each);
    return same && !PyErr_Occurred();
}

static int meets_whole(walk *w)
{
    int same = 1;
    for (Py_ssize_t i = 0, n = PyList_Size(w->lists[WHOLE]); same && i < n; i++)
        same = meets_all_of(w, PyList_GetItem(w->lists[WHOLE], i));
    return same;
}

static int meets_items(walk *w)
{
    int same = 1;
    for (Py_ssize_t i = 0, n = PyList_Size(w->lists[HOLDERS]); same && i < n; i++)
        same = meets(w, PyObject_GetItem(PyList_GetItem(w->lists[HOLDERS], i), PyList_GetItem(w->lists[KEYS], i)));
    for (Py_ssize_t i = 0, n = PyList_Size(w->lists[GETTERS]); same && i < n; i++) {
        PyObject *getter = PyList_GetItem(w->lists[GETTERS], i), *space = PyList_GetItem(w->lists[SPACES], i);
        PyObject *found = PyObject_CallFunctionObjArgs(getter, space, NULL);
        same = meets_all_of(w, found);
        Py_XDECREF(found);
    }
    return same;
}

static int meets_gradients(walk *w)
{
    int same = 1;
    for (Py_ssize_t i = 0, n = PyList_Size(w->lists[WATCHED]); same && i < n; i++) {
        PyObject *found = PyObject_GetAttr(PyList_GetItem(w->lists[WATCHED], i), grad);
        same = found && next_expected(w) == (found == Py_None ? Py_True : Py_False);
        Py_XDECREF(found);
    }
    return same;
}

static int meets_sizes(walk *w)
{
    int same = 1;
    for (Py_ssize_t i = 0, n = PyList_Size(w->lists[GROWING]); same && i < n; i++) {
        PyObject *expected = next_expected(w);
        same = expected && PyLong_AsSsize_t(expected) == PyObject_Size(PyList_GetItem(w->lists[GROWING], i));
    }
    return same && !PyErr_Occurred();
}

static PyObject *unchanged(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyList_Check(args[i]))
            count = -1;
    if (count != LISTS)
        return PyErr_Format(PyExc_TypeError, "unchanged takes %d lists", LISTS);
    walk w = {args, 0};
    int same = meets_attributes(&w, CELLS, contents) && meets_whole(&w) && meets_items(&w) &&
               meets_attributes(&w, TENSORS, node) && meets_gradients(&w) && meets_sizes(&w);
    if (PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(same && w.at == PyList_Size(args[EXPECTED]));
}

static PyMethodDef METHODS[] = {
    {"unchanged", (PyCFunction)(void (*)(void))unchanged, METH_FASTCALL, "Is everything found as it is expected?"},
    {NULL, NULL, 0, NULL}};

int rl_add_guards(PyObject *module)
{
    contents = PyUnicode_InternFromString("cell_contents");
    node = PyUnicode_InternFromString("_node"), grad = PyUnicode_InternFromString("_grad");
    return contents && node && grad ? PyModule_AddFunctions(module, METHODS) : -1;
}
