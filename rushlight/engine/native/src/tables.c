/* Rows of a table in bags: their sums, their largest elements, and the gradients; rows with a single 1. */
#include "kernels.h"

enum { STRETCH = 32, PIECES = 16 }; /* rows added one by one; pieces that each look through all indices */

typedef struct {
    const real *table, *scale, *g;
    const int64_t *index, *bag;
    real *out, *to_scale;
    int64_t *row; /* of the table: where each largest element is from; -1: the bag is empty */
    long *start, *position; /* bag b has the places position[start[b]] … position[start[b + 1] - 1] of the index */
    long bags, width;
    int out_of_memory;
} bags;

/* The places of each bag, in their order. What is in bag number `many` is left out. */
static int sort_bags(bags *t, long count, long rows, long many, int leave_out)
{
    t->bags = many;
    t->start = calloc((size_t)(many + 2), sizeof(long));
    t->position = malloc(sizeof(long) * (size_t)(count + 1));
    if (!t->start || !t->position)
        return RL_NO_MEMORY;
    for (long i = 0; i < count; i++) {
        int64_t bag = t->bag[i];
        if (bag < 0 || bag >= many + leave_out || t->index[i] < 0 || t->index[i] >= rows)
            return RL_BAD_INDEX;
        if (bag < many)
            t->start[bag + 2]++;
    }
    for (long b = 0; b < many; b++)
        t->start[b + 2] += t->start[b + 1];
    for (long i = 0; i < count; i++)
        if (t->bag[i] < many)
            t->position[t->start[t->bag[i] + 1]++] = i;
    return RL_OK;
}

static void forget(bags *t) { free(t->start), free(t->position); }

static long worth(const bags *t, long count) { return rl_rows(t->bags ? t->width * (1 + count / t->bags) : 1); }

/* -- sums -------------------------------------------------------------------------------------------------------------- */

static void add_bag(const bags *t, long bag, double *restrict total)
{
    long width = t->width, first = t->start[bag], last = t->start[bag + 1];
    real *restrict out = t->out + bag * width;
    int is_long = last - first > STRETCH;
    memset(out, 0, sizeof(real) * (size_t)width);
    if (is_long)
        memset(total, 0, sizeof(double) * (size_t)width);
    for (long k = first; k < last; k++) {
        long i = t->position[k];
        const real *restrict from = t->table + t->index[i] * width;
        real scale = t->scale[i];
        RL_SIMD
        for (long j = 0; j < width; j++)
            out[j] += from[j] * scale;
        if (is_long && ((k - first) % STRETCH == STRETCH - 1 || k == last - 1)) {
            for (long j = 0; j < width; j++)
                total[j] += (double)out[j], out[j] = 0;
        }
    }
    for (long j = 0; is_long && j < width; j++)
        out[j] = (real)total[j];
}

static void add_bags(void *context, long begin, long end)
{
    bags *t = context;
    double *total = rl_scratch(sizeof(double) * (size_t)(t->width + 1));
    if (!total) {
        t->out_of_memory = 1;
        return;
    }
    for (long bag = begin; bag < end; bag++)
        add_bag(t, bag, total);
}

/* table, index, bag, scale, out; rows, bags, width */
static int bag_sum(const rl_call *c)
{
    bags t = {.table = c->array[0], .index = c->array[1], .bag = c->array[2], .scale = c->array[3], .out = c->array[4],
              .width = c->integer[2]};
    int status = sort_bags(&t, c->size[1], c->integer[0], c->integer[1], 0);
    if (status == RL_OK)
        rl_parallel(add_bags, &t, t.bags, worth(&t, c->size[1]));
    forget(&t);
    return t.out_of_memory ? RL_NO_MEMORY : status;
}

typedef struct {
    const rl_call *call;
    long count, width;
} back;

/* Each piece of the table's rows looks for what goes there, in order. */
static void add_to_rows(void *context, long begin, long end)
{
    const back *t = context;
    const int64_t *index = t->call->array[2], *bag = t->call->array[3];
    const real *g = t->call->array[0], *scale = t->call->array[4];
    real *to_table = t->call->array[5];
    long width = t->width;
    memset(to_table + begin * width, 0, sizeof(real) * (size_t)((end - begin) * width));
    for (long i = 0; i < t->count; i++) {
        if (index[i] < begin || index[i] >= end)
            continue;
        const real *restrict from = g + bag[i] * width;
        real *restrict to = to_table + index[i] * width, s = scale[i];
        RL_SIMD
        for (long j = 0; j < width; j++)
            to[j] += from[j] * s;
    }
}

static void dot_rows(void *context, long begin, long end)
{
    const back *t = context;
    const int64_t *index = t->call->array[2], *bag = t->call->array[3];
    const real *g = t->call->array[0], *table = t->call->array[1];
    real *to_scale = t->call->array[6];
    for (long i = begin; i < end; i++) {
        const real *restrict x = table + index[i] * t->width, *restrict y = g + bag[i] * t->width;
        double total = 0;
        for (long j = 0; j < t->width; j++)
            total += (double)x[j] * (double)y[j];
        to_scale[i] = (real)total;
    }
}

/* g, table, index, bag, scale, the table's gradient?, the scale's?; rows, bags, width. Indices were looked at before. */
static int bag_sum_slope(const rl_call *c)
{
    back t = {c, c->size[2], c->integer[2]};
    long rows = c->integer[0], grain = rl_rows(t.width), large = (rows + PIECES - 1) / PIECES;
    if (c->array[5])
        rl_parallel(add_to_rows, &t, rows, grain < large ? large : grain);
    if (c->array[6])
        rl_share(dot_rows, &t, t.count, rl_rows(t.width));
    return RL_OK;
}

/* -- the largest ------------------------------------------------------------------------------------------------------- */

/* The first of equals, the first NaN. */
static void largest_in_bags(void *context, long begin, long end)
{
    const bags *t = context;
    long width = t->width;
    for (long bag = begin; bag < end; bag++) {
        real *restrict best = t->out + bag * width;
        int64_t *restrict row = t->row + bag * width;
        for (long j = 0; j < width; j++)
            best[j] = 0, row[j] = -1;
        for (long k = t->start[bag]; k < t->start[bag + 1]; k++) {
            int64_t from = t->index[t->position[k]];
            const real *restrict x = t->table + from * width;
            int begun = k > t->start[bag];
            RL_SIMD
            for (long j = 0; j < width; j++) {
                int better = !begun | (x[j] > best[j]) | ((x[j] != x[j]) & (best[j] == best[j]));
                best[j] = better ? x[j] : best[j];
                row[j] = better ? from : row[j];
            }
        }
    }
}

/* table, index, bag, out, rows of the table (-1 where there is none); rows, bags, width */
static int bag_max(const rl_call *c)
{
    bags t = {.table = c->array[0], .index = c->array[1], .bag = c->array[2], .out = c->array[3], .row = c->array[4],
              .width = c->integer[2]};
    int status = sort_bags(&t, c->size[1], c->integer[0], c->integer[1], 1);
    if (status == RL_OK)
        rl_parallel(largest_in_bags, &t, t.bags, worth(&t, c->size[1]));
    forget(&t);
    return status;
}

static void clear(void *context, long begin, long end)
{
    memset((real *)context + begin, 0, sizeof(real) * (size_t)(end - begin));
}

/* g, rows of the table, the table's gradient; width */
static int bag_max_slope(const rl_call *c)
{
    const real *g = c->array[0];
    const int64_t *row = c->array[1];
    real *out = c->array[2];
    long width = c->integer[0];
    rl_share(clear, out, c->size[2], RL_PIECE);
    for (long first = 0; first + width <= c->size[0]; first += width)
        for (long j = 0; j < width; j++)
            if (row[first + j] >= 0)
                out[row[first + j] * width + j] += g[first + j];
    return RL_OK;
}

/* -- a single 1 -------------------------------------------------------------------------------------------------------- */

static void write_classes(void *context, long begin, long end)
{
    const rl_call *c = context;
    const int64_t *index = c->array[0];
    int64_t *out = c->array[1];
    long classes = c->integer[0];
    memset(out + begin * classes, 0, sizeof(int64_t) * (size_t)((end - begin) * classes));
    for (long i = begin; i < end; i++)
        if (index[i] >= 0 && index[i] < classes)
            out[i * classes + index[i]] = 1;
}

/* index, out; classes */
static int one_hot(const rl_call *c)
{
    rl_share(write_classes, (void *)c, c->size[0], rl_rows(2 * c->integer[0]));
    return RL_OK;
}

RL_FAMILY(tables) = {
    {"bag_sum", "xqqxy iii", bag_sum},
    {"bag_sum_slope", "xxqqxy?y? iii", bag_sum_slope},
    {"bag_max", "xqqyQ iii", bag_max},
    {"bag_max_slope", "xqy i", bag_max_slope},
    {"one_hot", "qQ i", one_hot},
    RL_END,
};
