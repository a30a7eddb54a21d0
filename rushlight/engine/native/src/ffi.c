/* The kernels as XLA calls them: one handler of its foreign function interface serves all.

   A call names its kernel and brings, as attributes, what is no array: "integers", "numbers", "lists", the length of each
   list of arrays, and "layouts", a number for each array in the order of the kernel's letters, see below. Arrays to read
   are the call's arguments, arrays to write its results; one that is both is an argument whose memory is also a
   result's. Numbers that the program computes are one more argument, the last, of float64.

   The structures are those of XLA's stable C interface, version 0.x, as far as they are read here; jaxlib is not needed to
   compile this. Newer versions add fields at the ends, and each structure says how large it is. */
#include "kernels.h"

enum { METADATA = 1, ALL_DIMENSIONS = 8, FEW = 24 };
enum { F32 = 11, F64 = 12 };
enum { INVALID_ARGUMENT = 3, RESOURCE_EXHAUSTED = 8 };

/* A layout: -1 for an array that is not there; else a bit WRITTEN_OVER if it is read, too, and above it the dimensions
   from the outermost in memory to the innermost, four bits each. */
enum { ABSENT = -1, WRITTEN_OVER = 1 };

typedef struct extension {
    size_t struct_size;
    int type;
    struct extension *next;
} extension;

typedef struct {
    size_t struct_size;
    extension *extensions;
    int major, minor;
} version;

typedef struct {
    size_t struct_size;
    extension *extensions;
    const char *message;
    int code;
} complaint;

typedef struct {
    size_t struct_size;
    extension *extensions;
    void *error;
} disposal;

typedef struct {
    size_t struct_size;
    extension *extensions;
    void *context;
    void (*task)(void *);
    void *data;
} errand;

typedef struct {
    size_t struct_size;
    extension *extensions;
    version version;
    const void *internal;
    void *(*make_error)(complaint *);
    void *read_error;
    void (*dispose)(disposal *);
    void *others[8];
    void *(*schedule)(errand *);
} interface;

typedef struct {
    size_t struct_size;
    version version;
} metadata;

typedef struct {
    extension base;
    metadata *metadata;
} metadata_extension;

typedef struct {
    size_t struct_size;
    extension *extensions;
    int dtype;
    void *data;
    int64_t rank, *dims;
} buffer;

typedef struct {
    size_t struct_size;
    extension *extensions;
    int64_t count;
    int *types;
    buffer **buffers;
} buffers;

typedef struct {
    const char *text;
    size_t length;
} span;

typedef struct {
    int dtype;
    size_t size;
    void *data;
} array;

typedef struct {
    size_t struct_size;
    extension *extensions;
    int64_t count;
    int *types;
    span **names;
    void **values;
} attributes;

typedef struct {
    size_t struct_size;
    extension *extensions;
    const interface *api;
    void *context;
    int stage;
    buffers arguments, results;
    attributes attributes;
} frame;

typedef struct {
    ptrdiff_t shape[ALL_DIMENSIONS], stride[ALL_DIMENSIONS];
} place;

typedef struct {
    void **arrays;
    long *sizes;
    const ptrdiff_t **shapes, **strides;
    place *places;
    size_t count;
} arrays;

/* Bytes for all that is known of one array. */
enum { EACH = sizeof(place) + sizeof(void *) + 2 * sizeof(ptrdiff_t *) + sizeof(long) };

static void *complain(const frame *f, int code, const char *message)
{
    complaint c = {sizeof c, NULL, message, code};
    return f->api->make_error(&c);
}

static const void *attribute(const frame *f, const char *name)
{
    for (int64_t i = 0; i < f->attributes.count; i++) {
        const span *s = f->attributes.names[i];
        if (s->length == strlen(name) && !memcmp(s->text, name, s->length))
            return f->attributes.values[i];
    }
    return NULL;
}

/* Sizes, and strides in bytes, of an array that lies in memory as its layout says; what is there only once along a
   dimension serves for all along it. */
static void describe(arrays *a, const buffer *b, int64_t layout)
{
    size_t at = a->count++;
    place *p = &a->places[at];
    long size = 1;
    ptrdiff_t bytes = b->dtype == F64 ? 8 : 4;
    for (int64_t i = b->rank - 1; i >= 0; i--) {
        int64_t dimension = layout >> (4 * i + 4) & 15;
        p->shape[i] = b->dims[i];
        p->stride[dimension] = b->dims[dimension] == 1 && dimension < b->rank - 1 ? 0 : bytes * size;
        size *= b->dims[dimension];
    }
    a->arrays[at] = b->data, a->sizes[at] = size;
    a->shapes[at] = p->shape, a->strides[at] = p->stride;
}

static void leave_out(arrays *a)
{
    size_t at = a->count++;
    a->arrays[at] = NULL, a->sizes[at] = 0, a->shapes[at] = a->strides[at] = NULL;
}

typedef struct {
    const frame *frame;
    const int64_t *layouts;
    size_t count; /* of layouts */
    int64_t argument, result; /* the next ones */
} source;

/* The next array, which a kernel writes or only reads; 0 if there is none that fits. */
static int next(source *from, int writes, arrays *a)
{
    if (a->count == from->count)
        return 0;
    int64_t layout = from->layouts[a->count];
    if (layout == ABSENT) {
        leave_out(a);
        return 1;
    }
    from->argument += writes ? layout & WRITTEN_OVER : 0;
    const buffers *all = writes ? &from->frame->results : &from->frame->arguments;
    int64_t which = writes ? from->result++ : from->argument++;
    if (which >= all->count || all->buffers[which]->rank > ALL_DIMENSIONS)
        return 0;
    describe(a, all->buffers[which], layout);
    return 1;
}

/* Whether all letters found their arrays, and all arrays their letters. */
static int collect(source *from, const char *takes, const array *lists, arrays *a)
{
    size_t list = 0;
    for (; *takes; takes++) {
        if (!strchr("xqubsyQUBSXY", *takes))
            continue;
        int many = *takes == 'X' || *takes == 'Y';
        if (many && list == lists->size)
            return 0;
        for (int64_t left = many ? ((const int64_t *)lists->data)[list++] : 1; left > 0; left--)
            if (!next(from, !strchr("xqubsX", *takes), a))
                return 0;
    }
    return a->count == from->count && from->result == from->frame->results.count;
}

/* The numbers of a call: an argument that is left over, or an attribute; NULL if the arguments do not fit. */
static const double *numbers_of(const source *from, const array *attribute)
{
    static const double none[1];
    const buffers *all = &from->frame->arguments;
    if (from->argument == all->count)
        return attribute->size ? attribute->data : none;
    const buffer *last = all->buffers[all->count - 1];
    return from->argument == all->count - 1 && last->dtype == F64 ? last->data : NULL;
}

static int is_double(const frame *f)
{
    for (int64_t i = 0; i < f->results.count; i++)
        if (f->results.buffers[i]->dtype == F64)
            return 1;
    return 0;
}

/* A thread of XLA's, where it lends one: XLA runs other parts of the program on them, and further threads would take the
   cores from those. */
static int start(void *context, void (*task)(void *), void *data)
{
    const frame *f = context;
    errand e = {sizeof e, NULL, f->context, task, data};
    void *error = f->api->schedule(&e);
    if (!error)
        return 1;
    disposal d = {sizeof d, NULL, error};
    f->api->dispose(&d);
    return 0;
}

static int run_kernel(const frame *f, const rl_kernel *kernel, const rl_call *call)
{
    rl_lender xla = {start, (void *)f};
    rl_borrow(f->api->struct_size >= sizeof(interface) ? &xla : NULL);
    int status = kernel->run(call);
    rl_borrow(NULL);
    return status;
}

static void *run(const frame *f, const rl_kernel *kernel, void *room, const array *layouts, const array *integers,
                 const array *numbers, const array *lists)
{
    size_t count = layouts->size;
    arrays a = {.places = room, .count = 0};
    a.arrays = (void **)(a.places + count);
    a.shapes = (const ptrdiff_t **)(a.arrays + count), a.strides = a.shapes + count;
    a.sizes = (long *)(a.strides + count);
    source from = {f, layouts->data, count, 0, 0};
    const double *number = collect(&from, kernel->takes, lists, &a) ? numbers_of(&from, numbers) : NULL;
    if (!number)
        return complain(f, INVALID_ARGUMENT, "rushlight: a kernel takes other arrays");
    rl_call call = {a.arrays, a.sizes, a.shapes, a.strides, integers->data, number, lists->data};
    int status = run_kernel(f, kernel, &call);
    if (status == RL_NO_MEMORY)
        return complain(f, RESOURCE_EXHAUSTED, "rushlight: a kernel ran out of memory");
    return status ? complain(f, INVALID_ARGUMENT, "rushlight: a kernel met an index that is out of range") : NULL;
}

void *rl_ffi_handler(frame *f)
{
    metadata_extension *asked = (metadata_extension *)f->extensions;
    if (asked && asked->base.type == METADATA) { /* which version is this written for? */
        asked->metadata->version.major = 0, asked->metadata->version.minor = f->api->version.minor;
        return NULL;
    }
    const span *name = attribute(f, "kernel");
    const array *layouts = attribute(f, "layouts"), *integers = attribute(f, "integers");
    const array *numbers = attribute(f, "numbers"), *lists = attribute(f, "lists");
    const rl_kernel *kernel = name ? rl_find(name->text, name->length, is_double(f)) : NULL;
    if (!kernel || !layouts || !integers || !numbers || !lists)
        return complain(f, INVALID_ARGUMENT, "rushlight: there is no such kernel, or it was not called as it must be");
    _Alignas(place) char few[FEW * EACH];
    void *room = layouts->size <= FEW ? few : malloc(layouts->size * EACH);
    if (!room)
        return complain(f, RESOURCE_EXHAUSTED, "rushlight: a call ran out of memory");
    void *error = run(f, kernel, room, layouts, integers, numbers, lists);
    if (room != few)
        free(room);
    return error;
}
