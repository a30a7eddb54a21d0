#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "slots.h"

#define HELD(object, slot) (*(PyObject **)((char *)(object) + (slot)->place))

PyObject *rl_make(PyObject *class)
{
    return ((allocfunc)PyType_GetSlot((PyTypeObject *)class, Py_tp_alloc))((PyTypeObject *)class, 0);
}

/* Where in the object is what it was given as this attribute? 0: nowhere, or in more than one place. */
static Py_ssize_t place_of(PyObject *sample, PyObject *name, Py_ssize_t size)
{
    PyObject *mark = PyList_New(0);
    Py_ssize_t found = 0, times = 0;
    if (mark && !PyObject_SetAttr(sample, name, mark)) {
        for (Py_ssize_t at = sizeof(PyObject); at + (Py_ssize_t)sizeof(PyObject *) <= size; at += sizeof(PyObject *))
            if (*(PyObject **)((char *)sample + at) == mark)
                found = at, times++;
        PyObject_DelAttr(sample, name);
    }
    Py_XDECREF(mark);
    return times == 1 ? found : 0;
}

static int is_slot(PyObject *class, PyObject *name)
{
    PyObject *own = PyObject_GetAttrString(class, "__dict__"), *entry = own ? PyObject_GetItem(own, name) : NULL;
    PyObject *kind = entry ? PyObject_GetAttrString((PyObject *)Py_TYPE(entry), "__name__") : NULL;
    int is = kind && PyUnicode_Check(kind) && !PyUnicode_CompareWithASCIIString(kind, "member_descriptor");
    Py_XDECREF(own);
    Py_XDECREF(entry);
    Py_XDECREF(kind);
    PyErr_Clear(); /* it has no such name */
    return is;
}

static int find(rl_slot *slot, PyObject *class)
{
    if (!is_slot(class, slot->name))
        return 0;
    PyObject *size = PyObject_GetAttrString(class, "__basicsize__"), *sample = size ? rl_make(class) : NULL;
    Py_ssize_t place = sample ? place_of(sample, slot->name, PyLong_AsSsize_t(size)) : 0;
    Py_XDECREF(size);
    Py_XDECREF(sample);
    PyErr_Clear();
    if (place)
        slot->class = Py_NewRef(class), slot->place = place; /* for as long as the process lives */
    return place != 0;
}

int rl_find_slots(rl_slot *const *slots, size_t count, PyObject *classes)
{
    for (size_t i = 0; i < count; i++) {
        if (!slots[i]->name && !(slots[i]->name = PyUnicode_InternFromString(slots[i]->text)))
            return -1;
        for (Py_ssize_t k = 0; !slots[i]->class && k < PyTuple_Size(classes); k++)
            find(slots[i], PyTuple_GetItem(classes, k));
    }
    return 0;
}

static int is_known(PyObject *object, const rl_slot *slot)
{
    return slot->class && PyObject_TypeCheck(object, (PyTypeObject *)slot->class);
}

PyObject *rl_get(PyObject *object, const rl_slot *slot)
{
    PyObject *found = is_known(object, slot) ? HELD(object, slot) : NULL;
    return found ? Py_NewRef(found) : PyObject_GetAttr(object, slot->name); /* a class may have a property in its place */
}

PyObject *rl_peek(PyObject *object, const rl_slot *slot)
{
    PyObject *found = rl_get(object, slot);
    Py_XDECREF(found);
    return found ? found : Py_None;
}

int rl_put(PyObject *object, const rl_slot *slot, PyObject *value)
{
    if (!is_known(object, slot))
        return PyObject_SetAttr(object, slot->name, value);
    PyObject *before = HELD(object, slot);
    HELD(object, slot) = Py_NewRef(value);
    Py_XDECREF(before);
    return 0;
}
