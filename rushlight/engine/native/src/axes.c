/* Sums over an axis that is not the innermost one in memory, and over one that is, and running ones; the largest along such
   an axis; sums of the rows that have the same index. */
#include "sums.h"

enum { STRETCH = 64, WIDTH = 256 }; /* numbers that are added one by one; columns at a time */
enum { PIECES = 32 };               /* of rows at most: each goes through the whole index */

/* x is (outer, n, inner). Where n is long it is cut into parts, whose sums are added up in their order. */
typedef struct {
    const real *x;
    double *sums; /* (parts, outer, inner), or NULL: there is one part, and y is written at once */
    real *y;      /* (outer, inner) */
    long outer, n, inner, strips, parts, part, of;
    const real *around; /* what is taken from the numbers of each row first, or NULL */
} table;

enum { NUMBERS, SIZES, SQUARES, PRODUCTS }; /* what is added up, or that it is multiplied */

/* A strip of columns: stretches of rows, their sums added in double precision. */
static void strip_sums(const real *x, long rows, long inner, long width, double *total)
{
    for (long row = 0; row < rows; row += STRETCH) {
        long last = rows - row < STRETCH ? rows : row + STRETCH;
        real part[WIDTH] = {0};
        for (long i = row; i < last; i++)
            RL_SIMD
            for (long j = 0; j < width; j++)
                part[j] += x[i * inner + j];
        RL_SIMD
        for (long j = 0; j < width; j++)
            total[j] += (double)part[j];
    }
}

static void column_pieces(void *context, long begin, long end)
{
    const table *t = context;
    for (long which = begin; which < end; which++) {
        long first = which % t->strips * WIDTH, rest = which / t->strips;
        long row = rest % t->parts * t->part, outer = rest / t->parts;
        long rows = t->n - row < t->part ? t->n - row : t->part, width = t->inner - first < WIDTH ? t->inner - first : WIDTH;
        const real *x = t->x + (outer * t->n + row) * t->inner + first;
        if (t->sums)
            strip_sums(x, rows, t->inner, width, t->sums + (rest % t->parts * t->outer + outer) * t->inner + first);
        else {
            double total[WIDTH] = {0};
            strip_sums(x, rows, t->inner, width, total);
            for (long j = 0; j < width; j++)
                t->y[outer * t->inner + first + j] = (real)total[j];
        }
    }
}

/* By lanes, as sums.h has it, in double precision: what is too large or too small for a real may come back. */
static double product_of(const real *x, long n)
{
    double part[RL_WAYS];
    for (int lane = 0; lane < RL_WAYS; lane++)
        part[lane] = 1;
    RL_LANES(0, n, part[lane] *= (double)x[i]);
    for (int half = RL_WAYS / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            part[lane] *= part[lane + half];
    return part[0];
}

static double total_of_row(const table *t, long row, const real *x, long n)
{
    switch (t->of) {
    case NUMBERS: return rl_sum(x, n);
    case SIZES: return rl_abs_sum(x, n);
    case SQUARES: return t->around ? rl_square_sum(x, t->around[row], n) : rl_dot(x, x, n);
    default: return product_of(x, n);
    }
}

static void row_pieces(void *context, long begin, long end)
{
    const table *t = context;
    for (long which = begin; which < end; which++) {
        long outer = which / t->parts, first = which % t->parts * t->part;
        long length = t->n - first < t->part ? t->n - first : t->part;
        double total = total_of_row(t, outer, t->x + outer * t->n + first, length);
        if (t->sums)
            t->sums[which % t->parts * t->outer + outer] = total;
        else
            t->y[outer] = (real)total;
    }
}

static int add_parts(table *t, real *y, long pieces, long grain, void (*body)(void *, long, long))
{
    long size = t->outer * t->inner;
    t->y = y;
    if (t->parts == 1) {
        rl_parallel(body, t, pieces, grain);
        return RL_OK;
    }
    t->sums = calloc((size_t)(t->parts * size) + 1, sizeof(double));
    if (!t->sums)
        return RL_NO_MEMORY;
    rl_parallel(body, t, pieces, grain);
    for (long part = 1; part < t->parts; part++)
        for (long i = 0; i < size; i++)
            if (t->of == PRODUCTS)
                t->sums[i] *= t->sums[part * size + i];
            else
                t->sums[i] += t->sums[part * size + i];
    for (long i = 0; i < size; i++)
        y[i] = (real)t->sums[i];
    free(t->sums);
    return RL_OK;
}

static long at_least_one(long n) { return n > 1 ? n : 1; }

/* axis_sums(x, y, outer, n, inner): x is (outer, n, inner), y (outer, inner) */
static int axis_sums(const rl_call *c)
{
    long outer = c->integer[0], n = c->integer[1], inner = c->integer[2], width = inner < WIDTH ? inner : WIDTH;
    long strips = (inner + WIDTH - 1) / WIDTH, few = at_least_one(rl_rows(4 * width) / STRETCH) * STRETCH;
    long part = c->size[0] <= RL_PIECE && n > few ? n : few; /* what is not worth two threads is one */
    table t = {.x = c->array[0], .outer = outer, .n = n, .inner = inner, .strips = strips, .part = part};
    t.parts = at_least_one((n + part - 1) / part);
    return add_parts(&t, c->array[1], outer * strips * t.parts, rl_rows((n < part ? n : part) * width), column_pieces);
}

/* row_sums(x, around, y, n, of): x is (rows, n), y (rows); of numbers (0), their sizes (1), squares (2; those of differences
   from what is in `around`, if there is something) or their product (3) */
static int row_sums(const rl_call *c)
{
    long n = c->integer[0], part = RL_PIECE;
    table t = {.x = c->array[0], .outer = c->size[2], .n = n, .inner = 1, .of = c->integer[1], .around = c->array[1]};
    t.part = part, t.parts = at_least_one((n + part - 1) / part);
    return add_parts(&t, c->array[2], t.outer * t.parts, rl_rows(n), row_pieces);
}

/* -- variances, in double precision: equal numbers have none, however their sum is rounded -------------------------------- */

typedef struct {
    double mean, squares; /* of differences from the mean */
} spread;

typedef struct {
    const real *x;
    real *mean, *found;
    spread *kept; /* of the parts of each row, or NULL: each is one */
    long n, parts;
    int root;
    double freedom;
} spreads;

/* The sum of the differences from `from`, or of their squares. */
RL_INLINE double away_from(const real *x, double from, long n, int squared)
{
    double total = 0;
    RL_STRETCHES(n)
    {
        double part[RL_WAYS] = {0};
        RL_LANES(first, last, double away = (double)x[i] - from; part[lane] += squared ? away * away : away);
        for (int half = RL_WAYS / 2; half; half /= 2)
            for (int lane = 0; lane < half; lane++)
                part[lane] += part[lane + half];
        total += part[0];
    }
    return total;
}

static spread spread_of(const real *x, long n)
{
    double mean = (double)x[0] + away_from(x, (double)x[0], n, 0) / (double)n;
    return (spread){mean, away_from(x, mean, n, 1)};
}

static void write_spread(const spreads *t, long row, spread s)
{
    t->mean[row] = (real)s.mean;
    t->found[row] = (real)(t->root ? sqrt(s.squares / t->freedom) : s.squares / t->freedom);
}

static void spread_pieces(void *context, long begin, long end)
{
    const spreads *t = context;
    for (long which = begin; which < end; which++) {
        long row = which / t->parts, first = which % t->parts * RL_PIECE;
        spread s = spread_of(t->x + row * t->n + first, t->n - first < RL_PIECE ? t->n - first : RL_PIECE);
        if (t->kept)
            t->kept[which] = s;
        else
            write_spread(t, row, s);
    }
}

/* row_spreads(x, mean, variance, n, root, freedom): x is (rows, n), n > 0; with root, the root of the variance */
static int row_spreads(const rl_call *c)
{
    long n = c->integer[0], parts = (n + RL_PIECE - 1) / RL_PIECE, rows = c->size[1];
    spreads t = {.x = c->array[0], .mean = c->array[1], .found = c->array[2], .n = n, .parts = parts,
                 .root = (int)c->integer[1], .freedom = c->number[0]};
    if (parts > 1 && !(t.kept = malloc(sizeof(spread) * (size_t)(rows * parts) + 1)))
        return RL_NO_MEMORY;
    rl_parallel(spread_pieces, &t, rows * parts, rl_rows(n));
    for (long row = 0; t.kept && row < rows; row++) {
        spread all = t.kept[row * parts];
        for (long part = 1; part < parts; part++) {
            spread s = t.kept[row * parts + part];
            long before = part * RL_PIECE, count = n - before < RL_PIECE ? n - before : RL_PIECE;
            double away = s.mean - all.mean, share = (double)count / (double)(before + count);
            all.mean += away * share;
            all.squares += s.squares + away * away * (double)before * share;
        }
        write_spread(&t, row, all);
    }
    free(t.kept);
    return RL_OK;
}

/* -- running totals and products, in double precision ------------------------------------------------------------------ */

enum { SIDE_BY_SIDE = 8 }; /* rows: each number waits for the one before it, but not for those of another row */

typedef struct {
    const real *x;
    real *y;
    long n, inner, strips;
    int is_product;
} totals;

RL_INLINE double onward(double total, real x, int is_product) { return is_product ? total * (double)x : total + (double)x; }

RL_INLINE void total_rows(const real *restrict x, real *restrict y, long n, int rows, int is_product)
{
    double total[SIDE_BY_SIDE];
    for (int row = 0; row < SIDE_BY_SIDE; row++)
        total[row] = is_product;
    for (long i = 0; i < n; i++)
        for (int row = 0; row < rows; row++)
            y[row * n + i] = (real)(total[row] = onward(total[row], x[row * n + i], is_product));
}

static void running_rows(void *context, long begin, long end)
{
    const totals *t = context;
    long row = begin;
    for (; row + SIDE_BY_SIDE <= end; row += SIDE_BY_SIDE)
        if (t->is_product)
            total_rows(t->x + row * t->n, t->y + row * t->n, t->n, SIDE_BY_SIDE, 1);
        else
            total_rows(t->x + row * t->n, t->y + row * t->n, t->n, SIDE_BY_SIDE, 0);
    for (; row < end; row++)
        total_rows(t->x + row * t->n, t->y + row * t->n, t->n, 1, t->is_product);
}

static void running_strips(void *context, long begin, long end)
{
    const totals *t = context;
    for (long which = begin; which < end; which++) {
        long first = which % t->strips * WIDTH, width = t->inner - first < WIDTH ? t->inner - first : WIDTH;
        long at = which / t->strips * t->n * t->inner + first;
        double total[WIDTH];
        for (long j = 0; j < WIDTH; j++)
            total[j] = t->is_product;
        for (long i = 0; i < t->n; i++, at += t->inner)
            RL_SIMD
            for (long j = 0; j < width; j++)
                t->y[at + j] = (real)(total[j] = onward(total[j], t->x[at + j], t->is_product));
    }
}

static int running(const rl_call *c, int is_product)
{
    long n = c->integer[0], inner = c->integer[1], outer = n && inner ? c->size[0] / (n * inner) : 0;
    totals t = {c->array[0], c->array[1], n, inner, (inner + WIDTH - 1) / WIDTH, is_product};
    if (inner == 1) {
        long grain = rl_rows(n);
        rl_parallel(running_rows, &t, outer, grain < SIDE_BY_SIDE ? SIDE_BY_SIDE : grain);
    } else
        rl_share(running_strips, &t, outer * t.strips, rl_rows(n * (inner < WIDTH ? inner : WIDTH)));
    return RL_OK;
}

/* running_sums(x, y, n, inner), running_products: along the middle axis of (outer, n, inner) */
static int running_sums(const rl_call *c) { return running(c, 0); }

static int running_products(const rl_call *c) { return running(c, 1); }

/* -- products of all others ----------------------------------------------------------------------------------------------- */

/* That of those before, and then by that of those after, so that zeros need no care. */
RL_INLINE void others_of_rows(const real *restrict x, real *restrict y, long n, int rows)
{
    double total[SIDE_BY_SIDE];
    for (int row = 0; row < SIDE_BY_SIDE; row++)
        total[row] = 1;
    for (long i = 0; i < n; i++)
        for (int row = 0; row < rows; row++) {
            y[row * n + i] = (real)total[row];
            total[row] *= (double)x[row * n + i];
        }
    for (int row = 0; row < SIDE_BY_SIDE; row++)
        total[row] = 1;
    for (long i = n - 1; i >= 0; i--)
        for (int row = 0; row < rows; row++) {
            y[row * n + i] *= (real)total[row];
            total[row] *= (double)x[row * n + i];
        }
}

static void other_rows(void *context, long begin, long end)
{
    const totals *t = context;
    long row = begin;
    for (; row + SIDE_BY_SIDE <= end; row += SIDE_BY_SIDE)
        others_of_rows(t->x + row * t->n, t->y + row * t->n, t->n, SIDE_BY_SIDE);
    for (; row < end; row++)
        others_of_rows(t->x + row * t->n, t->y + row * t->n, t->n, 1);
}

/* other_products(x, y, n): along rows, which are not empty */
static int other_products(const rl_call *c)
{
    totals t = {c->array[0], c->array[1], c->integer[0], 1, 1, 1};
    long grain = rl_rows(t.n);
    rl_parallel(other_rows, &t, c->size[0] / t.n, grain < SIDE_BY_SIDE ? SIDE_BY_SIDE : grain);
    return RL_OK;
}

/* -- y[i] = a[i] y[i - 1] + b[i] along rows, or from their end with y[i + 1] ------------------------------------------- */

typedef struct {
    const real *a, *b;
    real *y;
    long n;
    int reverse;
} recurrence;

static void scan_rows(void *context, long begin, long end)
{
    const recurrence *t = context;
    for (long row = begin; row < end; row++) {
        long step = t->reverse ? -1 : 1, at = row * t->n + (t->reverse ? t->n - 1 : 0);
        double y = 0; /* of a long row a float would keep the rounding of each step */
        for (long i = 0; i < t->n; i++, at += step) {
            y = (i ? (double)t->a[at] * y : 0) + (double)t->b[at];
            t->y[at] = (real)y;
        }
    }
}

/* scan_rows(a, b, y, n, reverse) */
static int scan_rows_(const rl_call *c)
{
    recurrence t = {c->array[0], c->array[1], c->array[2], c->integer[0], (int)c->integer[1]};
    rl_share(scan_rows, &t, t.n ? c->size[2] / t.n : 0, rl_rows(t.n));
    return RL_OK;
}

/* -- the largest or smallest along an axis ----------------------------------------------------------------------------- */

typedef struct {
    const real *x;
    real *best;     /* or NULL */
    int64_t *place;
    long n, inner, strips;
    int smallest;
} extremes_of;

enum { LANES = 16 };

/* Of equals the first; a NaN is before all, and the first of them before others. */
#define BETTER(order)                                                                                                  \
    RL_SIMD for (long j = 0; j < width; j++)                                                                           \
    {                                                                                                                  \
        real value = x[j];                                                                                             \
        int better = (value order best[j]) | ((value != value) & (best[j] == best[j]));                                \
        best[j] = better ? value : best[j];                                                                            \
        at[j] = better ? i : at[j];                                                                                    \
    }

static void extreme_strips(void *context, long begin, long end)
{
    const extremes_of *e = context;
    for (long which = begin; which < end; which++) {
        long first = which % e->strips * WIDTH, width = e->inner - first < WIDTH ? e->inner - first : WIDTH;
        long outer = which / e->strips, to = outer * e->inner + first;
        const real *restrict x = e->x + outer * e->n * e->inner + first;
        real best[WIDTH];
        whole at[WIDTH] = {0};
        memcpy(best, x, (size_t)width * sizeof(real));
        for (whole i = 1; i < e->n; i++) {
            x += e->inner;
            if (e->smallest)
                BETTER(<)
            else
                BETTER(>)
        }
        for (long j = 0; j < width; j++)
            e->place[to + j] = at[j];
        if (e->best)
            memcpy(e->best + to, best, (size_t)width * sizeof(real));
    }
}

/* The same along the innermost axis: the largest first, by lanes, then where it is. */
static void extreme_rows(void *context, long begin, long end)
{
    const extremes_of *e = context;
    for (long row = begin; row < end; row++) {
        const real *restrict x = e->x + row * e->n;
        real best[LANES], sign = e->smallest ? -1 : 1;
        int odd[LANES] = {0};
        long i = 0, place = 0;
        for (int lane = 0; lane < LANES; lane++)
            best[lane] = -INFINITY;
        for (; i + LANES <= e->n; i += LANES)
            RL_SIMD
            for (int lane = 0; lane < LANES; lane++) {
                real value = sign * x[i + lane];
                best[lane] = value > best[lane] ? value : best[lane];
                odd[lane] |= value != value;
            }
        for (; i < e->n; i++) {
            real value = sign * x[i];
            best[0] = value > best[0] ? value : best[0];
            odd[0] |= value != value;
        }
        for (int lane = 1; lane < LANES; lane++) {
            best[0] = best[lane] > best[0] ? best[lane] : best[0];
            odd[0] |= odd[lane];
        }
        while (odd[0] ? x[place] == x[place] : sign * x[place] != best[0])
            place++;
        e->place[row] = place;
        if (e->best)
            e->best[row] = x[place];
    }
}

/* extremes(x, best, place, n, inner, smallest): along the middle axis of (outer, n, inner), which is not empty */
static int extremes(const rl_call *c)
{
    long n = c->integer[0], inner = c->integer[1];
    extremes_of e = {c->array[0], c->array[1], c->array[2], n, inner, (inner + WIDTH - 1) / WIDTH, (int)c->integer[2]};
    if (inner == 1) {
        rl_share(extreme_rows, &e, c->size[0] / n, rl_rows(n));
        return RL_OK;
    }
    rl_share(extreme_strips, &e, c->size[0] / (n * inner) * e.strips, rl_rows(n * (inner < WIDTH ? inner : WIDTH)));
    return RL_OK;
}

/* -- rows of the same index ------------------------------------------------------------------------------------------ */

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

static void take_lines(void *context, long begin, long end)
{
    const lines *t = context;
    for (long i = begin; i < end; i++)
        memcpy(t->out + i * t->width, t->value + t->index[i] * t->width, (size_t)t->width * sizeof(real));
}

/* take_rows(table, index, out, rows, width): the rows of a table that the index names */
static int take_rows(const rl_call *c)
{
    lines t = {c->array[0], c->array[1], c->array[2], c->size[1], c->integer[1]};
    for (long i = 0; i < t.count; i++)
        if (t.index[i] < 0 || t.index[i] >= c->integer[0])
            return RL_BAD_INDEX;
    rl_share(take_lines, &t, t.count, rl_rows(t.width));
    return RL_OK;
}

RL_FAMILY(axes) = {
    {"axis_sums", "xy iii", axis_sums},
    {"row_sums", "xx?y ii", row_sums},
    {"row_spreads", "xyy iid", row_spreads},
    {"running_sums", "xy ii", running_sums},
    {"running_products", "xy ii", running_products},
    {"other_products", "xy i", other_products},
    {"scan_rows", "xxy ii", scan_rows_},
    {"extremes", "xy?Q iii", extremes},
    {"add_rows", "xqy ii", add_rows},
    {"take_rows", "xqy ii", take_rows},
    RL_END,
};
