/* The Python module: a function for each kernel, which looks up memory, lets go of the interpreter and calls it. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "arrays.h"
#include "calls.h"
#include "guards.h"
#include "kernels.h"
#include "memory.h"
#include "player.h"
#include "reader.h"
#include "recorder.h"
#include "tape.h"

/* RL_FAMILIES_avx2(F) is F(activations, avx2, avx2) F(norms, avx2, avx2) …, with the sets of which floats and doubles are;
   the build finds the files and defines it, and the same for other sets. */
#define DECLARE(family, single, twice) extern const rl_kernel rl_##family##_##single##_f32[], rl_##family##_##twice##_f64[];
#define ENTRIES(family, single, twice) {rl_##family##_##single##_f32, rl_##family##_##twice##_f64},

typedef const rl_kernel *family[2]; /* tables for float and double */

RL_FAMILIES_base(DECLARE)
static const family base[] = {RL_FAMILIES_base(ENTRIES)};
#ifdef RL_X86
RL_FAMILIES_avx2(DECLARE)
RL_FAMILIES_avx512(DECLARE)
static const family avx2[] = {RL_FAMILIES_avx2(ENTRIES)};
static const family avx512[] = {RL_FAMILIES_avx512(ENTRIES)};
#endif

enum { FEW = 24, MOST = 32 }; /* arrays that need no memory of their own; arguments that are no arrays */

typedef struct {
    PyMethodDef method;
    const rl_kernel *kernel[2];
} entry;

typedef struct {
    Py_buffer few[FEW], *buffers;
    void *few_arrays[FEW], **arrays;
    long few_sizes[FEW], *sizes;
    const Py_ssize_t *few_shapes[FEW], **shapes, *few_strides[FEW], **strides;
    long integers[MOST], lists[MOST];
    double numbers[MOST];
    int count, integer_count, number_count, list_count;
    int dtype; /* of the reals: 0 float, 1 double, -1 not known yet */
    long bytes;
} arguments;

static const char *const MEANING[] = {['x'] = "float32 or float64", ['q'] = "int64", ['u'] = "uint32", ['b'] = "bool"};

static int refuse(const char *name, Py_ssize_t position, const char *why)
{
    PyErr_Format(PyExc_TypeError, "kernel %s: argument %zd %s", name, position + 1, why);
    return -1;
}

/* Is the format, of one letter, that of the kind? A real also decides the dtype of the call, or must agree with it. */
static int fits(arguments *a, char kind, const char *format, Py_ssize_t itemsize)
{
    char letter = format ? format[0] : 'B';
    if (letter && format && format[1])
        return 0;
    switch (kind) {
    case 'x': {
        int dtype = letter == 'f' ? 0 : letter == 'd' ? 1 : -1;
        if (dtype < 0 || (a->dtype >= 0 && dtype != a->dtype))
            return 0;
        a->dtype = dtype;
        return 1;
    }
    case 'q':
        return itemsize == 8 && (letter == 'l' || letter == 'q');
    case 'u':
        return itemsize == 4 && (letter == 'I' || letter == 'L');
    default:
        return itemsize == 1 && (letter == '?' || letter == 'B');
    }
}

static int take_array(arguments *a, const char *name, Py_ssize_t position, char letter, PyObject *object)
{
    int writes = letter == 'y' || letter == 'S' || letter == 'Q' || letter == 'U' || letter == 'B';
    int anyhow = letter == 's' || letter == 'S';
    char kind = letter == 'y' || anyhow ? 'x' : (char)(writes ? letter + 32 : letter);
    Py_buffer *buffer = &a->buffers[a->count];
    int flags = (anyhow ? PyBUF_STRIDES : PyBUF_ND) | PyBUF_FORMAT | (writes ? PyBUF_WRITABLE : 0);
    if (rl_view(object, buffer, flags)) {
        PyErr_Clear();
        return refuse(name, position, writes ? "is no writable array in C order" : "is no array in C order");
    }
    a->arrays[a->count] = buffer->buf;
    a->shapes[a->count] = buffer->shape, a->strides[a->count] = buffer->strides;
    a->sizes[a->count] = (long)(buffer->len / (buffer->itemsize ? buffer->itemsize : 1));
    a->bytes += (long)buffer->len;
    a->count++;
    if (fits(a, kind, buffer->format, buffer->itemsize))
        return 0;
    PyErr_Format(PyExc_TypeError, "kernel %s: argument %zd is not of dtype %s, or not of the others'", name,
                 position + 1, MEANING[(int)kind]);
    return -1;
}

static int take_none(arguments *a)
{
    memset(&a->buffers[a->count], 0, sizeof(Py_buffer)); /* nothing to release */
    a->arrays[a->count] = NULL;
    a->shapes[a->count] = a->strides[a->count] = NULL;
    a->sizes[a->count] = 0;
    a->count++;
    return 0;
}

static int take_list(arguments *a, const char *name, Py_ssize_t position, char letter, PyObject *list)
{
    Py_ssize_t length = PyList_Size(list);
    for (Py_ssize_t i = 0; i < length; i++)
        if (take_array(a, name, position, letter == 'X' ? 'x' : 'y', PyList_GetItem(list, i)))
            return -1;
    a->lists[a->list_count++] = (long)length;
    return 0;
}

static int take(arguments *a, const char *name, Py_ssize_t position, char letter, PyObject *object)
{
    if (letter == 'i') {
        a->integers[a->integer_count++] = PyLong_AsLong(object);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (letter == 'd') {
        a->numbers[a->number_count++] = PyFloat_AsDouble(object);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (letter == 'X' || letter == 'Y')
        return take_list(a, name, position, letter, object);
    return take_array(a, name, position, letter, object);
}

/* Memory for the arrays of lists, of which there may be any number. */
static int make_room(arguments *a, const char *name, const char *takes, PyObject *const *args, Py_ssize_t count)
{
    a->buffers = a->few, a->arrays = a->few_arrays, a->sizes = a->few_sizes;
    a->shapes = a->few_shapes, a->strides = a->few_strides;
    if (!strpbrk(takes, "XY"))
        return 0;
    size_t total = (size_t)count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyList_Check(args[i]))
            total += (size_t)PyList_Size(args[i]);
    if (total <= FEW)
        return 0;
    a->buffers = PyMem_Malloc(total * (sizeof(Py_buffer) + 3 * sizeof(void *) + sizeof(long)));
    if (!a->buffers) {
        a->buffers = a->few;
        PyErr_NoMemory();
        return -1;
    }
    a->arrays = (void **)(a->buffers + total);
    a->shapes = (const Py_ssize_t **)(a->arrays + total), a->strides = a->shapes + total;
    a->sizes = (long *)(a->strides + total);
    return 0;
}

static int take_all(arguments *a, const entry *e, PyObject *const *args, Py_ssize_t count)
{
    const char *name = e->kernel[0]->name, *takes = e->kernel[0]->takes;
    if (make_room(a, name, takes, args, count))
        return -1;
    Py_ssize_t position = 0;
    for (const char *letter = takes; *letter; letter++) {
        if (*letter == ' ')
            continue;
        if (position == count)
            break;
        int optional = letter[1] == '?';
        if ((*letter == 'X' || *letter == 'Y') && !PyList_Check(args[position]))
            return refuse(name, position, "is no list");
        if (optional && args[position] == Py_None)
            take_none(a);
        else if (take(a, name, position, *letter, args[position]))
            return -1;
        letter += optional;
        position++;
    }
    size_t expected = 0;
    for (const char *letter = takes; *letter; letter++)
        expected += *letter != ' ' && *letter != '?';
    if ((size_t)count != expected) {
        PyErr_Format(PyExc_TypeError, "kernel %s takes %zu arguments, but got %zd", name, expected, count);
        return -1;
    }
    return 0;
}

static int run(const arguments *a, const entry *e)
{
    rl_call call = {a->arrays, a->sizes, a->shapes, a->strides, a->integers, a->numbers, a->lists};
    int (*kernel)(const rl_call *) = e->kernel[a->dtype == 1]->run;
    int status;
    /* Done sooner than another thread could use the time; or what is written is a random state (the only uint32 that
       is), of which two threads may draw. */
    if (a->bytes < 1 << 15 || strchr(e->kernel[0]->takes, 'U'))
        return kernel(&call);
    Py_BEGIN_ALLOW_THREADS
    status = kernel(&call);
    Py_END_ALLOW_THREADS
    return status;
}

static PyObject *call_kernel(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const entry *e = PyCapsule_GetPointer(self, NULL);
    arguments a;
    a.count = a.integer_count = a.number_count = a.list_count = 0;
    a.dtype = -1, a.bytes = 0;
    int status = take_all(&a, e, args, count) ? -1 : run(&a, e);
    for (int i = 0; i < a.count; i++)
        PyBuffer_Release(&a.buffers[i]);
    if (a.buffers != a.few)
        PyMem_Free(a.buffers);
    if (status == RL_NO_MEMORY)
        return PyErr_NoMemory();
    if (status == RL_BAD_INDEX)
        return PyErr_Format(PyExc_IndexError, "kernel %s: an index is out of range", e->method.ml_name);
    if (status)
        return NULL;
    return Py_NewRef(Py_None);
}

static PyObject *set_threads(PyObject *self, PyObject *n)
{
    long threads = PyLong_AsLong(n);
    if (PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS /* a loop may be running, and its thread may want the interpreter before this one */
    rl_set_threads((int)(threads < 1 ? 1 : threads > 1 << 20 ? 1 << 20 : threads));
    Py_END_ALLOW_THREADS
    return Py_NewRef(Py_None);
}

static PyObject *get_threads(PyObject *self, PyObject *nothing) { return PyLong_FromLong(rl_get_threads()); }

static int add_kernel(PyObject *module, const rl_kernel *single, const rl_kernel *twice)
{
    entry *e = PyMem_Calloc(1, sizeof(entry)); /* for as long as the process lives */
    if (!e)
        return -1;
    e->kernel[0] = single, e->kernel[1] = twice;
    e->method.ml_name = single->name, e->method.ml_doc = single->takes;
    e->method.ml_meth = (PyCFunction)(void (*)(void))call_kernel;
    e->method.ml_flags = METH_FASTCALL;
    PyObject *self = PyCapsule_New(e, NULL, NULL);
    PyObject *function = self ? PyCFunction_NewEx(&e->method, self, NULL) : NULL;
    Py_XDECREF(self);
    int failed = !function || PyModule_AddObjectRef(module, single->name, function);
    Py_XDECREF(function);
    return failed ? -1 : 0;
}

/* The best set that this processor has, or the one that RUSHLIGHT_KERNELS names, for tests. */
static const family *chosen(const char **name)
{
    const char *asked = getenv("RUSHLIGHT_KERNELS");
#ifdef RL_X86
    int some = asked && *asked, any = !some || !strcmp(asked, "1");
    __builtin_cpu_init();
    int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (has_avx512 && (any || !strcmp(asked, "avx512")))
        return *name = "avx512", avx512;
    if (has_avx2 && (any || strcmp(asked, "base")))
        return *name = "avx2", avx2;
#endif
    (void)asked;
    return *name = "base", base;
}

static const family *families; /* of the set that was chosen */
enum { FAMILIES = sizeof base / sizeof *base };

const rl_kernel *rl_find(const char *name, size_t length, int is_double)
{
    for (int f = 0; f < FAMILIES; f++)
        for (const rl_kernel *kernel = families[f][is_double]; kernel->name; kernel++)
            if (strlen(kernel->name) == length && !memcmp(kernel->name, name, length))
                return kernel;
    return NULL;
}

extern void *rl_ffi_handler(void *);

/* What jax.ffi.register_ffi_target takes. */
static int add_handler(PyObject *module)
{
    PyObject *handler = PyCapsule_New((void *)(uintptr_t)rl_ffi_handler, NULL, NULL);
    int failed = !handler || PyModule_AddObjectRef(module, "xla_handler", handler);
    Py_XDECREF(handler);
    return failed ? -1 : 0;
}

static int fill(PyObject *module)
{
    const char *name;
    families = chosen(&name);
    for (int f = 0; f < FAMILIES; f++)
        for (int i = 0; families[f][0][i].name; i++)
            if (families[f][0][i].name[0] != '.' && add_kernel(module, &families[f][0][i], &families[f][1][i]))
                return -1;
    if (rl_learn_arrays() || add_handler(module) || rl_add_recorder(module) || rl_add_player(module) ||
        rl_add_guards(module) || rl_add_calls(module) || rl_add_tape(module) || rl_add_reader(module) ||
        rl_add_memory(module))
        return -1;
    return PyModule_AddStringConstant(module, "instructions", name);
}

static PyMethodDef METHODS[] = {
    {"set_threads", set_threads, METH_O, "How many threads a kernel may use."},
    {"get_threads", get_threads, METH_NOARGS, "How many threads a kernel may use."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, fill}, {0, NULL}};
static PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_kernels", "Kernels in C.", 0, METHODS, SLOTS, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&MODULE); }
