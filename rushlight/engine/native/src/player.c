/* Small programs: a list of calls of kernels, played one after the other without a way back through Python.

   player(room, steps, offsets, integers, numbers, laid, given, flag, beside) makes one. ``room`` is memory of its own, for
   constants and what comes between. ``steps`` has a tuple for each call:

       the kernel's name, whether it is of doubles, how many arrays, integers and numbers it has,
       whether it belongs to the first ones, which say if the others are played at all,
       whether it is told how its arrays lie, how many lists of arrays it has, and whether its numbers are an array.

   ``offsets`` has two numbers for each array: which memory it is in, 0 for ``room``, that of an argument, counted from 1,
   or -1 if there is none, and how far in. ``integers`` are those of all steps, each followed by the lengths of its lists.
   ``laid`` has for each array of a step that is told so the number of elements and of dimensions, sizes and strides.
   ``given`` has two numbers for each argument: its size in bytes, and whether it is written. ``flag``: where in ``room``
   it says whether more than the first steps are played, or -1. ``beside``: other threads may have the interpreter meanwhile.

   The function that is made takes the arrays and returns that flag. Between its first and its last write to an argument
   nothing can come: it holds the interpreter all the time, unless it is one that others may run beside. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "arrays.h"
#include "kernels.h"
#include "player.h"

typedef struct {
    int (*run)(const rl_call *);
    rl_call call;
} step;

typedef struct {
    void **at; /* an operand of a step, and where it is */
    long memory, offset;
} operand;

typedef struct {
    PyMethodDef method;
    Py_buffer room, offsets, integers, numbers, laid, given;
    step *steps;
    long count, asking; /* steps, and the first ones of them */
    void **arrays;
    long *sizes;
    const ptrdiff_t **shapes, **strides;
    operand *operands; /* those that are in an argument's memory */
    long operand_count, argument_count;
    Py_buffer *buffers;
    long flag;
    int beside;
} player;

static void discard(PyObject *capsule)
{
    player *p = PyCapsule_GetPointer(capsule, NULL);
    Py_buffer *const held[] = {&p->room, &p->offsets, &p->integers, &p->numbers, &p->laid, &p->given};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        PyBuffer_Release(held[i]);
    free(p->steps), free(p->arrays), free(p->sizes), free(p->shapes), free(p->strides);
    free(p->operands), free(p->buffers), free(p);
}

static int run(const player *p, long from, long to)
{
    int status = RL_OK;
    for (long i = from; i < to && status == RL_OK; i++)
        status = p->steps[i].run(&p->steps[i].call);
    return status;
}

/* The memory of the arguments; how many were looked at before one that does not fit. */
static long take(player *p, PyObject *const *args)
{
    const long *given = p->given.buf;
    for (long i = 0; i < p->argument_count; i++) {
        if (rl_view(args[i], &p->buffers[i], PyBUF_ND | (given[2 * i + 1] ? PyBUF_WRITABLE : 0)))
            return i;
        if (p->buffers[i].len != given[2 * i])
            return i + 1;
    }
    return p->argument_count + 1;
}

static PyObject *play(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    player *p = PyCapsule_GetPointer(self, NULL);
    if (count != p->argument_count)
        return PyErr_Format(PyExc_TypeError, "a program takes %ld arrays, but got %zd", p->argument_count, count);
    long taken = take(p, args);
    int status = RL_OK, placed = 0;
    if (taken > p->argument_count) {
        for (long i = 0; i < p->operand_count; i++) {
            const operand *o = &p->operands[i];
            *o->at = (char *)p->buffers[o->memory - 1].buf + o->offset;
        }
        PyThreadState *thread = p->beside ? PyEval_SaveThread() : NULL;
        status = run(p, 0, p->asking);
        placed = status == RL_OK && (p->flag < 0 || ((const char *)p->room.buf)[p->flag]);
        if (placed)
            status = run(p, p->asking, p->count);
        if (thread)
            PyEval_RestoreThread(thread);
    }
    for (long i = 0; i < (taken < p->argument_count ? taken : p->argument_count); i++)
        PyBuffer_Release(&p->buffers[i]);
    if (taken <= p->argument_count) {
        PyErr_Clear();
        return PyErr_Format(PyExc_TypeError, "array %ld of a program is not as large as it was, or lies in another way",
                            taken);
    }
    if (status == RL_NO_MEMORY)
        return PyErr_NoMemory();
    if (status)
        return PyErr_Format(PyExc_IndexError, "a program met an index that is out of range");
    return PyBool_FromLong(placed);
}

/* Where the next of each is to be found, or put. */
typedef struct {
    const long *offset, *integer, *laid;
    const double *number;
    long array;
} cursor;

static void find(player *p, cursor *at, void **array)
{
    long memory = *at->offset++, offset = *at->offset++;
    if (memory == 0)
        *array = (char *)p->room.buf + offset;
    else if (memory > 0)
        p->operands[p->operand_count++] = (operand){array, memory, offset};
}

static void lay(player *p, cursor *at, long array)
{
    long size = *at->laid++, rank = *at->laid++;
    p->sizes[array] = size, p->shapes[array] = at->laid, p->strides[array] = at->laid + rank;
    at->laid += 2 * rank;
}

/* Fill in one step; 0 if there is no such kernel. */
static int describe(player *p, long which, PyObject *description, cursor *at)
{
    const char *name;
    long arrays, integers, numbers, lists;
    int is_double, asks, is_told, has_numbers;
    if (!PyArg_ParseTuple(description, "splllpplp", &name, &is_double, &arrays, &integers, &numbers, &asks, &is_told,
                          &lists, &has_numbers))
        return 0;
    const rl_kernel *kernel = rl_find(name, strlen(name), is_double);
    if (!kernel) {
        PyErr_Format(PyExc_KeyError, "there is no step %s", name);
        return 0;
    }
    step *s = &p->steps[which];
    s->run = kernel->run;
    s->call = (rl_call){p->arrays + at->array, p->sizes + at->array, p->shapes + at->array, p->strides + at->array,
                        at->integer, at->number, at->integer + integers};
    p->asking += asks;
    for (long i = 0; i < arrays; i++, at->array++) {
        find(p, at, &p->arrays[at->array]);
        if (is_told)
            lay(p, at, at->array);
    }
    if (has_numbers)
        find(p, at, (void **)&s->call.number);
    at->integer += integers + lists, at->number += numbers;
    return 1;
}

static int fill(player *p, PyObject *steps)
{
    long all = (long)(p->offsets.len / (2 * sizeof(long)));
    p->count = (long)PyTuple_Size(steps);
    p->argument_count = (long)(p->given.len / (2 * sizeof(long)));
    p->steps = calloc((size_t)p->count + 1, sizeof *p->steps);
    p->arrays = calloc((size_t)all + 1, sizeof *p->arrays);
    p->sizes = calloc((size_t)all + 1, sizeof *p->sizes);
    p->shapes = calloc((size_t)all + 1, sizeof *p->shapes);
    p->strides = calloc((size_t)all + 1, sizeof *p->strides);
    p->operands = calloc((size_t)all + 1, sizeof *p->operands);
    p->buffers = calloc((size_t)p->argument_count + 1, sizeof *p->buffers);
    if (!p->steps || !p->arrays || !p->sizes || !p->shapes || !p->strides || !p->operands || !p->buffers) {
        PyErr_NoMemory();
        return 0;
    }
    cursor at = {p->offsets.buf, p->integers.buf, p->laid.buf, p->numbers.buf, 0};
    for (long i = 0; i < p->count; i++)
        if (!describe(p, i, PyTuple_GetItem(steps, i), &at))
            return 0;
    return 1;
}

static PyObject *make(PyObject *module, PyObject *args)
{
    PyObject *steps;
    player *p = calloc(1, sizeof *p);
    PyObject *self = p ? PyCapsule_New(p, NULL, discard) : NULL;
    if (!self) {
        free(p);
        return PyErr_NoMemory();
    }
    PyObject *made = NULL;
    if (PyArg_ParseTuple(args, "w*O!y*y*y*y*y*lp", &p->room, &PyTuple_Type, &steps, &p->offsets, &p->integers,
                         &p->numbers, &p->laid, &p->given, &p->flag, &p->beside) &&
        fill(p, steps)) {
        p->method.ml_name = "play";
        p->method.ml_meth = (PyCFunction)(void (*)(void))play;
        p->method.ml_flags = METH_FASTCALL;
        made = PyCFunction_NewEx(&p->method, self, NULL);
    }
    Py_DECREF(self);
    return made;
}

static PyMethodDef METHODS[] = {{"player", make, METH_VARARGS, "A function that plays a small program."},
                                {NULL, NULL, 0, NULL}};

int rl_add_player(PyObject *module) { return PyModule_AddFunctions(module, METHODS); }
