/* Softmax and its logarithm. Rows lie in memory, or, where softmax is not over the last axis, in columns. */
#include "approximations.h"

/* -- rows ------------------------------------------------------------------------------------------------------------- */

/* NaN loses, but shows up in what is computed with it. */
static real largest(const real *x, long n)
{
    real most = -INFINITY;
    RL_MAX(most)
    for (long i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static void softmax_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    long n = c->integer[0];
    for (long row = begin; row < end; row++) {
        const real *restrict x = (const real *)c->array[0] + row * n;
        real *restrict y = (real *)c->array[1] + row * n;
        real most = largest(x, n), total = 0;
        RL_SUM(total)
        for (long i = 0; i < n; i++) {
            y[i] = rl_exp_below(x[i] - most);
            total += y[i];
        }
        real factor = 1 / total;
        RL_SIMD
        for (long i = 0; i < n; i++)
            y[i] *= factor;
    }
}

static void softmax_slope_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    long n = c->integer[0];
    for (long row = begin; row < end; row++) {
        const real *restrict g = (const real *)c->array[0] + row * n, *restrict y = (const real *)c->array[1] + row * n;
        real *restrict out = (real *)c->array[2] + row * n;
        real along = 0;
        RL_SUM(along)
        for (long i = 0; i < n; i++)
            along += g[i] * y[i];
        RL_SIMD
        for (long i = 0; i < n; i++)
            out[i] = (g[i] - along) * y[i];
    }
}

static void log_softmax_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    long n = c->integer[0];
    for (long row = begin; row < end; row++) {
        const real *restrict x = (const real *)c->array[0] + row * n;
        real *restrict y = (real *)c->array[1] + row * n;
        real most = largest(x, n), total = 0;
        RL_SUM(total)
        for (long i = 0; i < n; i++)
            total += rl_exp_below(x[i] - most);
        real shift = (real)log(total);
        RL_SIMD
        for (long i = 0; i < n; i++)
            y[i] = x[i] - most - shift;
    }
}

static void log_softmax_slope_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    long n = c->integer[0];
    for (long row = begin; row < end; row++) {
        const real *restrict g = (const real *)c->array[0] + row * n, *restrict y = (const real *)c->array[1] + row * n;
        real *restrict out = (real *)c->array[2] + row * n;
        real total = 0;
        RL_SUM(total)
        for (long i = 0; i < n; i++)
            total += g[i];
        RL_SIMD
        for (long i = 0; i < n; i++)
            out[i] = g[i] - rl_exp_below(y[i]) * total;
    }
}

static int over_rows(const rl_call *c, void (*piece)(void *, long, long))
{
    long n = c->integer[0];
    rl_parallel(piece, (void *)c, n ? c->size[0] / n : 0, rl_rows(2 * n));
    return RL_OK;
}

static int softmax(const rl_call *c) { return over_rows(c, softmax_piece); }
static int softmax_slope(const rl_call *c) { return over_rows(c, softmax_slope_piece); }
static int log_softmax(const rl_call *c) { return over_rows(c, log_softmax_piece); }
static int log_softmax_slope(const rl_call *c) { return over_rows(c, log_softmax_slope_piece); }

/* -- the loss of log-probabilities ------------------------------------------------------------------------------------ */

/* x (rows, n), target, weight?, and to write: the loss of each row (0 where it is ignored) and its weight;
   n, ignore_index */
static int nll(const rl_call *c)
{
    const real *x = c->array[0], *weight = c->array[2];
    const int64_t *target = c->array[1];
    real *loss = c->array[3], *picked = c->array[4];
    long n = c->integer[0], ignored = c->integer[1];
    for (long row = 0; row < c->size[1]; row++) {
        int64_t at = target[row];
        int keep = at != ignored;
        if (keep && (at < 0 || at >= n))
            return RL_BAD_INDEX;
        picked[row] = !keep ? 0 : weight ? weight[at] : 1;
        loss[row] = keep ? -x[row * n + at] * picked[row] : 0;
    }
    return RL_OK;
}

static void nll_slope_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    const int64_t *target = c->array[0];
    const real *value = c->array[1];
    real *out = c->array[2];
    long n = c->integer[0];
    memset(out + begin * n, 0, sizeof(real) * (size_t)((end - begin) * n));
    for (long row = begin; row < end; row++)
        if (target[row] >= 0 && target[row] < n) /* others are ignored ones */
            out[row * n + target[row]] = value[row];
}

/* target, value of each row, out (rows, n): zeros but for the value at the target; n */
static int nll_slope(const rl_call *c)
{
    rl_parallel(nll_slope_piece, (void *)c, c->size[0], rl_rows(c->integer[0]));
    return RL_OK;
}

RL_FAMILY(softmax) = {
    {"softmax", "xy i", softmax},
    {"softmax_slope", "xxy i", softmax_slope},
    {"log_softmax", "xy i", log_softmax},
    {"log_softmax_slope", "xxy i", log_softmax_slope},
    {"nll", "xqx?yy ii", nll},
    {"nll_slope", "qxy i", nll_slope},
    RL_END,
};
