/* The largest element of each window of two dimensions, and the gradient that goes back to it.
   Windows are alike and step by step (max_windows), or each has bounds of its own (largest_of). */
#include "approximations.h"

enum { VECTOR = 64 / sizeof(real) };

typedef struct {
    const real *x, *end;
    const int64_t *offset; /* (count, 2): where each element of a window sits from its start, which may be outside */
    real *best;
    uint8_t *which;
    long count, height, width, rows, cols, step[2];
    int out_of_memory;
} windows;

static windows windows_of(const rl_call *c, const int64_t *offset, long count)
{
    const long *i = c->integer;
    return (windows){.offset = offset, .count = count / 2, .height = i[1], .width = i[2], .rows = i[3], .cols = i[4],
                     .step = {i[5], i[6]}};
}

static long ceiling(long a, long b) { return a > 0 ? (a + b - 1) / b : 0; } /* at least 0 */

/* The first of equals, the last of NaN. at is count as long as nothing was found. */
#define COMPARE(formula)                                                                                               \
    RL_SIMD                                                                                                            \
    for (long j = begin; j < end; j++) {                                                                               \
        real value = formula;                                                                                          \
        int better = (value > best[j]) | (value != value) | (at[j] == count);                                          \
        best[j] = better ? value : best[j];                                                                            \
        at[j] = better ? k : at[j];                                                                                    \
    }

/* After x there are so many numbers in all. */
static void compare(const real *restrict x, long numbers, long step, long begin, long end, whole k, whole count,
                    real *restrict best, whole *restrict at)
{
    if (step == 1)
        COMPARE(x[j])
#if !defined(RL_DOUBLE) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    else if (step == 2 && 2 * end <= numbers) { /* every second number is the first half of a pair, and pairs lie one after the other */
        typedef uint64_t __attribute__((aligned(4), may_alias)) pair;
        const pair *restrict pairs = (const pair *)x;
        COMPARE(rl_from_bits((whole)(uint32_t)pairs[j]))
    }
#endif
    else
        COMPARE(x[j * step])
}

static void largest_of_row(const windows *w, const real *plane, long row, real *best, whole *at)
{
    for (long j = 0, room = w->cols + VECTOR; j < room; j++)
        best[j] = -INFINITY, at[j] = (whole)w->count;
    for (long k = 0; k < w->count; k++) {
        long y = row * w->step[0] + w->offset[2 * k], low = w->offset[2 * k + 1], step = w->step[1];
        if (y < 0 || y >= w->height)
            continue;
        long begin = ceiling(-low, step), end = ceiling(w->width - low, step);
        end = end < w->cols ? end : w->cols;
        const real *x = plane + y * w->width + low;
        long whole_vectors = (end + VECTOR - 1) / VECTOR * VECTOR; /* what follows the row is compared, and dropped */
        if (begin == 0 && end == w->cols && whole_vectors * step <= w->end - x)
            end = whole_vectors;
        compare(x, w->end - x, step, begin, end, (whole)k, (whole)w->count, best, at);
    }
}

static void largest_pieces(void *context, long begin, long end)
{
    windows *w = context;
    long room = w->cols + VECTOR;
    real *best = rl_scratch((size_t)room * (sizeof(real) + sizeof(whole)));
    if (!best) {
        w->out_of_memory = 1;
        return;
    }
    whole *at = (whole *)(best + room);
    for (long plane = begin; plane < end; plane++)
        for (long row = 0; row < w->rows; row++) {
            long to = (plane * w->rows + row) * w->cols;
            largest_of_row(w, w->x + plane * w->height * w->width, row, best, at);
            memcpy(w->best + to, best, (size_t)w->cols * sizeof(real));
            uint8_t *restrict which = w->which + to;
            for (long j = 0, cols = w->cols; j < cols; j++)
                which[j] = (uint8_t)at[j];
        }
}

/* max_windows(x, offsets, best, which, planes, height, width, rows, cols, and both steps), of at most 255 offsets */
static int max_windows(const rl_call *c)
{
    windows w = windows_of(c, c->array[1], c->size[1]);
    w.x = c->array[0], w.end = w.x + c->size[0], w.best = c->array[2], w.which = c->array[3];
    rl_parallel(largest_pieces, &w, c->integer[0], rl_rows(w.height * w.width + w.rows * w.cols * w.count));
    return w.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* best is the gradient that comes in here, x the one that goes out. */
static void spread_pieces(void *context, long begin, long end)
{
    const windows *w = context;
    for (long plane = begin; plane < end; plane++) {
        real *to = (real *)w->x + plane * w->height * w->width;
        memset(to, 0, (size_t)(w->height * w->width) * sizeof(real));
        for (long row = 0; row < w->rows; row++)
            for (long col = 0; col < w->cols; col++) {
                long from = (plane * w->rows + row) * w->cols + col, k = w->which[from];
                if (k >= w->count)
                    continue;
                long y = row * w->step[0] + w->offset[2 * k], x = col * w->step[1] + w->offset[2 * k + 1];
                if (y >= 0 && y < w->height && x >= 0 && x < w->width)
                    to[y * w->width + x] += w->best[from];
            }
    }
}

/* max_windows_slope(g, which, offsets, gx, …) */
static int max_windows_slope(const rl_call *c)
{
    windows w = windows_of(c, c->array[2], c->size[2]);
    w.best = c->array[0], w.which = c->array[1], w.x = c->array[3];
    rl_parallel(spread_pieces, &w, c->integer[0], rl_rows(w.height * w.width + w.rows * w.cols));
    return RL_OK;
}

/* -- windows of any sizes --------------------------------------------------------------------------------------------- */

typedef struct {
    const real *x, *end;
    const int64_t *rows, *cols; /* (2, windows along the axis): where each begins, where it ends */
    int64_t *found;
    long down, across, height, width;
    int out_of_memory;
} grid;

/* The largest element of each column of some rows, and the row it is in: the first of equals, the last of NaN. best and
   at have room for a vector more; `numbers` follow x. */
static void largest_of_columns(const real *x, long numbers, long width, long first, long last, real *restrict best,
                               whole *restrict at)
{
    long whole_vectors = (width + VECTOR - 1) / VECTOR * VECTOR;
    for (long i = first; i < last; i++) {
        const real *restrict row = x + i * width;
        long count = i * width + whole_vectors <= numbers ? whole_vectors : width;
        if (i == first)
            for (long j = 0; j < count; j++)
                best[j] = row[j], at[j] = (whole)first;
        else
            RL_SIMD
            for (long j = 0; j < count; j++) {
                int better = (row[j] > best[j]) | (row[j] != row[j]);
                best[j] = better ? row[j] : best[j];
                at[j] = better ? (whole)i : at[j];
            }
    }
}

/* The flat place of the largest of some columns' largest elements: the first of equals, the last of NaN. */
static int64_t largest_of_few(const real *restrict best, const whole *restrict at, long width, long first, long last)
{
    real most = best[first];
    int64_t found = at[first] * (int64_t)width + first;
    for (long j = first + 1; j < last; j++) {
        int64_t place = at[j] * (int64_t)width + j;
        int earlier = place < found, none = best[j] != best[j];
        int better = most != most ? none & !earlier : none | (best[j] > most) | ((best[j] == most) & earlier);
        most = better ? best[j] : most;
        found = better ? place : found;
    }
    return found;
}

/* The same where vectors pay. */
static int64_t largest_of_many(const real *restrict best, const whole *restrict at, long width, long first, long last)
{
    real most = -INFINITY;
    int no_number = 0;
    _Pragma("omp simd reduction(max : most) reduction(| : no_number)")
    for (long j = first; j < last; j++) {
        most = best[j] > most ? best[j] : most;
        no_number |= best[j] != best[j];
    }
    if (no_number)
        return largest_of_few(best, at, width, first, last);
    int64_t found = INT64_MAX;
    _Pragma("omp simd reduction(min : found)")
    for (long j = first; j < last; j++) {
        int64_t place = best[j] == most ? at[j] * (int64_t)width + j : INT64_MAX;
        found = place < found ? place : found;
    }
    return found;
}

static void grid_planes(void *context, long begin, long end)
{
    grid *g = context;
    real *best = rl_scratch((size_t)(g->width + VECTOR) * (sizeof(real) + sizeof(whole)));
    if (!best) {
        g->out_of_memory = 1;
        return;
    }
    whole *at = (whole *)(best + g->width + VECTOR);
    for (long plane = begin; plane < end; plane++)
        for (long i = 0; i < g->down; i++) {
            const real *x = g->x + plane * g->height * g->width;
            largest_of_columns(x, g->end - x, g->width, g->rows[i], g->rows[g->down + i], best, at);
            int64_t *found = g->found + (plane * g->down + i) * g->across;
            for (long j = 0; j < g->across; j++) {
                long first = g->cols[j], last = g->cols[g->across + j];
                found[j] = (last - first < VECTOR ? largest_of_few : largest_of_many)(best, at, g->width, first, last);
            }
        }
}

/* largest_of(x, rows, cols, found, height, width): the place of the largest element of each window, in its plane */
static int largest_of(const rl_call *c)
{
    const real *x = c->array[0];
    grid g = {x, x + c->size[0], c->array[1], c->array[2], c->array[3], c->size[1] / 2, c->size[2] / 2, c->integer[0],
              c->integer[1], 0};
    rl_parallel(grid_planes, &g, c->size[0] / g.height / g.width, rl_rows(2 * g.height * g.width));
    return g.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* at_positions(x, index, out, lead): out[i, j] = x[i, index[i, j]], i counts the leading axes */
static int at_positions(const rl_call *c)
{
    const real *x = c->array[0];
    const int64_t *index = c->array[1];
    real *out = c->array[2];
    long lead = c->integer[0], full = lead ? c->size[0] / lead : 0, many = lead ? c->size[1] / lead : 0;
    for (long i = 0; i < lead; i++, x += full, index += many, out += many)
        for (long j = 0; j < many; j++) {
            if ((uint64_t)index[j] >= (uint64_t)full)
                return RL_BAD_INDEX;
            out[j] = x[index[j]];
        }
    return RL_OK;
}

/* add_positions(g, index, out, lead), the adjoint */
static int add_positions(const rl_call *c)
{
    const real *g = c->array[0];
    const int64_t *index = c->array[1];
    real *out = c->array[2];
    long lead = c->integer[0], full = lead ? c->size[2] / lead : 0, many = lead ? c->size[1] / lead : 0;
    for (long i = 0; i < lead; i++, g += many, index += many, out += full) {
        memset(out, 0, sizeof(real) * (size_t)full);
        for (long j = 0; j < many; j++) {
            if ((uint64_t)index[j] >= (uint64_t)full)
                return RL_BAD_INDEX;
            out[index[j]] += g[j];
        }
    }
    return RL_OK;
}

RL_FAMILY(windows) = {
    {"max_windows", "xqyB iii iiii", max_windows},
    {"max_windows_slope", "xbqy iii iiii", max_windows_slope},
    {"largest_of", "xqqQ ii", largest_of},
    {"at_positions", "xqy i", at_positions},
    {"add_positions", "xqy i", add_positions},
    RL_END,
};
