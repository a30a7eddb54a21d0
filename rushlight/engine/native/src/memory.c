/* Memory of NumPy's arrays that begins where a cache line does.

   NumPy takes what malloc gives, which is aligned to 16 bytes: then every vector of 64 bytes that a kernel reads or writes
   lies in two cache lines, and XLA copies every array it is given. NumPy asks a handler for memory, and lets others set
   theirs (NEP 49); this one asks malloc for LINE bytes more, begins at the next line, and notes how far that was in the
   byte before. It is in force in the context that imports it: arrays made in other threads begin where they did. */
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

enum { LINE = 64, PAGE = 4096, HUGE_PAGES = 1 << 22 };

static unsigned char *base_of(void *array) { return (unsigned char *)array - ((unsigned char *)array)[-1]; }

static void *begin_line(unsigned char *base)
{
    if (!base)
        return NULL;
    unsigned char shift = (unsigned char)(LINE - (uintptr_t)base % LINE); /* 1 to LINE: malloc's multiples of 16 */
    base[shift - 1] = shift;
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
    return size > SIZE_MAX - LINE ? NULL : in_huge_pages(begin_line(malloc(size + LINE)), size);
}

static void *get_zeros(void *context, size_t count, size_t each)
{
    if (each && count > (SIZE_MAX - LINE) / each)
        return NULL;
    return in_huge_pages(begin_line(calloc(count * each + LINE, 1)), count * each);
}

static void let_go(void *context, void *array, size_t size)
{
    if (array)
        free(base_of(array));
}

/* What was there stays as far from the base as it was until it is moved: at most LINE, so there is room for it. */
static void *resize(void *context, void *array, size_t size)
{
    if (!array)
        return get(context, size);
    size_t before = ((unsigned char *)array)[-1];
    unsigned char *base = size > SIZE_MAX - LINE ? NULL : realloc(base_of(array), size + LINE);
    if (!base)
        return NULL;
    size_t now = LINE - (uintptr_t)base % LINE;
    if (now != before)
        memmove(base + now, base + before, size);
    return begin_line(base);
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
