/* Sums over an axis that is not the innermost one in memory; sums of the rows that have the same index. */
#include "kernels.h"

enum { STRETCH = 64, WIDTH = 256 }; /* numbers that are added one by one; columns at a time */
enum { PIECES = 32 };               /* of rows at most: each goes through the whole index */

typedef struct {
    const real *x;
    real *y;
    long n, inner, strips;
} table;

/* A strip of columns: stretches of rows, their sums added in double precision. */
static void strips(void *context, long begin, long end)
{
    const table *t = context;
    for (long which = begin; which < end; which++) {
        long outer = which / t->strips, first = which % t->strips * WIDTH;
        long width = t->inner - first < WIDTH ? t->inner - first : WIDTH;
        const real *x = t->x + outer * t->n * t->inner + first;
        double total[WIDTH] = {0};
        for (long row = 0; row < t->n; row += STRETCH) {
            long last = t->n - row < STRETCH ? t->n : row + STRETCH;
            real part[WIDTH] = {0};
            for (long i = row; i < last; i++)
                RL_SIMD
                for (long j = 0; j < width; j++)
                    part[j] += x[i * t->inner + j];
            RL_SIMD
            for (long j = 0; j < width; j++)
                total[j] += (double)part[j];
        }
        for (long j = 0; j < width; j++)
            t->y[outer * t->inner + first + j] = (real)total[j];
    }
}

/* axis_sums(x, y, outer, n, inner): x is (outer, n, inner), y (outer, inner) */
static int axis_sums(const rl_call *c)
{
    table t = {c->array[0], c->array[1], c->integer[1], c->integer[2], (c->integer[2] + WIDTH - 1) / WIDTH};
    rl_parallel(strips, &t, c->integer[0] * t.strips, rl_rows(t.n * (t.inner < WIDTH ? t.inner : WIDTH)));
    return RL_OK;
}

typedef struct {
    const real *value;
    const int64_t *index;
    real *out;
    long count, width;
} lines;

/* Each piece of the rows looks for what goes there, in order. */
static void add_lines(void *context, long begin, long end)
{
    const lines *t = context;
    long width = t->width;
    memset(t->out + begin * width, 0, sizeof(real) * (size_t)((end - begin) * width));
    for (long i = 0; i < t->count; i++) {
        if (t->index[i] < begin || t->index[i] >= end)
            continue;
        const real *restrict from = t->value + i * width;
        real *restrict to = t->out + t->index[i] * width;
        RL_SIMD
        for (long j = 0; j < width; j++)
            to[j] += from[j];
    }
}

/* add_rows(value, index, out, rows, width): out is 0 but for the rows of value, added where the index says */
static int add_rows(const rl_call *c)
{
    lines t = {c->array[0], c->array[1], c->array[2], c->size[1], c->integer[1]};
    long rows = c->integer[0], grain = rl_rows(t.width), large = (rows + PIECES - 1) / PIECES;
    for (long i = 0; i < t.count; i++)
        if (t.index[i] < 0 || t.index[i] >= rows)
            return RL_BAD_INDEX;
    rl_parallel(add_lines, &t, rows, grain < large ? large : grain);
    return RL_OK;
}

RL_FAMILY(axes) = {
    {"axis_sums", "xy iii", axis_sums},
    {"add_rows", "xqy ii", add_rows},
    RL_END,
};
