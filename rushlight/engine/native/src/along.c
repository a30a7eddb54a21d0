/* Reading and adding along an axis where an index says. Arrays are seen as (outer, n, inner), indices as (outer, k, inner), or
   as (k) where one serves all; threads share out what is not that axis, so each place is added to in the order of the index. */
#include "kernels.h"

enum { STRIP = 256, PIECES = 32 }; /* of slices: each piece goes through the whole index */

typedef struct {
    const real *x;
    const int64_t *index;
    real *y;
    long n, k, inner, strips;
    int bad;
    long slices; /* of a piece */
} along;

/* Where an index is in range, does something with `place`. */
#define AT(t, which, ...)                                                                                              \
    do {                                                                                                               \
        int64_t place = t->index[which];                                                                               \
        if (place < 0 || place >= t->n)                                                                                \
            t->bad = 1;                                                                                                \
        else {                                                                                                         \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } while (0)

/* Does something for each element of a strip: it is at `mine` in what has k along the axis, at `other` in what has n. */
#define FOR_EACH(t, ...)                                                                                               \
    for (long piece = begin; piece < end; piece++) {                                                                   \
        long outer = piece / t->strips, first = piece % t->strips * STRIP, mine, other;                                \
        long last = first + STRIP < t->inner ? first + STRIP : t->inner;                                               \
        for (long j = 0; j < t->k; j++)                                                                                \
            for (long i = first; i < last; i++) {                                                                      \
                mine = (outer * t->k + j) * t->inner + i;                                                              \
                AT(t, mine, other = (outer * t->n + place) * t->inner + i; __VA_ARGS__);                               \
            }                                                                                                          \
    }

/* The same of single numbers, whose indices lie side by side: they are looked at first, so that the loop need not ask. */
#define FOR_EACH_NUMBER(t, ...)                                                                                        \
    if (are_in_range(t, t->index + begin * t->k, (end - begin) * t->k))                                                \
        for (long outer = begin, mine = begin * t->k, other; outer < end; outer++)                                     \
            for (long j = 0; j < t->k; j++, mine++) {                                                                  \
                other = outer * t->n + t->index[mine];                                                                 \
                __VA_ARGS__;                                                                                           \
            }

static int are_in_range(along *t, const int64_t *index, long count)
{
    long wrong = 0;
    RL_SUM(wrong)
    for (long i = 0; i < count; i++)
        wrong += (uint64_t)index[i] >= (uint64_t)t->n;
    return wrong ? t->bad = 1, 0 : 1;
}

static void take_pieces(void *context, long begin, long end)
{
    along *t = context;
    if (t->inner == 1) {
        FOR_EACH_NUMBER(t, t->y[mine] = t->x[other])
    } else
        FOR_EACH(t, t->y[mine] = t->x[other])
}

static void add_pieces(void *context, long begin, long end)
{
    along *t = context;
    if (t->inner == 1) {
        FOR_EACH_NUMBER(t, t->y[other] += t->x[mine])
    } else
        FOR_EACH(t, t->y[other] += t->x[mine])
}

static void put_pieces(void *context, long begin, long end)
{
    along *t = context;
    FOR_EACH(t, t->y[other] = t->x[mine])
}

/* With one index for all, it is looked at once for a strip. */
static void add_slice_pieces(void *context, long begin, long end)
{
    along *t = context;
    for (long piece = begin; piece < end; piece++) {
        long outer = piece / t->strips, first = piece % t->strips * STRIP;
        long width = t->inner - first < STRIP ? t->inner - first : STRIP;
        const real *from = t->x + outer * t->k * t->inner + first;
        real *to = t->y + outer * t->n * t->inner + first;
        if (t->inner == 1)
            for (long j = 0; j < t->k; j++)
                AT(t, j, to[place] += from[j]);
        else
            for (long j = 0; j < t->k; j++)
                AT(t, j, RL_SIMD for (long i = 0; i < width; i++) to[place * t->inner + i] += from[j * t->inner + i]);
    }
}

static int is_out_of_range(const along *t)
{
    for (long j = 0; j < t->k; j++)
        if (t->index[j] < 0 || t->index[j] >= t->n)
            return 1;
    return 0;
}

static void take_slice_pieces(void *context, long begin, long end)
{
    const along *t = context;
    for (long slice = begin; slice < end; slice++) {
        const real *from = t->x + (slice / t->k * t->n + t->index[slice % t->k]) * t->inner;
        memcpy(t->y + slice * t->inner, from, sizeof(real) * (size_t)t->inner);
    }
}

/* Slices of one number. */
RL_GATHERS static void take_number_pieces(void *context, long begin, long end)
{
    const along *t = context;
    for (long outer = begin; outer < end; outer++) {
        const real *restrict from = t->x + outer * t->n;
        real *restrict to = t->y + outer * t->k;
        RL_SIMD
        for (long j = 0; j < t->k; j++)
            to[j] = from[t->index[j]];
    }
}

/* A piece is some of the slices of y, which looks for what goes there, in order. */
static void spread_pieces(void *context, long begin, long end)
{
    const along *t = context;
    for (long piece = begin; piece < end; piece++) {
        long outer = piece / t->strips, low = piece % t->strips * t->slices;
        long high = t->n - low < t->slices ? t->n : low + t->slices;
        const real *restrict from = t->x + outer * t->k * t->inner;
        real *restrict to = t->y + outer * t->n * t->inner;
        memset(to + low * t->inner, 0, sizeof(real) * (size_t)((high - low) * t->inner));
        for (long j = 0; j < t->k; j++) {
            long place = t->index[j];
            if (place < low || place >= high)
                continue;
            if (t->inner == 1)
                to[place] += from[j];
            else
                RL_SIMD
                for (long i = 0; i < t->inner; i++)
                    to[place * t->inner + i] += from[j * t->inner + i];
        }
    }
}

static int over_strips(const rl_call *c, void (*body)(void *, long, long))
{
    long outer = c->integer[0], inner = c->integer[3];
    along t = {c->array[0], c->array[1], c->array[2], c->integer[1], c->integer[2], inner, (inner + STRIP - 1) / STRIP, 0, 0};
    rl_share(body, &t, outer * t.strips, rl_rows(t.k * (inner < STRIP ? inner : STRIP)));
    return t.bad ? RL_BAD_INDEX : RL_OK;
}

/* take_along(x, index, y, outer, n, k, inner): y has the index's shape */
static int take_along(const rl_call *c) { return over_strips(c, take_pieces); }

/* add_along(x, index, y, outer, n, k, inner): x, of the index's shape, is added to y */
static int add_along(const rl_call *c) { return over_strips(c, add_pieces); }

/* put_along(x, index, y, outer, n, k, inner): the same, written over what y holds */
static int put_along(const rl_call *c) { return over_strips(c, put_pieces); }

/* add_slices(x, index, y, outer, n, k, inner): as add_along, with an index for all */
static int add_slices(const rl_call *c) { return over_strips(c, add_slice_pieces); }

/* take_slices(x, index, y, outer, n, k, inner): those that the index names, one index for all */
static int take_slices(const rl_call *c)
{
    along t = {c->array[0], c->array[1], c->array[2], c->integer[1], c->integer[2], c->integer[3], 1, 0, 0};
    if (is_out_of_range(&t))
        return RL_BAD_INDEX;
    if (t.inner == 1)
        rl_share(take_number_pieces, &t, c->integer[0], rl_rows(t.k));
    else
        rl_share(take_slice_pieces, &t, c->integer[0] * t.k, rl_rows(t.inner));
    return RL_OK;
}

/* spread_slices(x, index, y, outer, n, k, inner): y is 0 but for the slices of x, added where the index says */
static int spread_slices(const rl_call *c)
{
    along t = {c->array[0], c->array[1], c->array[2], c->integer[1], c->integer[2], c->integer[3], 1, 0, 0};
    if (is_out_of_range(&t))
        return RL_BAD_INDEX;
    long outer = c->integer[0], cuts = outer && outer < PIECES ? PIECES / outer : 1, least = rl_rows(t.inner);
    t.slices = (t.n + cuts - 1) / cuts;
    t.slices = t.slices < least ? least : t.slices;
    t.strips = (t.n + t.slices - 1) / t.slices;
    rl_parallel(spread_pieces, &t, outer * t.strips, rl_rows(t.slices * t.inner));
    return RL_OK;
}

RL_FAMILY(along) = {
    {"take_along", "xqy iiii", take_along},
    {"add_along", "xqy iiii", add_along},
    {"put_along", "xqy iiii", put_along},
    {"add_slices", "xqy iiii", add_slices},
    {"take_slices", "xqy iiii", take_slices},
    {"spread_slices", "xqy iiii", spread_slices},
    RL_END,
};
