/* Programs: a list of calls of kernels, played one after the other without a way back through Python.

   player(room, steps, offsets, integers, numbers, laid, given, flag, beside, stage) makes one. ``room`` is memory of its
   own, for constants and, in a small program, for what comes between; in others that is on the stage, which has so many
   bytes and which all programs share. ``steps`` has a tuple for each call:

       the kernel's name, whether it is of doubles, how many arrays, integers and numbers it has,
       whether it belongs to the first ones, which say if the others are played at all,
       whether it is told how its arrays lie, how many lists of arrays it has, and whether its numbers are an array.

   ``offsets`` has two numbers for each array: which memory it is in, 0 for ``room``, that of an argument, counted from 1,
   NOWHERE if there is none, STAGE or OWN, and how far in. ``integers`` are those of all steps, each followed by the lengths
   of its lists.
   ``laid`` has for each array of a step that is told so the number of elements and of dimensions, sizes and strides.
   ``given`` has two numbers for each argument: its size in bytes, and whether it is written. ``flag``: where in ``room``
   it says whether more than the first steps are played, or -1. ``beside``: during so many steps other threads may have the
   interpreter.

   The function that is made takes the arrays and returns that flag. Between its first and its last write to an argument
   nothing can come: it holds the interpreter from there on.

   Loops over the same elements are done together, in tiles that stay in the first-level cache, which threads share out. Such a
   group is a step ".together", its integers are

       how many steps follow that belong to it, the bytes that a thread needs for what only they use (OWN memory),
       rank, the sizes of the loop,

   and the integers of those steps are the strides in bytes of each of its operands. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "arrays.h"
#include "kernels.h"
#include "player.h"

enum { NOWHERE = -1, STAGE = -2, OWN = -3 }; /* as in compiler/score.py */
enum { TILE = 2048, PIECE = 4, DIMENSIONS = 8, OPERANDS = 4 }; /* TILE: elements, as in compiler/groups.py; PIECE: tiles */

typedef struct {
    int (*run)(const rl_call *); /* NULL: a group */
    rl_call call;
    long arrays;
} step;

typedef struct {
    void **at; /* an operand of a step, and where it is: an argument, counted from 1, or 0 for the stage */
    long memory, offset;
} operand;

typedef struct {
    PyMethodDef method;
    Py_buffer room, offsets, integers, numbers, laid, given;
    step *steps;
    long count, asking; /* steps, and the first ones of them */
    void **arrays;
    long *sizes; /* how many elements; of an operand in a group, whether it is in a thread's OWN memory */
    const ptrdiff_t **shapes, **strides;
    operand *operands; /* those that are elsewhere in each call */
    long operand_count, argument_count;
    Py_buffer *buffers;
    long flag, beside, stage;
    PyThread_type_lock lock; /* held by the thread that plays it */
} player;

/* -- the stage: memory that all programs use, one after the other; who holds the interpreter may look at these -------- */

static struct {
    char *memory;
    size_t bytes;
    long users; /* programs that need it: with the last one it goes */
    int taken;
} stage;

enum { PAGE = 4096 }; /* where large arrays begin, as in compiler/places.py */

/* The stage, or, if another thread plays on it, memory that is like it; NULL if there is none. */
static char *enter(size_t bytes)
{
    void *made = NULL;
    if (stage.taken)
        return posix_memalign(&made, PAGE, bytes) ? NULL : made;
    if (stage.bytes < bytes) {
        free(stage.memory);
        stage.memory = NULL, stage.bytes = 0;
        if (posix_memalign(&made, PAGE, bytes))
            return NULL;
        stage.memory = made, stage.bytes = bytes;
    }
    stage.taken = 1;
    return stage.memory;
}

static void leave(char *memory)
{
    if (memory == stage.memory)
        stage.taken = 0;
    else
        free(memory);
}

/* What a program has for as long as it is there: the stage, and a lock where two threads could play it at once. */
static int hold(player *p)
{
    stage.users += p->stage > 0;
    if (p->beside && !(p->lock = PyThread_allocate_lock())) {
        PyErr_NoMemory();
        return 0;
    }
    return 1;
}

static void let_go(player *p)
{
    if (p->lock)
        PyThread_free_lock(p->lock);
    stage.users -= p->stage > 0;
    if (!stage.users && !stage.taken) {
        free(stage.memory);
        stage.memory = NULL, stage.bytes = 0;
    }
}

static void discard(PyObject *capsule)
{
    player *p = PyCapsule_GetPointer(capsule, NULL);
    let_go(p);
    Py_buffer *const held[] = {&p->room, &p->offsets, &p->integers, &p->numbers, &p->laid, &p->given};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        PyBuffer_Release(held[i]);
    free(p->steps), free(p->arrays), free(p->sizes), free(p->shapes), free(p->strides);
    free(p->operands), free(p->buffers), free(p);
}

/* -- groups ----------------------------------------------------------------------------------------------------------- */

/* A loop is cut along its last two dimensions: tiles have so many rows and columns, at the ends fewer. */
typedef struct {
    const step *steps;
    long count, own, rank;
    const long *size;
    long rows, columns, tiles[DIMENSIONS]; /* how many there are along each dimension */
    int no_memory;
} group;

/* One step on the tile that begins at an index. What is in own memory has nothing but the tile there. */
static int on_tile(const step *s, const group *g, const long *index, long rows, long columns, char *own)
{
    void *array[OPERANDS];
    long across[OPERANDS], along[OPERANDS], rank = g->rank, integer[3 + 2 * OPERANDS];
    int in_one = 1;
    for (long o = 0; o < s->arrays; o++) {
        const long *stride = s->call.integer + o * rank;
        along[o] = stride[rank - 1];
        across[o] = rank > 1 ? stride[rank - 2] : 0;
        if (s->call.size[o]) {
            array[o] = own + (size_t)s->call.array[o];
            across[o] = columns * along[o];
        } else {
            char *at = s->call.array[o];
            for (long d = 0; d < rank; d++)
                at += index[d] * stride[d];
            array[o] = at;
        }
        in_one &= rows == 1 || across[o] == columns * along[o];
    }
    long *to = integer;
    if (in_one)
        *to++ = 1, *to++ = rows * columns;
    else
        *to++ = 2, *to++ = rows, *to++ = columns;
    for (long o = 0; o < s->arrays; o++) {
        if (!in_one)
            *to++ = across[o];
        *to++ = along[o];
    }
    return s->run(&(rl_call){.array = array, .integer = integer, .number = s->call.number});
}

static void some_tiles(void *context, long begin, long end)
{
    group *g = context;
    long last = g->rank - 1;
    char *own = rl_scratch((size_t)g->own + 1);
    if (!own) {
        g->no_memory = 1;
        return;
    }
    for (long tile = begin; tile < end; tile++) {
        long index[DIMENSIONS], left = tile, rows = 1;
        for (long d = last; d >= 0; d--) {
            index[d] = left % g->tiles[d];
            left /= g->tiles[d];
        }
        index[last] *= g->columns;
        long columns = g->size[last] - index[last] < g->columns ? g->size[last] - index[last] : g->columns;
        if (last) {
            index[last - 1] *= g->rows;
            rows = g->size[last - 1] - index[last - 1] < g->rows ? g->size[last - 1] - index[last - 1] : g->rows;
        }
        for (long i = 0; i < g->count; i++)
            on_tile(&g->steps[i], g, index, rows, columns, own);
    }
}

static int together(const step *s)
{
    const long *told = s->call.integer;
    group g = {.steps = s + 1, .count = told[0], .own = told[1], .rank = told[2], .size = told + 3};
    long last = g.rank - 1, columns = g.size[last], tiles = 1;
    g.columns = columns < TILE ? columns : TILE;
    g.rows = TILE / g.columns;
    for (long d = 0; d <= last; d++) {
        long step = d == last ? g.columns : d == last - 1 ? g.rows : 1;
        g.tiles[d] = (g.size[d] + step - 1) / step;
        tiles *= g.tiles[d];
    }
    rl_parallel(some_tiles, &g, tiles, PIECE);
    return g.no_memory ? RL_NO_MEMORY : RL_OK;
}

/* -- playing ---------------------------------------------------------------------------------------------------------- */

static int run(const player *p, long from, long to)
{
    int status = RL_OK;
    for (long i = from; i < to && status == RL_OK; i++) {
        const step *s = &p->steps[i];
        if (s->run)
            status = s->run(&s->call);
        else {
            status = together(s);
            i += s->call.integer[0];
        }
    }
    return status;
}

/* As ``run``; the first steps of all without the interpreter. */
static int run_some(const player *p, long from, long to)
{
    long beside = to < p->beside ? to : p->beside;
    int status = RL_OK;
    if (from < beside) {
        PyThreadState *thread = PyEval_SaveThread();
        status = run(p, from, beside);
        PyEval_RestoreThread(thread);
        from = beside;
    }
    return status == RL_OK ? run(p, from, to) : status;
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

/* All of it, on arrays whose memory was taken. */
static int perform(player *p, char *memory, int *placed)
{
    for (long i = 0; i < p->operand_count; i++) {
        const operand *o = &p->operands[i];
        *o->at = (o->memory ? (char *)p->buffers[o->memory - 1].buf : memory) + o->offset;
    }
    int status = run_some(p, 0, p->asking);
    *placed = status == RL_OK && (p->flag < 0 || ((const char *)p->room.buf)[p->flag]);
    return *placed ? run_some(p, p->asking, p->count) : status;
}

static PyObject *play(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    player *p = PyCapsule_GetPointer(self, NULL);
    if (count != p->argument_count)
        return PyErr_Format(PyExc_TypeError, "a program takes %ld arrays, but got %zd", p->argument_count, count);
    if (p->lock && !PyThread_acquire_lock(p->lock, NOWAIT_LOCK)) {
        PyThreadState *thread = PyEval_SaveThread();
        PyThread_acquire_lock(p->lock, WAIT_LOCK);
        PyEval_RestoreThread(thread);
    }
    long taken = take(p, args);
    int status = RL_OK, placed = 0;
    if (taken > p->argument_count) {
        char *memory = p->stage ? enter((size_t)p->stage) : NULL;
        status = p->stage && !memory ? RL_NO_MEMORY : perform(p, memory, &placed);
        if (memory)
            leave(memory);
    }
    for (long i = 0; i < (taken < p->argument_count ? taken : p->argument_count); i++)
        PyBuffer_Release(&p->buffers[i]);
    if (p->lock)
        PyThread_release_lock(p->lock);
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

/* Whether it is in the memory that each thread has of its own. */
static int find(player *p, cursor *at, void **array)
{
    long memory = *at->offset++, offset = *at->offset++;
    if (memory == 0)
        *array = (char *)p->room.buf + offset;
    else if (memory == OWN)
        *array = (void *)offset;
    else if (memory != NOWHERE)
        p->operands[p->operand_count++] = (operand){array, memory == STAGE ? 0 : memory, offset};
    return memory == OWN;
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
    int is_group = !strcmp(name, ".together");
    const rl_kernel *kernel = is_group ? NULL : rl_find(name, strlen(name), is_double);
    if (!kernel && !is_group) {
        PyErr_Format(PyExc_KeyError, "there is no step %s", name);
        return 0;
    }
    step *s = &p->steps[which];
    s->run = kernel ? kernel->run : NULL;
    s->arrays = arrays;
    s->call = (rl_call){p->arrays + at->array, p->sizes + at->array, p->shapes + at->array, p->strides + at->array,
                        at->integer, at->number, at->integer + integers};
    p->asking += asks;
    for (long i = 0; i < arrays; i++, at->array++) {
        p->sizes[at->array] = find(p, at, &p->arrays[at->array]);
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
    if (PyArg_ParseTuple(args, "w*O!y*y*y*y*y*lll", &p->room, &PyTuple_Type, &steps, &p->offsets, &p->integers,
                         &p->numbers, &p->laid, &p->given, &p->flag, &p->beside, &p->stage) &&
        hold(p) && fill(p, steps)) {
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
