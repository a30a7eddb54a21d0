/* Sums of pixels with known weights, along the last two axes at once: adaptive averages, resizing, their gradients.

   What goes into the elements along an axis is a table of places and one of weights: (terms, out), or (out, terms) where
   there are more terms, so that the inner loop is the longer one. A place may be one past the end: there is nothing then.
   Neighbours that are made of the same terms are made once. */
#include "kernels.h"

enum { VECTOR = 64 / sizeof(real) };

typedef struct {
    const int64_t *place; /* NULL: each element is itself */
    const real *weight;
    long n, out, terms, to_term, to_out; /* how far apart in the tables terms lie, and elements */
    long *next;                          /* for each element the next one that is made of other terms */
    int one_by_one, consecutive;         /* few differ, or have many terms; all terms lie side by side */
} axis_table;

typedef struct {
    const real *x, *end;
    real *y;
    axis_table rows, columns;
    int out_of_memory;
} picture;

static int same_terms(const axis_table *t, long a, long b)
{
    a *= t->to_out, b *= t->to_out;
    for (long k = 0; k < t->terms; k++, a += t->to_term, b += t->to_term)
        if (t->place[a] != t->place[b] || t->weight[a] != t->weight[b])
            return 0;
    return 1;
}

/* How many terms an element has. */
static long terms_of(const axis_table *t, long j)
{
    long terms = t->terms;
    while (terms && t->place[j * t->to_out + (terms - 1) * t->to_term] >= t->n)
        terms--;
    return terms;
}

static int is_consecutive(const axis_table *t)
{
    for (long j = 0; j < t->out; j++)
        for (long k = 1, at = j * t->to_out; k < terms_of(t, j); k++, at += t->to_term)
            if (t->place[at + t->to_term] != t->place[at] + 1)
                return 0;
    return 1;
}

static axis_table axis_of(const rl_call *c, int first, long n, long out)
{
    axis_table t = {c->array[first], c->array[first + 1], n, out, 1, 0, 1, malloc(sizeof(long) * (size_t)(out + 1)), 0, 0};
    if (!t.next)
        return t;
    if (t.place) {
        t.terms = c->size[first] / out;
        t.to_term = t.terms > out ? 1 : out, t.to_out = t.terms > out ? t.terms : 1;
    }
    long different = 0;
    for (long j = out - 1; j >= 0; j--) {
        int same = t.place && j < out - 1 && same_terms(&t, j, j + 1);
        t.next[j] = same ? t.next[j + 1] : j + 1;
        different += !same;
    }
    t.one_by_one = t.place && (t.terms > out || different * 4 <= out);
    t.consecutive = t.terms > out && is_consecutive(&t);
    return t;
}

/* A row as the sum of rows of the image, which ends at `end`; `to` has room for a vector more, and is 0 after its end. */
static void sum_rows(const axis_table *t, const real *x, const real *end, long row, long width, real *restrict to)
{
    int begun = 0;
    for (long k = 0; k < t->terms; k++) {
        int64_t place = t->place ? t->place[row * t->to_out + k * t->to_term] : row;
        if (place >= t->n)
            continue;
        real weight = t->weight ? t->weight[row * t->to_out + k * t->to_term] : 1;
        const real *restrict from = x + place * width;
        long whole_vectors = (width + VECTOR - 1) / VECTOR * VECTOR, count = whole_vectors <= end - from ? whole_vectors : width;
        if (begun)
            RL_SIMD
            for (long j = 0; j < count; j++)
                to[j] += weight * from[j];
        else
            RL_SIMD
            for (long j = 0; j < count; j++)
                to[j] = weight * from[j];
        begun = 1;
    }
    if (!begun)
        memset(to, 0, sizeof(real) * (size_t)width);
    to[width] = 0;
}

static real sum_of_terms(const axis_table *t, const real *restrict row, long j)
{
    const int64_t *place = t->place + j * t->to_out;
    const real *restrict weight = t->weight + j * t->to_out;
    real total = 0;
    if (t->consecutive) {
        const real *restrict from = row + place[0];
        long terms = terms_of(t, j);
        RL_SUM(total)
        for (long k = 0; k < terms; k++)
            total += weight[k] * from[k];
    } else
        for (long k = 0; k < t->terms; k++)
            total += weight[k * t->to_term] * row[place[k * t->to_term]];
    return total;
}

static void sum_columns(const axis_table *t, const real *restrict row, real *restrict to)
{
    const int64_t *restrict place = t->place;
    const real *restrict weight = t->weight;
    long out = t->out;
    if (t->one_by_one) {
        for (long j = 0, next; j < out; j = next) {
            real value = sum_of_terms(t, row, j);
            next = t->next[j];
            for (long k = j; k < next; k++)
                to[k] = value;
        }
        return;
    }
    RL_SIMD
    for (long j = 0; j < out; j++)
        to[j] = weight[j] * row[place[j]];
    for (long k = 1; k < t->terms; k++) {
        place += out, weight += out;
        RL_SIMD
        for (long j = 0; j < out; j++)
            to[j] += weight[j] * row[place[j]];
    }
}

static void resample_planes(void *context, long begin, long end)
{
    picture *p = context;
    long width = p->columns.n;
    real *row = rl_scratch(sizeof(real) * (size_t)(width + VECTOR));
    if (!row) {
        p->out_of_memory = 1;
        return;
    }
    for (long plane = begin; plane < end; plane++) {
        const real *x = p->x + plane * p->rows.n * width;
        real *y = p->y + plane * p->rows.out * p->columns.out;
        for (long i = 0; i < p->rows.out; i++, y += p->columns.out) {
            if (i && p->rows.next[i - 1] != i) {
                memcpy(y, y - p->columns.out, sizeof(real) * (size_t)p->columns.out);
                continue;
            }
            sum_rows(&p->rows, x, p->end, i, width, row);
            if (p->columns.place)
                sum_columns(&p->columns, row, y);
            else
                memcpy(y, row, sizeof(real) * (size_t)width);
        }
    }
}

/* resample(x, places?, weights?, places?, weights?, y, planes, height, width, and y's) */
static int resample(const rl_call *c)
{
    const long *i = c->integer;
    const real *x = c->array[0];
    picture p = {x, x + c->size[0], c->array[5], axis_of(c, 1, i[1], i[3]), axis_of(c, 3, i[2], i[4]), 0};
    p.out_of_memory = !p.rows.next || !p.columns.next;
    if (!p.out_of_memory)
        rl_share(resample_planes, &p, i[0], rl_rows(i[1] * i[2] + i[3] * i[4]));
    free(p.rows.next), free(p.columns.next);
    return p.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

RL_FAMILY(resample) = {
    {"resample", "xq?x?q?x?y iii ii", resample},
    RL_END,
};
