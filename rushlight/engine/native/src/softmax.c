/* Softmax and its logarithm. Rows lie in memory, or, where softmax is not over the last axis, in columns. */
#include "approximations.h"
#include "sums.h"

/* What is done with a row of n numbers: out is made of a, and of b where there is one. */
typedef void row_body(const real *restrict a, const real *restrict b, real *restrict out, long n);

/* The same for some columns side by side, at most WIDTH of them; the numbers of one lie `apart`. */
typedef void strip_body(const real *restrict a, const real *restrict b, real *restrict out, long n, long apart, long width);

enum {
    WIDTH = 128,  /* columns at a time */
    STRETCH = 64, /* numbers that are added one by one */
    SHORT = 16,   /* a row with fewer numbers does not fill a vector */
};

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

RL_DEFINE_SUM(sum_of_exp, (const real *x, real most, long n), rl_exp_below(x[i] - most))
RL_DEFINE_SUM(kept_exp, (const real *x, real most, real *y, long n), (y[i] = rl_exp_below(x[i] - most)))

static void softmax_row(const real *restrict x, const real *restrict none, real *restrict y, long n)
{
    real factor = 1 / (real)kept_exp(x, largest(x, n), y, n);
    RL_SIMD
    for (long i = 0; i < n; i++)
        y[i] *= factor;
}

static void softmax_slope_row(const real *restrict g, const real *restrict y, real *restrict out, long n)
{
    real along = (real)rl_dot(g, y, n);
    RL_SIMD
    for (long i = 0; i < n; i++)
        out[i] = (g[i] - along) * y[i];
}

static void log_softmax_row(const real *restrict x, const real *restrict none, real *restrict y, long n)
{
    real most = largest(x, n), shift = (real)log(sum_of_exp(x, most, n));
    RL_SIMD
    for (long i = 0; i < n; i++)
        y[i] = x[i] - most - shift;
}

static void log_softmax_slope_row(const real *restrict g, const real *restrict y, real *restrict out, long n)
{
    real total = (real)rl_sum(g, n);
    RL_SIMD
    for (long i = 0; i < n; i++)
        out[i] = g[i] - rl_exp_below(y[i]) * total;
}

/* -- columns ---------------------------------------------------------------------------------------------------------- */

/* The loop that follows is over the columns j, k is the place of each one's element i. */
#define EACH_ROW for (long i = 0, k = 0; i < n; i++, k += apart)
#define EACH_COLUMN                                                                                                    \
    RL_SIMD                                                                                                            \
    for (long j = 0; j < width; j++)

/* total[j] = the sum of a formula of k + j, in stretches */
#define SUM_COLUMNS(total, formula)                                                                                    \
    for (long first = 0; first < n; first += STRETCH) {                                                                \
        long last = n - first < STRETCH ? n : first + STRETCH;                                                         \
        real part[WIDTH] = {0};                                                                                        \
        for (long i = first, k = first * apart; i < last; i++, k += apart)                                             \
            EACH_COLUMN part[j] += formula;                                                                            \
        EACH_COLUMN total[j] = first ? total[j] + part[j] : part[j];                                                   \
    }

static void largest_of_columns(const real *restrict x, real *restrict most, long n, long apart, long width)
{
    EACH_COLUMN most[j] = -INFINITY;
    EACH_ROW EACH_COLUMN most[j] = x[k + j] > most[j] ? x[k + j] : most[j];
}

static void softmax_strip(const real *restrict x, const real *restrict none, real *restrict y, long n, long apart,
                          long width)
{
    real most[WIDTH], total[WIDTH];
    largest_of_columns(x, most, n, apart, width);
    SUM_COLUMNS(total, (y[k + j] = rl_exp_below(x[k + j] - most[j])))
    EACH_COLUMN total[j] = 1 / total[j];
    EACH_ROW EACH_COLUMN y[k + j] *= total[j];
}

static void softmax_slope_strip(const real *restrict g, const real *restrict y, real *restrict out, long n, long apart,
                                long width)
{
    real along[WIDTH];
    SUM_COLUMNS(along, g[k + j] * y[k + j])
    EACH_ROW EACH_COLUMN out[k + j] = (g[k + j] - along[j]) * y[k + j];
}

static void log_softmax_strip(const real *restrict x, const real *restrict none, real *restrict y, long n, long apart,
                              long width)
{
    real most[WIDTH], total[WIDTH];
    largest_of_columns(x, most, n, apart, width);
    SUM_COLUMNS(total, rl_exp_below(x[k + j] - most[j]))
    EACH_COLUMN total[j] = rl_log(total[j]);
    EACH_ROW EACH_COLUMN y[k + j] = x[k + j] - most[j] - total[j];
}

static void log_softmax_slope_strip(const real *restrict g, const real *restrict y, real *restrict out, long n,
                                    long apart, long width)
{
    real total[WIDTH];
    SUM_COLUMNS(total, g[k + j])
    EACH_ROW EACH_COLUMN out[k + j] = g[k + j] - rl_exp_below(y[k + j]) * total[j];
}

/* -- either ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    const real *a, *b;
    real *out;
    long n, inner, strips;
    row_body *row;
    strip_body *strip;
} job;

static void rows(void *context, long begin, long end)
{
    const job *t = context;
    for (long at = begin * t->n; at < end * t->n; at += t->n)
        t->row(t->a + at, t->b + at, t->out + at, t->n);
}

/* to(i, j) = from(j, i), where rows of `from` are n long and those of `to` WIDTH */
static void turn(const real *restrict from, real *restrict to, long n, long rows)
{
    for (long j = 0; j < rows; j++)
        for (long i = 0; i < n; i++)
            to[i * WIDTH + j] = from[j * n + i];
}

/* Short rows are turned into columns, and back. */
static void short_rows(void *context, long begin, long end)
{
    const job *t = context;
    real a[SHORT * WIDTH], b[SHORT * WIDTH], out[SHORT * WIDTH];
    for (long first = begin; first < end; first += WIDTH) {
        long width = end - first < WIDTH ? end - first : WIDTH, at = first * t->n;
        turn(t->a + at, a, t->n, width);
        if (t->b != t->a)
            turn(t->b + at, b, t->n, width);
        t->strip(a, t->b == t->a ? a : b, out, t->n, WIDTH, width);
        for (long j = 0; j < width; j++)
            for (long i = 0; i < t->n; i++)
                t->out[at + j * t->n + i] = out[i * WIDTH + j];
    }
}

static void strips(void *context, long begin, long end)
{
    const job *t = context;
    for (long which = begin; which < end; which++) {
        long first = which % t->strips * WIDTH, at = which / t->strips * t->n * t->inner + first;
        long width = t->inner - first < WIDTH ? t->inner - first : WIDTH;
        t->strip(t->a + at, t->b + at, t->out + at, t->n, t->inner, width);
    }
}

/* The last array, an (outer, n, inner), is made of those before it. Where there is only one, b is not read. */
static int along_axis(const rl_call *c, int arrays, row_body *row, strip_body *strip)
{
    long n = c->integer[0], inner = c->integer[1], outer = n && inner ? c->size[0] / n / inner : 0;
    job t = {c->array[0], c->array[arrays - 2], c->array[arrays - 1], n, inner, (inner + WIDTH - 1) / WIDTH, row, strip};
    if (inner == 1)
        rl_share(n < SHORT ? short_rows : rows, &t, outer, rl_rows(2 * n));
    else
        rl_share(strips, &t, outer * t.strips, rl_rows(2 * n * (inner < WIDTH ? inner : WIDTH)));
    return RL_OK;
}

#define ALONG_AXIS(name, arrays)                                                                                       \
    static int name(const rl_call *c) { return along_axis(c, arrays, name##_row, name##_strip); }

ALONG_AXIS(softmax, 2)
ALONG_AXIS(softmax_slope, 3)
ALONG_AXIS(log_softmax, 2)
ALONG_AXIS(log_softmax_slope, 3)

/* -- the logarithm of the sum ----------------------------------------------------------------------------------------- */

/* Infinity, if that is the largest, or if there is nothing else below 0; NaN where there is one. */
static real of_infinite(const real *x, real most, long n)
{
    for (long i = 0; i < n; i++)
        if (x[i] != x[i])
            return x[i];
    return most;
}

static void logsumexp_rows(void *context, long begin, long end)
{
    const job *t = context;
    for (long row = begin; row < end; row++) {
        const real *x = t->a + row * t->n;
        real most = largest(x, t->n);
        t->out[row] = isinf(most) ? of_infinite(x, most, t->n) : most + (real)log(sum_of_exp(x, most, t->n));
    }
}

/* logsumexp(x, y, n): x is (rows, n), y (rows) */
static int logsumexp(const rl_call *c)
{
    job t = {.a = c->array[0], .out = c->array[1], .n = c->integer[0]};
    rl_share(logsumexp_rows, &t, c->size[1], rl_rows(2 * t.n));
    return RL_OK;
}

/* -- the loss of log-probabilities ------------------------------------------------------------------------------------ */

typedef struct {
    const rl_call *call;
    int bad_index;
} classes;

static void nll_piece(void *context, long begin, long end)
{
    classes *t = context;
    const rl_call *c = t->call;
    const real *x = c->array[0], *weight = c->array[2];
    const int64_t *target = c->array[1];
    real *loss = c->array[3], *picked = c->array[4];
    long n = c->integer[0], inner = c->integer[1], ignored = c->integer[2];
    for (long i = begin; i < end; i++) {
        int64_t at = target[i];
        int keep = at != ignored;
        if (keep && (at < 0 || at >= n)) {
            t->bad_index = 1;
            return;
        }
        picked[i] = !keep ? 0 : weight ? weight[at] : 1;
        loss[i] = keep ? -x[inner == 1 ? i * n + at : (i / inner * n + at) * inner + i % inner] * picked[i] : 0;
    }
}

/* x (rows, n, inner), target, weight?, and to write: the loss of each (0 where it is ignored) and its weight;
   n, inner, ignore_index */
static int nll(const rl_call *c)
{
    classes t = {c, 0};
    rl_parallel(nll_piece, &t, c->size[1], RL_PIECE / 8);
    return t.bad_index ? RL_BAD_INDEX : RL_OK;
}

static void nll_slope_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    const real *value = c->array[1];
    long n = c->integer[0], inner = c->integer[1];
    for (long row = begin; row < end; row++) {
        const int64_t *target = (const int64_t *)c->array[0] + row * inner;
        real *out = (real *)c->array[2] + row * n * inner;
        memset(out, 0, sizeof(real) * (size_t)(n * inner));
        for (long i = 0; i < inner; i++)
            if (target[i] >= 0 && target[i] < n) /* others are ignored ones */
                out[target[i] * inner + i] = value[row * inner + i];
    }
}

/* target, value of each, out (rows, n, inner): zeros but for the value at the target; n, inner */
static int nll_slope(const rl_call *c)
{
    long inner = c->integer[1];
    rl_share(nll_slope_piece, (void *)c, inner ? c->size[0] / inner : 0, rl_rows(c->integer[0] * inner));
    return RL_OK;
}

RL_FAMILY(softmax) = {
    {"softmax", "xy ii", softmax},
    {"softmax_slope", "xxy ii", softmax_slope},
    {"log_softmax", "xy ii", log_softmax},
    {"log_softmax_slope", "xxy ii", log_softmax_slope},
    {"logsumexp", "xy i", logsumexp},
    {"nll", "xqx?yy iii", nll},
    {"nll_slope", "qxy ii", nll_slope},
    RL_END,
};
