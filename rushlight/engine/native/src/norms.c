/* Layer, RMS, group and batch norm: forward in one pass over memory, backward in one or two.

   Variances are of differences from a mean, never differences of squares, so numbers far from 0 lose nothing. Sums for
   a parameter over many rows are made piece by piece and added up in the order of the pieces. */
#include "sums.h"

// Rounded where the plain rule rounds, so that what is exactly 1 there is 1 here too.
static real scale_of(double variance, double eps) {
    real sum = (real)variance + (real)eps;
    return (real)1 / (real)sqrt((double)sum);
}

/* Adds the squares of the differences from a mean, and the differences, whose sum is what rounding took from the mean. */
RL_INLINE void add_away(const real *x, real mean, long n, double *squares, double *rest)
{
    RL_STRETCHES(n)
    {
        rl_lanes square = {0}, total = {0};
        RL_LANES(first, last, real away = x[i] - mean; square[lane] += away * away, total[lane] += away);
        *squares += (double)rl_total(square), *rest += (double)rl_total(total);
    }
}

/* The variance of `count` numbers from those sums, and a better mean: numbers that are all alike have theirs, and no variance,
   however their sum is rounded. */
RL_INLINE double variance_of(double squares, double rest, double count, real *mean)
{
    rest /= count;
    if (isfinite(rest)) /* the mean of numbers with an infinite one is that */
        *mean = (real)((double)*mean + rest);
    double variance = squares / count - rest * rest;
    return variance < 0 ? 0 : variance;
}

static double moments(const real *x, long n, real *mean)
{
    double squares = 0, rest = 0;
    *mean = (real)(rl_sum(x, n) / (double)n);
    add_away(x, *mean, n, &squares, &rest);
    return variance_of(squares, rest, (double)n, mean);
}

/* Rows of a piece of work; more than of other loops' pieces would leave the last thread alone for long. */
static long norm_rows(long size) { return (rl_rows(size) + 3) / 4; }

/* The same where a piece makes sums for parameters: those must not outgrow the rows themselves. */
static long slope_rows(long size)
{
    enum { LEAST = 8 };
    return norm_rows(size) < LEAST ? LEAST : norm_rows(size);
}

/* -- layer norm: (rows, size), statistics for each row, parameters for each column ---------------------------------- */

static void layer_norm_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    const real *restrict w = c->array[1], *restrict b = c->array[2];
    real *mean = c->array[4], *scale = c->array[5], *variance = c->array[6];
    long size = c->integer[0];
    for (long row = begin; row < end; row++) {
        const real *restrict x = (const real *)c->array[0] + row * size;
        real *restrict y = (real *)c->array[3] + row * size;
        double v = moments(x, size, &mean[row]);
        real m = mean[row];
        variance[row] = (real)v;
        real s = scale[row] = scale_of(v, c->number[0]) + 0 * variance[row]; /* a variance that overflows leaves no number */
        if (w && b) {
            RL_SIMD
            for (long i = 0; i < size; i++)
                y[i] = (x[i] - m) * s * w[i] + b[i];
        } else {
            RL_SIMD
            for (long i = 0; i < size; i++)
                y[i] = (x[i] - m) * s;
            for (long i = 0; w && i < size; i++)
                y[i] *= w[i];
            for (long i = 0; b && i < size; i++)
                y[i] += b[i];
        }
    }
}

/* x, w?, b?, y, mean, scale, variance; size; eps */
static int layer_norm(const rl_call *c)
{
    rl_parallel(layer_norm_piece, (void *)c, c->size[4], norm_rows(c->integer[0]));
    return RL_OK;
}

/* The sums of g (x - mean), of g and of x - mean, in one pass. The last is 0 but for the rounding of the mean, which
   counts where numbers vary little. */
static void slope_sums(const real *g, const real *x, real mean, long n, double *sums)
{
    sums[0] = sums[1] = sums[2] = 0;
    RL_STRETCHES(n)
    {
        rl_lanes along = {0}, total = {0}, rest = {0};
        RL_LANES(first, last, real away = x[i] - mean; along[lane] += g[i] * away, total[lane] += g[i], rest[lane] += away);
        sums[0] += (double)rl_total(along), sums[1] += (double)rl_total(total), sums[2] += (double)rl_total(rest);
    }
}

/* What comes back to a mean and to a scale, which are results as well (NULL: nothing does): it belongs to each of `count`
   elements, the second times its distance to the mean. */
RL_INLINE real of_mean(const real *to_mean, long which, double count)
{
    return to_mean ? (real)(to_mean[which] / count) : 0;
}
RL_INLINE real of_scale(const real *to_scale, long which, double scale, double count)
{
    return to_scale ? (real)(to_scale[which] * scale * scale * scale / count) : 0;
}

typedef struct {
    const rl_call *call;
    real *partial; /* for each piece: size sums for w, then size for b */
    long grain;
} layer_backward;

static void layer_norm_slope_piece(void *context, long begin, long end)
{
    const layer_backward *job = context;
    const rl_call *c = job->call;
    long size = c->integer[0];
    const real *restrict w = c->array[2], *mean = c->array[3], *scale = c->array[4];
    const real *to_mean = c->array[5], *to_scale = c->array[6];
    real *restrict to_w = job->partial + 2 * size * (begin / job->grain), *restrict to_b = to_w + size;
    memset(to_w, 0, sizeof(real) * 2 * (size_t)size);
    for (long row = begin; row < end; row++) {
        const real *g = (const real *)c->array[0] + row * size, *x = (const real *)c->array[1] + row * size;
        real *gx = (real *)c->array[7] + row * size, m = mean[row], s = scale[row];
        const real *incoming = w ? gx : g; /* kept, so that it is rounded the same way twice */
        if (w)
            RL_SIMD
            for (long i = 0; i < size; i++)
                gx[i] = g[i] * w[i];
        double sums[3];
        slope_sums(incoming, x, m, size, sums);
        real shift = (real)(-sums[1] / (double)size), slope = -(real)(sums[0] + shift * sums[2]) * s * s / (real)size;
        shift = shift * s + of_mean(to_mean, row, (double)size);
        slope = slope * s - of_scale(to_scale, row, s, (double)size);
        RL_SIMD
        for (long i = 0; i < size; i++) {
            real away = x[i] - m;
            gx[i] = incoming[i] * s + away * slope + shift;
            to_w[i] += g[i] * away * s;
            to_b[i] += g[i];
        }
    }
}

/* Add up the sums of all pieces, which lie `stride` apart, in their order. */
static void add_pieces(real *to, const real *partial, long pieces, long stride, long size)
{
    memset(to, 0, sizeof(real) * (size_t)size);
    for (long piece = 0; piece < pieces; piece++, partial += stride) {
        RL_SIMD
        for (long i = 0; i < size; i++)
            to[i] += partial[i];
    }
}

/* g, x, w?, mean, scale, to_mean?, to_scale?, gx, gw, gb; size */
static int layer_norm_slope(const rl_call *c)
{
    long size = c->integer[0], rows = c->size[3], grain = slope_rows(size);
    long pieces = (rows + grain - 1) / grain;
    layer_backward job = {c, malloc(sizeof(real) * 2 * (size_t)(size * pieces) + 1), grain};
    if (!job.partial)
        return RL_NO_MEMORY;
    rl_parallel(layer_norm_slope_piece, &job, rows, grain);
    add_pieces(c->array[8], job.partial, pieces, 2 * size, size);
    add_pieces(c->array[9], job.partial + size, pieces, 2 * size, size);
    free(job.partial);
    return RL_OK;
}

/* -- RMS norm: (rows, size) ------------------------------------------------------------------------------------------ */

static void rms_norm_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    const real *restrict w = c->array[1];
    real *scale = c->array[3];
    long size = c->integer[0];
    for (long row = begin; row < end; row++) {
        const real *restrict x = (const real *)c->array[0] + row * size;
        real *restrict y = (real *)c->array[2] + row * size;
        real s = scale[row] = scale_of(rl_dot(x, x, size) / (double)size, c->number[0]);
        if (w) {
            RL_SIMD
            for (long i = 0; i < size; i++)
                y[i] = x[i] * s * w[i];
        } else {
            RL_SIMD
            for (long i = 0; i < size; i++)
                y[i] = x[i] * s;
        }
    }
}

/* x, w?, y, scale; size; eps */
static int rms_norm(const rl_call *c)
{
    rl_parallel(rms_norm_piece, (void *)c, c->size[3], norm_rows(c->integer[0]));
    return RL_OK;
}

static void rms_norm_slope_piece(void *context, long begin, long end)
{
    const layer_backward *job = context;
    const rl_call *c = job->call;
    long size = c->integer[0];
    const real *restrict w = c->array[2], *scale = c->array[3];
    real *restrict to_w = job->partial + size * (begin / job->grain);
    memset(to_w, 0, sizeof(real) * (size_t)size);
    for (long row = begin; row < end; row++) {
        const real *restrict g = (const real *)c->array[0] + row * size;
        const real *restrict x = (const real *)c->array[1] + row * size;
        real *restrict gx = (real *)c->array[4] + row * size;
        real s = scale[row], along = (real)(w ? rl_weighted_dot(g, w, x, size) : rl_dot(g, x, size));
        real slope = -along * s * s / (real)size;
        if (w) {
            RL_SIMD
            for (long i = 0; i < size; i++) {
                gx[i] = (g[i] * w[i] + x[i] * slope) * s;
                to_w[i] += g[i] * x[i] * s;
            }
        } else {
            RL_SIMD
            for (long i = 0; i < size; i++) {
                gx[i] = (g[i] + x[i] * slope) * s;
                to_w[i] += g[i] * x[i] * s;
            }
        }
    }
}

/* g, x, w?, scale, gx, gw; size */
static int rms_norm_slope(const rl_call *c)
{
    long size = c->integer[0], rows = c->size[3], grain = slope_rows(size);
    long pieces = (rows + grain - 1) / grain;
    layer_backward job = {c, malloc(sizeof(real) * (size_t)(size * pieces) + 1), grain};
    if (!job.partial)
        return RL_NO_MEMORY;
    rl_parallel(rms_norm_slope_piece, &job, rows, grain);
    add_pieces(c->array[5], job.partial, pieces, size, size);
    free(job.partial);
    return RL_OK;
}

/* -- group norm: (rows, channels of a row, inner); rows of different channels take turns ----------------------------- */

/* y = x * factor[channel] + shift[channel], a stretch of `inner` for each channel */
static void scale_and_shift(const real *restrict x, real *restrict y, long inner, real factor, real shift)
{
    RL_SIMD
    for (long i = 0; i < inner; i++)
        y[i] = x[i] * factor + shift;
}

static void group_norm_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    long channels = c->integer[0], inner = c->integer[1], turns = c->integer[2], size = channels * inner;
    const real *w = c->array[1], *b = c->array[2];
    real *mean = c->array[4], *scale = c->array[5], *variance = c->array[6];
    for (long row = begin; row < end; row++) {
        const real *x = (const real *)c->array[0] + row * size;
        real *y = (real *)c->array[3] + row * size;
        double v = moments(x, size, &mean[row]);
        real m = mean[row], s = scale[row] = scale_of(v, c->number[0]);
        variance[row] = (real)v;
        for (long k = 0; k < channels; k++) {
            long channel = row % turns * channels + k;
            real factor = w ? s * w[channel] : s, shift = b ? b[channel] : 0;
            const real *restrict from = x + k * inner;
            real *restrict to = y + k * inner;
            RL_SIMD
            for (long i = 0; i < inner; i++)
                to[i] = (from[i] - m) * factor + shift;
        }
    }
}

/* x, w?, b?, y, mean, scale, variance; channels of a row, inner, turns; eps */
static int group_norm(const rl_call *c)
{
    rl_parallel(group_norm_piece, (void *)c, c->size[4], norm_rows(c->integer[0] * c->integer[1]));
    return RL_OK;
}

static void group_norm_slope_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    long channels = c->integer[0], inner = c->integer[1], turns = c->integer[2], size = channels * inner;
    const real *w = c->array[2], *mean = c->array[3], *scale = c->array[4], *to_mean = c->array[5], *to_scale = c->array[6];
    real *along = c->array[8], *total = c->array[9];
    for (long row = begin; row < end; row++) {
        const real *g = (const real *)c->array[0] + row * size, *x = (const real *)c->array[1] + row * size;
        real *gx = (real *)c->array[7] + row * size;
        real m = mean[row], s = scale[row];
        const real *weights = w ? w + row % turns * channels : NULL;
        double all_along = 0, all_total = 0, rest = 0, sums[3];
        for (long k = 0; k < channels; k++) {
            slope_sums(g + k * inner, x + k * inner, m, inner, sums);
            along[row * channels + k] = (real)(sums[0] * s), total[row * channels + k] = (real)sums[1];
            all_along += weights ? sums[0] * weights[k] : sums[0], all_total += weights ? sums[1] * weights[k] : sums[1];
            rest += sums[2];
        }
        all_along -= all_total / (double)size * rest; /* which is 0 but for the rounding of m */
        real slope = (real)(-all_along * s * s * s / (double)size), shift = (real)(-all_total * s / (double)size);
        slope -= of_scale(to_scale, row, s, (double)size), shift += of_mean(to_mean, row, (double)size);
        for (long k = 0; k < channels; k++) {
            real factor = weights ? s * weights[k] : s;
            const real *restrict from = x + k * inner, *restrict incoming = g + k * inner;
            real *restrict to = gx + k * inner;
            RL_SIMD
            for (long i = 0; i < inner; i++)
                to[i] = incoming[i] * factor + (from[i] - m) * slope + shift;
        }
    }
}

/* g, x, w?, mean, scale, to_mean?, to_scale?, gx, and for each channel of each row: its sum for w, and for b; integers as above */
static int group_norm_slope(const rl_call *c)
{
    rl_parallel(group_norm_slope_piece, (void *)c, c->size[3], norm_rows(c->integer[0] * c->integer[1]));
    return RL_OK;
}

/* -- batch norm: (batch, channels, inner), statistics and parameters for each channel -------------------------------- */

enum { COLUMNS = 64 }; /* channels looked at together where inner is 1 */

/* A row of channels that lie side by side, added to the sums of each. */
RL_INLINE void add_row(const real *x, const real *g, const real *mean, long many, real *restrict part, real *restrict rest)
{
    RL_SIMD
    for (long k = 0; k < many; k++) {
        real away = mean ? x[k] - mean[k] : x[k];
        part[k] += !mean ? away : g ? g[k] * away : away * away;
        if (rest)
            rest[k] += away;
    }
}

/* For `many` channels from `first` on: sums over the batch of x, or of (x - mean) times (g, or x - mean where that is
   NULL; those of x - mean, too, then). With inner 1 the channels lie side by side, and each row adds to all of them. */
static void channel_sums(const real *x, const real *g, const real *mean, const long *shape, long first, long many,
                         double *restrict sums, double *restrict rest)
{
    enum { ROWS = 32 }; /* added one by one */
    long batch = shape[0], channels = shape[1], inner = shape[2];
    memset(sums, 0, sizeof(double) * (size_t)many);
    if (rest)
        memset(rest, 0, sizeof(double) * (size_t)many);
    for (long n = 0; inner != 1 && n < batch; n++) {
        long at = (n * channels + first) * inner;
        for (long k = 0; k < many; k++, at += inner)
            if (rest)
                add_away(x + at, mean[k], inner, &sums[k], &rest[k]);
            else
                sums[k] += g ? rl_dot_around(g + at, x + at, mean[k], inner) : rl_sum(x + at, inner);
    }
    for (long n = 0; inner == 1 && n < batch; n += ROWS) {
        long last = batch - n < ROWS ? batch : n + ROWS;
        real part[COLUMNS] = {0}, left[COLUMNS] = {0};
        for (long at = n * channels + first; at < last * channels; at += channels)
            if (rest)
                add_row(x + at, NULL, mean, many, part, left);
            else if (g)
                add_row(x + at, g + at, mean, many, part, NULL);
            else
                add_row(x + at, NULL, NULL, many, part, NULL);
        RL_SIMD
        for (long k = 0; k < many; k++)
            sums[k] += (double)part[k];
        for (long k = 0; rest && k < many; k++)
            rest[k] += (double)left[k];
    }
}

static void batch_norm_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    const real *x = c->array[0], *w = c->array[1], *b = c->array[2];
    real *y = c->array[3], *mean = c->array[4], *scale = c->array[5], *variance = c->array[6];
    long batch = c->integer[0], channels = c->integer[1], inner = c->integer[2];
    double count = (double)(batch * inner), sums[COLUMNS], rest[COLUMNS];
    real factor[COLUMNS], shift[COLUMNS];
    for (long first = begin; first < end; first += COLUMNS) {
        long many = end - first < COLUMNS ? end - first : COLUMNS;
        channel_sums(x, NULL, NULL, c->integer, first, many, sums, NULL);
        for (long k = 0; k < many; k++)
            mean[first + k] = (real)(sums[k] / count);
        channel_sums(x, NULL, mean + first, c->integer, first, many, sums, rest);
        for (long k = 0; k < many; k++) {
            double v = variance_of(sums[k], rest[k], count, &mean[first + k]);
            scale[first + k] = scale_of(v, c->number[0]);
            variance[first + k] = (real)v;
            factor[k] = w ? scale[first + k] * w[first + k] : scale[first + k];
            shift[k] = b ? b[first + k] : 0;
        }
        for (long n = 0; n < batch; n++) {
            long at = (n * channels + first) * inner;
            if (inner == 1) {
                RL_SIMD
                for (long k = 0; k < many; k++)
                    y[at + k] = (x[at + k] - mean[first + k]) * factor[k] + shift[k];
                continue;
            }
            for (long k = 0; k < many; k++, at += inner) {
                real m = mean[first + k], f = factor[k], s = shift[k];
                const real *restrict from = x + at;
                real *restrict to = y + at;
                RL_SIMD
                for (long i = 0; i < inner; i++)
                    to[i] = (from[i] - m) * f + s;
            }
        }
    }
}

/* Channels of a piece: as many elements as in other norms' pieces, but COLUMNS side by side where inner is 1. */
static long channel_grain(const rl_call *c)
{
    long grain = norm_rows(c->integer[0] * c->integer[2]);
    return c->integer[2] == 1 && grain < COLUMNS ? COLUMNS : grain;
}

/* x, w?, b?, y, mean, scale, variance; batch, channels, inner; eps */
static int batch_norm(const rl_call *c)
{
    rl_parallel(batch_norm_piece, (void *)c, c->integer[1], channel_grain(c));
    return RL_OK;
}

/* Where the statistics are not the batch's own, they are constants to it. */
RL_INLINE void slope_of_channels(const rl_call *c, long begin, long end, int own)
{
    const real *g = c->array[0], *x = c->array[1], *w = c->array[2], *mean = c->array[3], *scale = c->array[4];
    const real *to_mean = own ? c->array[5] : NULL, *to_scale = own ? c->array[6] : NULL;
    void *const *made = c->array + (own ? 7 : 5);
    real *gx = made[0], *gw = made[1], *gb = made[2];
    long batch = c->integer[0], channels = c->integer[1], inner = c->integer[2];
    double count = (double)(batch * inner), along[COLUMNS], total[COLUMNS];
    real factor[COLUMNS], slope[COLUMNS], shift[COLUMNS];
    for (long first = begin; first < end; first += COLUMNS) {
        long many = end - first < COLUMNS ? end - first : COLUMNS;
        channel_sums(g, NULL, NULL, c->integer, first, many, total, NULL);
        channel_sums(x, g, mean + first, c->integer, first, many, along, NULL);
        for (long k = 0; k < many; k++) {
            double s = scale[first + k], f = w ? s * w[first + k] : s;
            gw[first + k] = (real)(along[k] * s), gb[first + k] = (real)total[k];
            factor[k] = (real)f;
            slope[k] = own ? (real)(-f * s * s * along[k] / count) - of_scale(to_scale, first + k, s, count) : 0;
            shift[k] = own ? (real)(-f * total[k] / count) + of_mean(to_mean, first + k, count) : 0;
        }
        for (long n = 0; n < batch; n++) {
            long at = (n * channels + first) * inner;
            if (inner == 1) {
                RL_SIMD
                for (long k = 0; k < many; k++)
                    gx[at + k] = own ? g[at + k] * factor[k] + (x[at + k] - mean[first + k]) * slope[k] + shift[k]
                                     : g[at + k] * factor[k];
                continue;
            }
            for (long k = 0; k < many; k++, at += inner) {
                real m = mean[first + k], f = factor[k], l = slope[k], s = shift[k];
                const real *restrict from = x + at, *restrict incoming = g + at;
                real *restrict to = gx + at;
                RL_SIMD
                for (long i = 0; i < inner; i++)
                    to[i] = own ? incoming[i] * f + (from[i] - m) * l + s : incoming[i] * f;
            }
        }
    }
}

static void batch_norm_slope_piece(void *c, long begin, long end) { slope_of_channels(c, begin, end, 1); }
static void given_norm_slope_piece(void *c, long begin, long end) { slope_of_channels(c, begin, end, 0); }

/* g, x, w?, mean, scale, to_mean?, to_scale?, gx, gw, gb; batch, channels, inner */
static int batch_norm_slope(const rl_call *c)
{
    rl_parallel(batch_norm_slope_piece, (void *)c, c->integer[1], channel_grain(c));
    return RL_OK;
}

/* g, x, w?, mean, scale, gx, gw, gb; batch, channels, inner: the same for a mean and a scale that are given */
static int given_norm_slope(const rl_call *c)
{
    rl_parallel(given_norm_slope_piece, (void *)c, c->integer[1], channel_grain(c));
    return RL_OK;
}

/* -- a given factor and shift for each channel ------------------------------------------------------------------------ */

static void channel_affine_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    const real *x = c->array[0], *factor = c->array[1], *shift = c->array[2];
    real *y = c->array[3];
    long channels = c->size[1], inner = c->integer[0];
    for (long row = begin; row < end; row++) {
        long channel = row % channels;
        scale_and_shift(x + row * inner, y + row * inner, inner, factor[channel], shift[channel]);
    }
}

/* The same where channels lie side by side: a row has one of each. */
static void side_by_side(void *context, long begin, long end)
{
    const rl_call *c = context;
    const real *restrict factor = c->array[1], *restrict shift = c->array[2];
    long channels = c->size[1];
    for (long row = begin; row < end; row++) {
        const real *restrict x = (const real *)c->array[0] + row * channels;
        real *restrict y = (real *)c->array[3] + row * channels;
        RL_SIMD
        for (long i = 0; i < channels; i++)
            y[i] = x[i] * factor[i] + shift[i];
    }
}

/* x, factor, shift, y; inner */
static int channel_affine(const rl_call *c)
{
    long inner = c->integer[0];
    if (inner == 1)
        rl_share(side_by_side, (void *)c, c->size[1] ? c->size[0] / c->size[1] : 0, rl_rows(c->size[1]));
    else
        rl_share(channel_affine_piece, (void *)c, inner ? c->size[0] / inner : 0, rl_rows(inner));
    return RL_OK;
}

/* -- running statistics ------------------------------------------------------------------------------------------------ */

/* running mean, running variance, mean, variance, the new running ones; the weight of the batch's, a factor of its variance */
static int followed(const rl_call *c)
{
    real by = (real)c->number[0], keep = (real)(1 - c->number[0]), scale = (real)c->number[1];
    for (int which = 0; which < 2; which++) {
        const real *restrict before = c->array[which], *restrict now = c->array[2 + which];
        real *restrict after = c->array[4 + which], factor = which ? scale : 1;
        for (long i = 0; i < c->size[which]; i++)
            after[i] = keep * before[i] + by * (now[i] * factor);
    }
    return RL_OK;
}

RL_FAMILY(norms) = {
    {"layer_norm", "xx?x?yyyy id", layer_norm},
    {"layer_norm_slope", "xxx?xxx?x? yyy i", layer_norm_slope},
    {"rms_norm", "xx?yy id", rms_norm},
    {"rms_norm_slope", "xxx?x yy i", rms_norm_slope},
    {"group_norm", "xx?x?yyyy iiid", group_norm},
    {"group_norm_slope", "xxx?xxx?x? yyy iii", group_norm_slope},
    {"batch_norm", "xx?x?yyyy iiid", batch_norm},
    {"batch_norm_slope", "xxx?xxx?x? yyy iii", batch_norm_slope},
    {"given_norm_slope", "xxx?xx yyy iii", given_norm_slope},
    {"channel_affine", "xxxy i", channel_affine},
    {"followed", "xxxx yy dd", followed},
    RL_END,
};
