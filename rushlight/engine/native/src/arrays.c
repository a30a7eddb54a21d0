#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "arrays.h"

enum { ORDERED = 0x1, ALIGNED = 0x100, WRITABLE = 0x400 }; /* flags of an array; below 0: writing to it warns */

static struct {
    const char *name, *format;
    Py_ssize_t size;
    PyObject *dtype; /* NumPy has one object for each */
} kinds[] = {{"float32", "f", 4, NULL}, {"float64", "d", 8, NULL}, {"int64", "q", 8, NULL},
             {"uint32", "I", 4, NULL},  {"bool", "?", 1, NULL}};
enum { KINDS = sizeof kinds / sizeof *kinds };
static PyObject *array_type; /* NULL: arrays are not as we think */

const rl_array *rl_array_of(PyObject *object)
{
    return (PyObject *)Py_TYPE(object) == array_type ? (const rl_array *)object : NULL;
}

static int read_array(const rl_array *a, Py_buffer *view, int flags)
{
    int ordered = (flags & PyBUF_STRIDES) != PyBUF_STRIDES, writes = flags & PyBUF_WRITABLE;
    int wanted = ALIGNED | (ordered ? ORDERED : 0) | (writes ? WRITABLE : 0), kind = 0;
    while (kind < KINDS && kinds[kind].dtype != a->dtype)
        kind++;
    if (kind == KINDS || a->flags < 0 || (a->flags & wanted) != wanted)
        return 0;
    view->obj = NULL; /* nothing to release */
    view->buf = a->data, view->format = (char *)kinds[kind].format, view->itemsize = view->len = kinds[kind].size;
    view->ndim = a->ndim, view->shape = a->shape, view->strides = a->strides;
    for (int i = 0; i < a->ndim; i++)
        view->len *= a->shape[i];
    return 1;
}

int rl_view(PyObject *object, Py_buffer *view, int flags)
{
    const rl_array *array = rl_array_of(object);
    return array && read_array(array, view, flags) ? 0 : PyObject_GetBuffer(object, view, flags);
}

/* Is what an attribute of the sample says, and it holds, found in its memory? */
static int holds(PyObject *sample, const char *name, const PyObject *found)
{
    PyObject *said = PyObject_GetAttrString(sample, name);
    Py_XDECREF(said);
    return said && said == found;
}

static int is_as_we_think(PyObject *type, PyObject *sample)
{
    PyObject *size = PyObject_GetAttrString(type, "__basicsize__"), *flags = PyObject_GetAttrString(sample, "flags");
    PyObject *bits = flags ? PyObject_GetAttrString(flags, "num") : NULL;
    const rl_array *a = (const rl_array *)sample;
    Py_buffer view = {0};
    int same = size && bits && PyLong_AsSsize_t(size) >= (Py_ssize_t)sizeof *a &&
               !PyObject_GetBuffer(sample, &view, PyBUF_STRIDES) && view.ndim == 2 && a->ndim == 2 &&
               a->data == view.buf && a->flags == PyLong_AsLong(bits) &&
               !memcmp(a->shape, view.shape, 2 * sizeof *a->shape) &&
               !memcmp(a->strides, view.strides, 2 * sizeof *a->strides) && holds(sample, "base", a->base) &&
               holds(sample, "dtype", a->dtype);
    PyBuffer_Release(&view);
    Py_XDECREF(size);
    Py_XDECREF(flags);
    Py_XDECREF(bits);
    return same && !PyErr_Occurred();
}

int rl_learn_arrays(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy"), *type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    PyObject *whole = numpy ? PyObject_CallMethod(numpy, "zeros", "((ii))", 2, 3) : NULL;
    PyObject *turned = whole ? PyObject_GetAttrString(whole, "T") : NULL;
    int failed = !type || !turned;
    for (int i = 0; !failed && i < KINDS; i++)
        failed = !(kinds[i].dtype = PyObject_CallMethod(numpy, "dtype", "s", kinds[i].name));
    if (!failed && is_as_we_think(type, turned))
        array_type = Py_NewRef(type);
    Py_XDECREF(numpy);
    Py_XDECREF(type);
    Py_XDECREF(whole);
    Py_XDECREF(turned);
    if (failed)
        return -1;
    PyErr_Clear();
    return 0;
}
