/* softmax(q kᵀ scale + mask) v, a block of queries at a time: the scores of a block and of all keys stay in the thread's
   scratch memory, those of all queries never exist together.

   Forward keeps one number a query, the logarithm of its softmax's denominator; backward makes the weights again from
   it, block by block:

       p = exp(q kᵀ scale + mask - logarithm)      dv += (p noise)ᵀ g      dp = g vᵀ noise
       ds = p (dp - sum of g out)                  dq = ds k scale         dk += dsᵀ q scale

   The sum over dp p of a softmax's gradient is that of g out, where out was kept. A head is one piece of work backward, so
   that its dk and dv are added up in order; forward some blocks of its queries are one. Keys and values are packed once for
   a piece. Where there are so few queries that packing would take longer than the products, they are read where they lie. */
#include "approximations.h"
#include "gemm.h"
#include "sums.h"

enum {
    BLOCK = 1 << 15, FEWEST = 16, MOST_QUERIES = 128, /* scores of a block, and how many queries it may have */
    ENOUGH = 16,                                      /* pieces of work that keep some threads busy */
    FEW_QUERIES = LANES,
    AHEAD = 32, /* rows of a result that are on their way to the cache before they are written */
};

typedef struct {
    matrix m;
    long outer, inner;
} heads; /* a matrix for each of outer x inner heads */

typedef struct {
    long outer, inner, queries, keys, size, value_size;
    long block, blocks, some, pieces; /* queries in a block; blocks, blocks in a piece and pieces of a head */
    heads q, k, v, mask, noise, g; /* in any layout */
    heads out, dq, dk, dv;         /* with contiguous rows */
    heads logs;                    /* in C order */
    int causal, exclude; /* exclude: -inf in the mask takes a score out whatever it is */
    real scale;
    int out_of_memory;
} attention;

static heads heads_of(const rl_call *c, int i)
{
    if (!c->array[i])
        return (heads){{NULL, 0, 0}, 0, 0};
    const ptrdiff_t *s = c->stride[i];
    long size = sizeof(real);
    return (heads){{c->array[i], s[2] / size, s[3] / size}, s[0] / size, s[1] / size};
}

RL_INLINE matrix head(const attention *a, heads h, long which)
{
    if (h.m.at)
        h.m.at += which / a->inner * h.outer + which % a->inner * h.inner;
    return h.m;
}

/* C (+)= A B, for the first k rows and ``cols`` columns of B. */
static void times(long rows, long cols, long k, matrix a, strips b, target c)
{
    enum { SLICE = 512 };
    for (long p = 0; p < k || p == 0; p += SLICE, b.at += SLICE * COLS, c.add = 1)
        tiles(rows, cols, least(SLICE, k - p), part(a, 0, p), ROWS * a.row, b, c);
}

/* Can rows of tiles be read where they lie? */
RL_INLINE int has_vectors(matrix b, long cols) { return b.col == 1 && cols % LANES == 0; }

/* The products of one row and LANES rows of b, all with whole vectors. */
RL_INLINE vec dots(const real *row, matrix b, long k)
{
    vec sum[LANES] = {0}, total = {0};
    for (long p = 0; p < k; p += LANES)
        for (int i = 0; i < LANES; i++)
            sum[i] += *(const vec *)(row + p) * *(const vec *)(b.at + i * b.row + p);
    transpose_square((const real *)sum, LANES, (real *)sum, LANES);
    for (int i = 0; i < LANES; i++)
        total += sum[i];
    return total;
}

/* C = A Bᵀ of few rows: computed as Cᵀ = B Aᵀ, B is read where it lies. ``strip``: room for Aᵀ. Of one or two rows (as when
   words are made one by one) tiles would use as many elements of each vector: there, vectors go along k. */
static void times_turned(long rows, long cols, long k, matrix a, matrix b, real *strip, target c)
{
    if (4 * rows <= LANES && a.col == 1 && has_vectors(b, k))
        for (; cols >= LANES; cols -= LANES, c.at += LANES, b = part(b, LANES, 0))
            for (long i = 0; i < rows; i++)
                *(vec *)(c.at + i * c.row) = dots(part(a, i, 0).at, b, k);
    pack_strips(k, rows, turned(a), strip);
    times(cols, rows, k, b, (strips){strip, k, rows}, (target){c.at, c.col, c.row, c.add, NULL, NULL});
}

/* C = A B, where it has them. */
static void times_there(long rows, long cols, long k, matrix a, matrix b, target c)
{
    enum { SLICE = 128 };
    for (long p = 0; p < k; p += SLICE, c.add = 1)
        for (long s = 0; s * COLS < cols; s++)
            for (long i = 0; i < rows; i += ROWS) {
                long j = strip_begin(cols, s);
                operands o = {.k = least(SLICE, k - p), .a = part(a, i, p).at, .a_row = a.row, .a_step = a.col,
                              .b = part(b, p, j).at, .b_row = b.row};
                tile(least(ROWS, rows - i), strip_width(cols, s), &o, target_part(c, i, j));
            }
}

static void fetch_rows(long rows, long cols, target c)
{
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < cols; j += 64 / (long)sizeof(real))
            __builtin_prefetch(c.at + i * c.row + j, 1);
}

/* C = A B of few k, which is bound by memory: rows of C lie far apart, and no processor foresees the next. */
static void times_ahead(long rows, long cols, long k, matrix a, strips b, target c)
{
    for (long i = 0; i < rows; i += AHEAD) {
        fetch_rows(least(AHEAD, rows - i - AHEAD), cols, target_part(c, i + AHEAD, 0));
        times(least(AHEAD, rows - i), cols, k, part(a, i, 0), b, target_part(c, i, 0));
    }
}

RL_INLINE long wide(long cols) { return parts(cols, COLS) * COLS; }

/* How many keys the queries before ``end`` look at. */
RL_INLINE long seen(const attention *a, long end) { return a->causal ? least(a->keys, end) : a->keys; }

/* n elements of row i, one after the other: where they lie, or gathered in ``spare``. */
static const real *row_of(matrix m, long i, long n, real *spare)
{
    const real *from = m.at + i * m.row;
    if (m.col == 1)
        return from;
    for (long j = 0; j < n; j++)
        spare[j] = from[j * m.col];
    return spare;
}

/* Scores of query ``i`` times scale plus mask; what it may not see is -inf. */
static void finish_scores(const attention *a, long which, long i, long keys, real *row, real *spare)
{
    matrix mask = head(a, a->mask, which);
    long allowed = a->causal ? least(keys, i + 1) : keys;
    real scale = a->scale;
    if (!mask.at) {
        RL_SIMD
        for (long j = 0; j < allowed; j++)
            row[j] *= scale;
    } else {
        const real *from = row_of(mask, i, allowed, spare);
        int exclude = a->exclude;
        RL_SIMD
        for (long j = 0; j < allowed; j++) {
            real bias = from[j];
            row[j] = exclude && bias < 0 ? bias : row[j] * scale + bias;
        }
    }
    for (long j = allowed; j < keys; j++)
        row[j] = -INFINITY;
}

static void times_noise(matrix noise, long i, long keys, real *row, real *spare)
{
    const real *from = row_of(noise, i, keys, spare);
    RL_SIMD
    for (long j = 0; j < keys; j++)
        row[j] *= from[j];
}

RL_DEFINE_SUM(kept_exp, (real *x, real top, long n), (x[i] = rl_exp_below(x[i] - top)))

/* row = exp(row - its maximum); returns their sum, and the maximum. */
static real exponentials(long keys, real *row, real *shift)
{
    real top = -INFINITY;
    RL_MAX(top)
    for (long j = 0; j < keys; j++)
        top = row[j] > top ? row[j] : top;
    top = top == -INFINITY ? 0 : top; /* a query that may look nowhere */
    real total = (real)kept_exp(row, top, keys);
    *shift = top;
    return total == 0 ? 1 : total;
}

static void scale_row(long n, real *row, real scale)
{
    RL_SIMD
    for (long j = 0; j < n; j++)
        row[j] *= scale;
}

RL_INLINE int is_few(const attention *a) { return a->queries <= FEW_QUERIES; }

/* Keys and values of a piece, in strips; ``keys``: how many there are. */
typedef struct {
    long keys;
    real *k, *v, *scores;
} packed;

static packed pack_head(const attention *a, long which, long end, real *memory)
{
    packed p = {.keys = seen(a, end), .k = memory};
    p.v = p.k + wide(p.keys) * a->size, p.scores = p.v + p.keys * wide(a->value_size);
    matrix v = head(a, a->v, which);
    if (!is_few(a))
        pack_strips(a->size, p.keys, turned(head(a, a->k, which)), p.k);
    if (!is_few(a) || !has_vectors(v, a->value_size))
        pack_strips(p.keys, a->value_size, v, p.v);
    return p;
}

static void forward_block(const attention *a, long which, long begin, packed p)
{
    long rows = least(a->block, a->queries - begin), keys = seen(a, begin + rows), line = wide(keys);
    real *scores = p.scores, *spare = scores + rows * line;
    matrix noise = head(a, a->noise, which), out = head(a, a->out, which), v = head(a, a->v, which);
    matrix q = part(head(a, a->q, which), begin, 0);
    target to_scores = {scores, line, 1, 0, NULL, NULL};
    if (is_few(a))
        times_turned(rows, keys, a->size, q, head(a, a->k, which), p.k, to_scores);
    else
        times(rows, keys, a->size, q, (strips){p.k, a->size, p.keys}, to_scores);
    real total[MOST_QUERIES];
    real *logs = (real *)a->logs.m.at + which * a->queries + begin;
    for (long i = 0; i < rows; i++) {
        real shift, *row = scores + i * line;
        finish_scores(a, which, begin + i, keys, row, spare);
        total[i] = exponentials(keys, row, &shift);
        logs[i] = (real)log((double)total[i]) + shift;
        if (noise.at)
            times_noise(noise, begin + i, keys, row, spare);
    }
    real *to = (real *)out.at + begin * out.row;
    matrix weights = {scores, line, 1};
    target to_out = {to, out.row, 1, 0, NULL, NULL};
    if (is_few(a) && has_vectors(v, a->value_size))
        times_there(rows, a->value_size, keys, weights, v, to_out);
    else
        times(rows, a->value_size, keys, weights, (strips){p.v, p.keys, a->value_size}, to_out);
    for (long i = 0; i < rows; i++)
        scale_row(a->value_size, to + i * out.row, 1 / total[i]);
}

static void forward_pieces(void *context, long begin, long end)
{
    attention *a = context;
    long size = wide(a->keys) * (a->size + a->block + 1) + a->keys * wide(a->value_size);
    real *memory = rl_scratch((size_t)size * sizeof(real));
    if (!memory) {
        a->out_of_memory = 1;
        return;
    }
    for (long piece = begin; piece < end; piece++) {
        long which = piece / a->pieces, first = piece % a->pieces * a->some, last = least(a->blocks, first + a->some);
        packed p = pack_head(a, which, least(a->queries, last * a->block), memory);
        for (long i = first; i < last; i++)
            forward_block(a, which, i * a->block, p);
    }
}

/* What backward needs of a head for all its blocks, packed once. */
typedef struct {
    real *keys_across, *keys_down, *values_across; /* strips of kᵀ, k and vᵀ */
    real *g, *q;                                   /* strips of a block's g and q */
    real *weights, *slopes;                        /* of a block */
    real *dk, *dv;                                 /* where several blocks are added up: their rows lie together */
    real *spare;
} space;

static long space_size(const attention *a)
{
    long line = wide(a->keys), size = wide(a->size), value = wide(a->value_size);
    long sums = a->blocks > 1 ? a->keys * (a->size + a->value_size) : 0;
    return line * (a->size + a->value_size + 2 * a->block + 1) + a->keys * size + a->block * (value + size) + value + sums;
}

static space space_of(const attention *a, real *at)
{
    long line = wide(a->keys), size = wide(a->size), value = wide(a->value_size);
    space s;
    s.keys_across = at, at += line * a->size;
    s.values_across = at, at += line * a->value_size;
    s.weights = at, at += line * a->block;
    s.slopes = at, at += line * a->block;
    s.keys_down = at, at += a->keys * size;
    s.g = at, at += a->block * value;
    s.q = at, at += a->block * size;
    s.dk = s.dv = NULL;
    if (a->blocks > 1)
        s.dk = at, at += a->keys * a->size, s.dv = at, at += a->keys * a->value_size;
    s.spare = at;
    return s;
}

/* p and ds scale of one query: row holds its scores, slope the gradient of its weights. */
static void slopes_of_row(const attention *a, long which, long i, long keys, real *row, real *slope, real *spare)
{
    matrix noise = head(a, a->noise, which), out = head(a, a->out, which);
    real log_total = a->logs.m.at[which * a->queries + i], scale = a->scale, sum;
    if (noise.at)
        times_noise(noise, i, keys, slope, spare);
    RL_SIMD
    for (long j = 0; j < keys; j++)
        row[j] = rl_exp_below(row[j] - log_total);
    if (out.at) {
        const real *y = out.at + i * out.row, *g = row_of(head(a, a->g, which), i, a->value_size, spare);
        sum = (real)rl_dot(g, y, a->value_size);
    } else
        sum = (real)rl_dot(row, slope, keys);
    RL_SIMD
    for (long j = 0; j < keys; j++)
        slope[j] = row[j] * (slope[j] - sum) * scale;
    if (noise.at)
        times_noise(noise, i, keys, row, spare);
}

static void backward_block(const attention *a, long which, long begin, space s)
{
    long rows = least(a->block, a->queries - begin), keys = seen(a, begin + rows), line = wide(a->keys);
    matrix q = part(head(a, a->q, which), begin, 0), g = part(head(a, a->g, which), begin, 0);
    matrix dq = part(head(a, a->dq, which), begin, 0), dk = head(a, a->dk, which), dv = head(a, a->dv, which);
    matrix k = head(a, a->k, which);
    target to_weights = {s.weights, line, 1, 0, NULL, NULL}, to_slopes = {s.slopes, line, 1, 0, NULL, NULL};
    if (is_few(a)) {
        times_turned(rows, keys, a->size, q, k, s.keys_across, to_weights);
        times_turned(rows, keys, a->value_size, g, head(a, a->v, which), s.values_across, to_slopes);
    } else {
        times(rows, keys, a->size, q, (strips){s.keys_across, a->size, a->keys}, to_weights);
        times(rows, keys, a->value_size, g, (strips){s.values_across, a->value_size, a->keys}, to_slopes);
    }
    for (long i = 0; i < rows; i++) {
        finish_scores(a, which, begin + i, keys, s.weights + i * line, s.spare);
        slopes_of_row(a, which, begin + i, keys, s.weights + i * line, s.slopes + i * line, s.spare);
    }
    pack_strips(rows, a->value_size, g, s.g);
    pack_strips(rows, a->size, q, s.q);
    matrix weights = {s.weights, 1, line}, slopes = {s.slopes, line, 1};
    int add = begin > 0 || a->causal;
    strips q_strips = {s.q, rows, a->size}, g_strips = {s.g, rows, a->value_size};
    if (a->blocks > 1) {
        times(keys, a->value_size, rows, weights, g_strips, (target){s.dv, a->value_size, 1, add, NULL, NULL});
        times(keys, a->size, rows, turned(slopes), q_strips, (target){s.dk, a->size, 1, add, NULL, NULL});
    } else {
        times_ahead(keys, a->value_size, rows, weights, g_strips, (target){(real *)dv.at, dv.row, 1, 0, NULL, NULL});
        times_ahead(keys, a->size, rows, turned(slopes), q_strips, (target){(real *)dk.at, dk.row, 1, 0, NULL, NULL});
    }
    target to_dq = {(real *)dq.at, dq.row, 1, 0, NULL, NULL};
    if (is_few(a) && has_vectors(k, a->size))
        times_there(rows, a->size, keys, slopes, k, to_dq);
    else
        times(rows, a->size, keys, slopes, (strips){s.keys_down, a->keys, a->size}, to_dq);
}

/* Rows that lie together to where they belong; those from ``keys`` on are 0. */
static void place_rows(long rows, long keys, long cols, const real *from, matrix m)
{
    for (long i = 0; i < rows; i++) {
        real *to = (real *)m.at + i * m.row;
        if (i % AHEAD == 0)
            fetch_rows(least(AHEAD, rows - i - AHEAD), cols, (target){to + AHEAD * m.row, m.row, 1, 0, NULL, NULL});
        if (i < keys)
            memcpy(to, from + i * cols, (size_t)cols * sizeof(real));
        else
            memset(to, 0, (size_t)cols * sizeof(real));
    }
}

static void backward_pieces(void *context, long begin, long end)
{
    attention *a = context;
    real *memory = rl_scratch((size_t)space_size(a) * sizeof(real));
    if (!memory) {
        a->out_of_memory = 1;
        return;
    }
    space s = space_of(a, memory);
    for (long which = begin; which < end; which++) {
        matrix k = head(a, a->k, which), v = head(a, a->v, which);
        matrix dk = head(a, a->dk, which), dv = head(a, a->dv, which);
        long keys = seen(a, a->queries);
        if (a->blocks > 1 && a->causal) { /* the first blocks do not reach all keys */
            memset(s.dk, 0, (size_t)(keys * a->size) * sizeof(real));
            memset(s.dv, 0, (size_t)(keys * a->value_size) * sizeof(real));
        }
        if (!is_few(a)) {
            pack_strips(a->size, a->keys, turned(k), s.keys_across);
            pack_strips(a->value_size, a->keys, turned(v), s.values_across);
        }
        if (!is_few(a) || !has_vectors(k, a->size))
            pack_strips(a->keys, a->size, k, s.keys_down);
        for (long first = 0; first < a->queries; first += a->block)
            backward_block(a, which, first, s);
        if (a->blocks > 1) {
            place_rows(a->keys, keys, a->size, s.dk, dk), place_rows(a->keys, keys, a->value_size, s.dv, dv);
        } else if (keys < a->keys) {
            place_rows(a->keys - keys, 0, a->size, NULL, part(dk, keys, 0));
            place_rows(a->keys - keys, 0, a->value_size, NULL, part(dv, keys, 0));
        }
    }
}

static attention problem(const rl_call *c)
{
    const ptrdiff_t *q = c->shape[0], *v = c->shape[2];
    attention a = {.outer = q[0], .inner = q[1], .queries = q[2], .size = q[3], .keys = v[2], .value_size = v[3],
                   .q = heads_of(c, 0), .k = heads_of(c, 1), .v = heads_of(c, 2), .mask = heads_of(c, 3),
                   .noise = heads_of(c, 4), .out = heads_of(c, 5), .logs = {{c->array[6], 0, 0}, 0, 0},
                   .causal = (int)c->integer[0], .exclude = (int)c->integer[1], .scale = (real)c->number[0]};
    a.block = least(a.causal ? MOST_QUERIES / 4 : MOST_QUERIES, most(FEWEST, BLOCK / most(1, a.keys) / ROWS * ROWS));
    a.blocks = parts(a.queries, a.block);
    a.pieces = least(a.blocks, parts(ENOUGH, most(1, a.outer * a.inner))), a.some = parts(a.blocks, most(1, a.pieces));
    a.pieces = parts(a.blocks, most(1, a.some));
    return a;
}

/* attention(q, k, v, mask, noise, out, logarithms, causal, exclude, scale) */
static int attend(const rl_call *c)
{
    attention a = problem(c);
    rl_parallel(forward_pieces, &a, a.outer * a.inner * a.pieces, most(1, BLOCK / most(1, a.some * a.block * a.keys)));
    return a.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* attention_backward(q, k, v, mask, noise, out, logarithms, g, dq, dk, dv, causal, exclude, scale) */
static int attend_backward(const rl_call *c)
{
    attention a = problem(c);
    a.g = heads_of(c, 7), a.dq = heads_of(c, 8), a.dk = heads_of(c, 9), a.dv = heads_of(c, 10);
    rl_parallel(backward_pieces, &a, a.outer * a.inner, most(1, BLOCK / most(1, a.queries * a.keys)));
    return a.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

RL_FAMILY(attention) = {
    {"attention", "sss s?s? Sy iid", attend},
    {"attention_backward", "sss s?s? s?x s SSS iid", attend_backward},
    RL_END,
};
