/* Finds a registered name of a module in its table; `Reader` in nn/attributes.py is the definition. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

#include "reader.h"

typedef struct {
    PyObject_HEAD
    PyObject *table, *name;
} reader;

static int begin(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *table, *name;
    if (!PyArg_ParseTuple(args, "UU", &table, &name))
        return -1;
    reader *r = (reader *)self;
    Py_XDECREF(r->table);
    Py_XDECREF(r->name);
    r->table = Py_NewRef(table), r->name = Py_NewRef(name);
    return 0;
}

static void discard(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((reader *)self)->table);
    Py_XDECREF(((reader *)self)->name);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *get(PyObject *self, PyObject *module, PyObject *owner)
{
    const reader *r = (reader *)self;
    if (!module || module == Py_None) {
        PyObject *name = owner ? PyObject_GetAttrString(owner, "__name__") : NULL;
        PyErr_Clear();
        PyErr_Format(PyExc_AttributeError, "type object '%S' has no attribute '%U'", name ? name : Py_None, r->name);
        Py_XDECREF(name);
        return NULL;
    }
    PyObject *state = PyObject_GenericGetDict(module, NULL), *table = NULL, *value = NULL;
    if (state && (table = PyDict_GetItemWithError(state, r->table)))
        value = PyObject_GetItem(table, r->name);
    Py_XDECREF(state);
    if (!value && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_KeyError)))
        PyErr_SetObject(PyExc_AttributeError, r->name); /* on to __getattr__ */
    return value;
}

static PyMemberDef MEMBERS[] = {{"table", T_OBJECT_EX, offsetof(reader, table), READONLY, NULL},
                                {"name", T_OBJECT_EX, offsetof(reader, name), READONLY, NULL},
                                {NULL, 0, 0, 0, NULL}};
static PyType_Slot SLOTS[] = {{Py_tp_init, begin}, {Py_tp_dealloc, discard}, {Py_tp_descr_get, get},
                              {Py_tp_members, MEMBERS}, {0, NULL}};
static PyType_Spec SPEC = {"rushlight.nn.attributes.Reader", sizeof(reader), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           SLOTS};

int rl_add_reader(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&SPEC);
    int failed = !type || PyModule_AddObjectRef(module, "Reader", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}
