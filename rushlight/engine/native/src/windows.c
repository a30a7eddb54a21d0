/* The largest element, or the sum, of each window of up to three dimensions, and the gradient that goes back.
   Windows are alike and step by step (max_windows), or each has bounds of its own (largest_of). */
#include "approximations.h"
#include "sums.h"

enum { VECTOR = 64 / sizeof(real) };

typedef struct {
    const real *x, *end;
    const int64_t *offset; /* (count, 3): where each element of a window sits from its start, which may be outside */
    real *best;
    uint8_t *which;
    long count, depth, height, width, slabs, rows, cols, step[3];
    int out_of_memory;
} windows;

static windows windows_of(const rl_call *c, const int64_t *offset, long count)
{
    const long *i = c->integer;
    return (windows){.offset = offset, .count = count / 3, .depth = i[1], .height = i[2], .width = i[3],
                     .slabs = i[4], .rows = i[5], .cols = i[6], .step = {i[7], i[8], i[9]}};
}

static long volume_of(const windows *w) { return w->depth * w->height * w->width; }
static long many(const windows *w) { return w->slabs * w->rows * w->cols; }

/* Where in its volume element k of the windows of one row begins: (row, first column), NULL if it is outside. */
static const real *line_of(const windows *w, const real *volume, long slab, long row, long k)
{
    const int64_t *o = w->offset + 3 * k;
    long z = slab * w->step[0] + o[0], y = row * w->step[1] + o[1];
    int inside = z >= 0 && z < w->depth && y >= 0 && y < w->height;
    return inside ? volume + (z * w->height + y) * w->width : NULL;
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

/* The windows of a row whose element at column `low` of the first is inside: from *begin up to *end. */
static void inside(const windows *w, long low, long *begin, long *end)
{
    *begin = ceiling(-low, w->step[2]), *end = ceiling(w->width - low, w->step[2]);
    *end = *end < w->cols ? *end : w->cols;
}

static void largest_of_row(const windows *w, const real *volume, long slab, long row, real *best, whole *at)
{
    for (long j = 0, room = w->cols + VECTOR; j < room; j++)
        best[j] = -INFINITY, at[j] = (whole)w->count;
    for (long k = 0; k < w->count; k++) {
        const real *line = line_of(w, volume, slab, row, k);
        if (!line)
            continue;
        long low = w->offset[3 * k + 2], step = w->step[2], begin, end;
        inside(w, low, &begin, &end);
        const real *x = line + low;
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
    for (long line = begin * w->slabs * w->rows; line < end * w->slabs * w->rows; line++) {
        long row = line % w->rows, slab = line / w->rows % w->slabs, volume = line / w->rows / w->slabs;
        largest_of_row(w, w->x + volume * volume_of(w), slab, row, best, at);
        memcpy(w->best + line * w->cols, best, (size_t)w->cols * sizeof(real));
        uint8_t *restrict which = w->which + line * w->cols;
        for (long j = 0, cols = w->cols; j < cols; j++)
            which[j] = (uint8_t)at[j];
    }
}

/* max_windows(x, offsets, best, which, volumes, the three sizes, how many windows, and how far apart), of at most 255
   offsets */
static int max_windows(const rl_call *c)
{
    windows w = windows_of(c, c->array[1], c->size[1]);
    w.x = c->array[0], w.end = w.x + c->size[0], w.best = c->array[2], w.which = c->array[3];
    rl_share(largest_pieces, &w, c->integer[0], rl_rows(volume_of(&w) + many(&w) * w.count));
    return w.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* best is the gradient that comes in here, x the one that goes out. */
static void spread_pieces(void *context, long begin, long end)
{
    const windows *w = context;
    for (long volume = begin; volume < end; volume++) {
        real *to = (real *)w->x + volume * volume_of(w);
        memset(to, 0, (size_t)volume_of(w) * sizeof(real));
        for (long line = 0; line < w->slabs * w->rows; line++)
            for (long col = 0; col < w->cols; col++) {
                long from = (volume * w->slabs * w->rows + line) * w->cols + col, k = w->which[from];
                if (k >= w->count)
                    continue;
                real *place = (real *)line_of(w, to, line / w->rows, line % w->rows, k);
                long x = col * w->step[2] + w->offset[3 * k + 2];
                if (place && x >= 0 && x < w->width)
                    place[x] += w->best[from];
            }
    }
}

/* max_windows_slope(g, which, offsets, gx, …) */
static int max_windows_slope(const rl_call *c)
{
    windows w = windows_of(c, c->array[2], c->size[2]);
    w.best = c->array[0], w.which = c->array[1], w.x = c->array[3];
    rl_share(spread_pieces, &w, c->integer[0], rl_rows(volume_of(&w) + many(&w)));
    return RL_OK;
}

static void add_line(const real *restrict x, long step, real *restrict to, long begin, long end)
{
    if (step == 1)
        RL_SIMD for (long j = begin; j < end; j++) to[j] += x[j];
    else if (step == 2)
        RL_SIMD for (long j = begin; j < end; j++) to[j] += x[2 * j];
    else
        for (long j = begin; j < end; j++)
            to[j] += x[j * step];
}

static void sum_pieces(void *context, long begin, long end)
{
    const windows *w = context;
    for (long line = begin * w->slabs * w->rows; line < end * w->slabs * w->rows; line++) {
        long row = line % w->rows, slab = line / w->rows % w->slabs, volume = line / w->rows / w->slabs;
        real *to = w->best + line * w->cols;
        memset(to, 0, (size_t)w->cols * sizeof(real));
        for (long k = 0; k < w->count; k++) {
            const real *x = line_of(w, w->x + volume * volume_of(w), slab, row, k);
            long low = w->offset[3 * k + 2], first, last;
            inside(w, low, &first, &last);
            if (x)
                add_line(x + low, w->step[2], to, first, last);
        }
    }
}

/* sum_windows(x, offsets, sums, …) */
static int sum_windows(const rl_call *c)
{
    windows w = windows_of(c, c->array[1], c->size[1]);
    w.x = c->array[0], w.best = c->array[2];
    rl_share(sum_pieces, &w, c->integer[0], rl_rows(volume_of(&w) + many(&w) * w.count));
    return RL_OK;
}

static void add_apart(const real *restrict from, real *restrict to, long step, long begin, long end)
{
    if (step == 1)
        RL_SIMD for (long j = begin; j < end; j++) to[j] += from[j];
    else
        for (long j = begin; j < end; j++)
            to[j * step] += from[j];
}

static void spread_sums(void *context, long begin, long end)
{
    const windows *w = context;
    for (long volume = begin; volume < end; volume++) {
        real *to = (real *)w->x + volume * volume_of(w);
        memset(to, 0, (size_t)volume_of(w) * sizeof(real));
        for (long line = 0; line < w->slabs * w->rows; line++)
            for (long k = 0; k < w->count; k++) {
                real *place = (real *)line_of(w, to, line / w->rows, line % w->rows, k);
                long low = w->offset[3 * k + 2], first, last;
                inside(w, low, &first, &last);
                if (place)
                    add_apart(w->best + (volume * w->slabs * w->rows + line) * w->cols, place + low, w->step[2], first, last);
            }
    }
}

/* spread_windows(g, offsets, gx, …), the adjoint */
static int spread_windows(const rl_call *c)
{
    windows w = windows_of(c, c->array[1], c->size[1]);
    w.best = c->array[0], w.x = c->array[2];
    rl_share(spread_sums, &w, c->integer[0], rl_rows(volume_of(&w) + many(&w) * w.count));
    return RL_OK;
}

/* -- windows side by side, of two dimensions: every element is in one ------------------------------------------------- */

typedef struct {
    const real *x;
    real *y;
    long cols, down, across; /* windows beside each other; the size of one */
    int out_of_memory;
} tiles;

static tiles tiles_of(const rl_call *c) { return (tiles){c->array[0], c->array[1], c->integer[1], c->integer[2], c->integer[3], 0}; }

/* The sum of some rows, in stretches that are added one by one. */
static void add_lines(const real *x, long rows, long width, real *restrict line, double *restrict total)
{
    enum { STRETCH = 32 };
    int is_long = rows > STRETCH;
    if (is_long)
        memset(total, 0, sizeof(double) * (size_t)width);
    for (long i = 0; i < rows; i++) {
        const real *restrict from = x + i * width;
        int begins = i % STRETCH == 0;
        RL_SIMD
        for (long j = 0; j < width; j++)
            line[j] = begins ? from[j] : line[j] + from[j];
        if (is_long && (i % STRETCH == STRETCH - 1 || i == rows - 1))
            for (long j = 0; j < width; j++)
                total[j] += (double)line[j];
    }
    for (long j = 0; is_long && j < width; j++)
        line[j] = (real)total[j];
}

static void sum_tile_rows(void *context, long begin, long end)
{
    tiles *t = context;
    long width = t->cols * t->across;
    double *total = rl_scratch((size_t)width * (sizeof(double) + sizeof(real)));
    if (!total) {
        t->out_of_memory = 1;
        return;
    }
    real *line = (real *)(total + width);
    for (long i = begin; i < end; i++) {
        const real *x = t->x + i * t->down * width;
        if (t->cols == 1) {
            t->y[i] = (real)rl_sum(x, t->down * width);
            continue;
        }
        add_lines(x, t->down, width, line, total);
        for (long j = 0; j < t->cols; j++)
            t->y[i * t->cols + j] = (real)rl_sum(line + j * t->across, t->across);
    }
}

/* sum_tiles(x, sums, rows of windows in all planes, windows in a row, the height and width of a window) */
static int sum_tiles(const rl_call *c)
{
    tiles t = tiles_of(c);
    rl_share(sum_tile_rows, &t, c->integer[0], rl_rows(t.cols * t.across * t.down));
    return t.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

static void spread_tile_rows(void *context, long begin, long end)
{
    const tiles *t = context;
    long width = t->cols * t->across;
    for (long i = begin; i < end; i++) {
        real *restrict line = t->y + i * t->down * width;
        for (long j = 0; j < t->cols; j++)
            for (long k = 0; k < t->across; k++)
                line[j * t->across + k] = t->x[i * t->cols + j];
        for (long k = 1; k < t->down; k++)
            memcpy(line + k * width, line, sizeof(real) * (size_t)width);
    }
}

/* spread_tiles(g, gx, …), the adjoint */
static int spread_tiles(const rl_call *c)
{
    tiles t = tiles_of(c);
    rl_share(spread_tile_rows, &t, c->integer[0], rl_rows(t.cols * t.across * t.down));
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
    rl_share(grid_planes, &g, c->size[0] / g.height / g.width, rl_rows(2 * g.height * g.width));
    return g.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* -- by index ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    const real *x;
    const int64_t *index;
    real *out;
    long full, many; /* of each of the leading axes' elements: what an index counts in, and how many there are */
    int adds, bad_index;
} places;

static places places_of(const rl_call *c, int counted)
{
    long lead = c->integer[0];
    return (places){c->array[0], c->array[1], c->array[2], lead ? c->size[counted] / lead : 0, lead ? c->size[1] / lead : 0, 0, 0};
}

static int are_inside(const int64_t *index, long many, long full)
{
    uint64_t most = 0;
    _Pragma("omp simd reduction(max : most)")
    for (long j = 0; j < many; j++)
        most = (uint64_t)index[j] > most ? (uint64_t)index[j] : most;
    return !many || most < (uint64_t)full;
}

RL_GATHERS static void read_places(void *context, long begin, long end)
{
    places *p = context;
    for (long i = begin; i < end; i++) {
        const real *restrict x = p->x + i * p->full;
        const int64_t *restrict index = p->index + i * p->many;
        real *restrict out = p->out + i * p->many;
        if (!are_inside(index, p->many, p->full)) {
            p->bad_index = 1;
            return;
        }
        RL_SIMD
        for (long j = 0; j < p->many; j++)
            out[j] = x[index[j]];
    }
}

/* at_positions(x, index, out, lead): out[i, j] = x[i, index[i, j]], i counts the leading axes */
static int at_positions(const rl_call *c)
{
    places p = places_of(c, 0);
    rl_share(read_places, &p, c->integer[0], rl_rows(4 * p.many));
    return p.bad_index ? RL_BAD_INDEX : RL_OK;
}

static void write_places(void *context, long begin, long end)
{
    places *p = context;
    for (long i = begin; i < end; i++) {
        const real *restrict x = p->x + i * p->many;
        const int64_t *restrict index = p->index + i * p->many;
        real *restrict out = p->out + i * p->full;
        if (!are_inside(index, p->many, p->full)) {
            p->bad_index = 1;
            return;
        }
        memset(out, 0, sizeof(real) * (size_t)p->full);
        for (long j = 0; j < p->many; j++)
            out[index[j]] = p->adds ? out[index[j]] + x[j] : x[j];
    }
}

/* The adjoint, or, without sums, the last of those that belong in one place: (g, index, out, lead) */
static int write_positions(const rl_call *c, int adds)
{
    places p = places_of(c, 2);
    p.adds = adds;
    rl_share(write_places, &p, c->integer[0], rl_rows(p.full + 4 * p.many));
    return p.bad_index ? RL_BAD_INDEX : RL_OK;
}

static int add_positions(const rl_call *c) { return write_positions(c, 1); }
static int put_positions(const rl_call *c) { return write_positions(c, 0); }

RL_FAMILY(windows) = {
    {"max_windows", "xqyB iiii iii iii", max_windows},
    {"max_windows_slope", "xbqy iiii iii iii", max_windows_slope},
    {"sum_windows", "xqy iiii iii iii", sum_windows},
    {"spread_windows", "xqy iiii iii iii", spread_windows},
    {"sum_tiles", "xy iiii", sum_tiles},
    {"spread_tiles", "xy iiii", spread_tiles},
    {"largest_of", "xqqQ ii", largest_of},
    {"at_positions", "xqy i", at_positions},
    {"add_positions", "xqy i", add_positions},
    {"put_positions", "xqy i", put_positions},
    RL_END,
};
