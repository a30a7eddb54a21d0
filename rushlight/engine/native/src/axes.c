/* Sums over an axis that is not the innermost one in memory. */
#include "kernels.h"

enum { STRETCH = 64, WIDTH = 256 }; /* numbers that are added one by one; columns at a time */

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

RL_FAMILY(axes) = {
    {"axis_sums", "xy iii", axis_sums},
    RL_END,
};
