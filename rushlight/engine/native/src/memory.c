/* Memory of NumPy's arrays that begins where a cache line does; that of large ones, where a page does.

   NumPy takes what malloc gives, which is aligned to 16 bytes: then every vector of 64 bytes that a kernel reads or writes
   lies in two cache lines, and XLA copies every array it is given. Large arrays that follow each other then differ by a line
   or two from whole pages, and a processor that compares the last 12 bits of addresses takes what a loop reads for what it has
   just written elsewhere, and waits. NumPy asks a handler for memory, and lets others set theirs (NEP 49); this one asks
   malloc for as much more as it may have to skip, and notes how much that was in the byte before. It is in force in the
   context that imports it: arrays made in other threads begin where they did. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "memory.h"

enum { LINE = 64, UNIT = 16, PAGE = 4096, LARGE = 1 << 16, HUGE_PAGES = 1 << 22 };

static size_t boundary(size_t size) { return size < LARGE ? LINE : PAGE; }

/* How far an array begins behind its base is in the byte before it, in multiples of 16, as malloc's are. */
static unsigned char *base_of(void *array)
{
    return (unsigned char *)array - UNIT * (size_t)(((unsigned char *)array)[-1] + 1);
}

static void *begin(unsigned char *base, size_t to)
{
    if (!base)
        return NULL;
    size_t shift = to - (uintptr_t)base % to; /* UNIT to ``to`` */
    base[shift - 1] = (unsigned char)(shift / UNIT - 1);
    return base + shift;
}

/* As NumPy does for its own: fewer page faults when large arrays are first written. */
static void *in_huge_pages(void *array, size_t size)
{
#ifdef MADV_HUGEPAGE
    if (array && size >= HUGE_PAGES) {
        uintptr_t begin = ((uintptr_t)array + PAGE - 1) / PAGE * PAGE;
        madvise((void *)begin, (uintptr_t)array + size - begin, MADV_HUGEPAGE); /* a wish: no harm if it fails */
    }
#endif
    return array;
}

static void *get(void *context, size_t size)
{
    size_t to = boundary(size);
    return size > SIZE_MAX - to ? NULL : in_huge_pages(begin(malloc(size + to), to), size);
}

static void *get_zeros(void *context, size_t count, size_t each)
{
    if (each && count > (SIZE_MAX - PAGE) / each)
        return NULL;
    size_t size = count * each, to = boundary(size);
    return in_huge_pages(begin(calloc(size + to, 1), to), size);
}

static void let_go(void *context, void *array, size_t size)
{
    if (array)
        free(base_of(array));
}

/* What was there stays as far from the base as it was until it is moved; there is room for it. */
static void *resize(void *context, void *array, size_t size)
{
    if (!array)
        return get(context, size);
    size_t before = (size_t)((unsigned char *)array - base_of(array)), to = boundary(size);
    if (size > SIZE_MAX - PAGE)
        return NULL;
    unsigned char *base = realloc(base_of(array), size + (before > to ? before : to));
    if (!base)
        return NULL;
    size_t now = to - (uintptr_t)base % to;
    if (now != before)
        memmove(base + now, base + before, size);
    return begin(base, to);
}

/* NumPy's structure of this name, version 1. */
static struct {
    char name[127];
    uint8_t version;
    void *context;
    void *(*malloc)(void *, size_t), *(*calloc)(void *, size_t, size_t), *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
} handler = {"rushlight", 1, NULL, get, get_zeros, resize, let_go};

enum { ABI_VERSION = 0, SET_HANDLER = 304, GET_HANDLER = 305 }; /* places in the table of NumPy's functions for C */

static int is_numpys_own(PyObject *capsule)
{
    const char *name = capsule ? PyCapsule_GetPointer(capsule, "mem_handler") : NULL;
    return name && !strcmp(name, "default_allocator");
}

/* True if arrays begin at cache lines from now on; somebody else's handler stays. */
static PyObject *align_arrays(PyObject *self, PyObject *nothing)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    PyObject *api = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
    void **table = api ? PyCapsule_GetPointer(api, NULL) : NULL;
    PyObject *before = NULL, *ours = NULL;
    if (table && ((unsigned (*)(void))table[ABI_VERSION])() >> 24 == 2) {
        PyObject *now = ((PyObject * (*)(void)) table[GET_HANDLER])();
        if (is_numpys_own(now) && (ours = PyCapsule_New(&handler, "mem_handler", NULL)))
            before = ((PyObject * (*)(PyObject *)) table[SET_HANDLER])(ours);
        Py_XDECREF(now);
    }
    Py_XDECREF(module);
    Py_XDECREF(api);
    Py_XDECREF(ours);
    Py_XDECREF(before);
    if (PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(before != NULL);
}

static PyMethodDef METHOD = {"align_arrays", align_arrays, METH_NOARGS, "Let NumPy's arrays begin at cache lines."};

int rl_add_memory(PyObject *module)
{
    PyObject *function = PyCFunction_NewEx(&METHOD, NULL, NULL);
    int failed = !function || PyModule_AddObjectRef(module, METHOD.ml_name, function);
    Py_XDECREF(function);
    return failed ? -1 : 0;
}
