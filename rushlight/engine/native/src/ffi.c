/* The kernels as XLA calls them: one handler of its foreign function interface serves all.

   A call names its kernel and brings, as attributes, what is no array: "integers", "numbers", and "layouts", a number for
   each array in the order of the kernel's letters, see below. Arrays to read are the call's arguments, arrays to write
   its results; one that is both is an argument whose memory is also a result's.

   The structures are those of XLA's stable C interface, version 0.x, as far as they are read here; jaxlib is not needed to
   compile this. Newer versions add fields at the ends, and each structure says how large it is. */
#include "kernels.h"

enum { METADATA = 1, ALL_DIMENSIONS = 8, ALL_ARRAYS = 24, EXECUTE = 3 };
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
    version version;
    const void *internal;
    void *(*make_error)(complaint *);
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
    void *arrays[ALL_ARRAYS];
    long sizes[ALL_ARRAYS];
    ptrdiff_t shape[ALL_ARRAYS][ALL_DIMENSIONS], stride[ALL_ARRAYS][ALL_DIMENSIONS];
    const ptrdiff_t *shapes[ALL_ARRAYS], *strides[ALL_ARRAYS];
    int count;
} arrays;

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
    int at = a->count++;
    long size = 1;
    ptrdiff_t bytes = b->dtype == F64 ? 8 : 4;
    for (int64_t i = b->rank - 1; i >= 0; i--) {
        int64_t dimension = layout >> (4 * i + 4) & 15;
        a->shape[at][i] = b->dims[i];
        a->stride[at][dimension] = b->dims[dimension] == 1 && dimension < b->rank - 1 ? 0 : bytes * size;
        size *= b->dims[dimension];
    }
    a->arrays[at] = b->data, a->sizes[at] = size;
    a->shapes[at] = a->shape[at], a->strides[at] = a->stride[at];
}

static void leave_out(arrays *a)
{
    int at = a->count++;
    a->arrays[at] = NULL, a->sizes[at] = 0, a->shapes[at] = a->strides[at] = NULL;
}

/* Whether all letters found their arrays, and all arrays their letters. */
static int collect(const frame *f, const char *takes, const int64_t *layouts, size_t count, arrays *a)
{
    int64_t argument = 0, result = 0;
    a->count = 0;
    for (; *takes; takes++) {
        if (!strchr("xqubsyQUBS", *takes))
            continue;
        if ((size_t)a->count == count)
            return 0;
        int64_t layout = layouts[a->count];
        if (layout == ABSENT) {
            leave_out(a);
            continue;
        }
        int writes = !strchr("xqubs", *takes);
        argument += writes ? layout & WRITTEN_OVER : 0;
        const buffers *from = writes ? &f->results : &f->arguments;
        int64_t which = writes ? result++ : argument++;
        if (which >= from->count || from->buffers[which]->rank > ALL_DIMENSIONS)
            return 0;
        describe(a, from->buffers[which], layout);
    }
    return (size_t)a->count == count && argument == f->arguments.count && result == f->results.count;
}

static int is_double(const frame *f)
{
    for (int64_t i = 0; i < f->results.count; i++)
        if (f->results.buffers[i]->dtype == F64)
            return 1;
    return 0;
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
    const array *numbers = attribute(f, "numbers");
    const rl_kernel *kernel = name ? rl_find(name->text, name->length, is_double(f)) : NULL;
    if (!kernel || !layouts || layouts->size > ALL_ARRAYS || !integers || !numbers)
        return complain(f, INVALID_ARGUMENT, "rushlight: there is no such kernel, or it was not called as it must be");
    arrays a;
    if (!collect(f, kernel->takes, layouts->data, layouts->size, &a))
        return complain(f, INVALID_ARGUMENT, "rushlight: a kernel takes other arrays");
    rl_call call = {a.arrays, a.sizes, a.shapes, a.strides, integers->data, numbers->data, NULL};
    int status = kernel->run(&call);
    if (status == RL_NO_MEMORY)
        return complain(f, RESOURCE_EXHAUSTED, "rushlight: a kernel ran out of memory");
    return status ? complain(f, INVALID_ARGUMENT, "rushlight: a kernel met an index that is out of range") : NULL;
}
