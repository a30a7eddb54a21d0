/* C = A B + bias, of one matrix or of many.

   C is cut into blocks, each a piece of work for the threads; how it is cut depends on the sizes only. A block goes over its
   strips of B with the tiles of gemm.h, a slice of k at a time, so that what it reads stays in the second-level cache. A is
   read where it lies if its rows are contiguous, or its columns and these not far apart. If B has contiguous rows, a strip's first tile copies it for
   the others; if not, strips are packed. Strips of a B that is not large are packed once by each thread, for all its
   blocks, which are small then: threads end together; as many slices of k at a time as fit.

   Where A and B both have k as the inner index (x Wᵀ of a linear layer) one of them is transposed on its way: the
   smaller one. If that is A, what is computed is Cᵀ = Bᵀ Aᵀ. */
#include "gemm.h"
#include "sums.h"

#include <stdatomic.h>

/* -- the tiles, see gemm.h ------------------------------------------------------------------------------------------ */

/* For a tile that is not whole vectors in memory. */
static __attribute__((noinline)) void store_elements(int rows, int width, const real *tile, target c)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < width; j++) {
            real *place = c.at + i * c.row + j * c.col, value = tile[i * COLS + j];
            if (c.add)
                value += *place;
            if (c.row_bias)
                value += c.row_bias[i];
            if (c.col_bias)
                value += c.col_bias[j];
            *place = value;
        }
}

RL_INLINE void store_vector(vec value, real *place, int i, int j, target c)
{
    if (c.add)
        value += *(vec *)place;
    if (c.row_bias)
        value += c.row_bias[i];
    if (c.col_bias)
        value += *(const vec *)(c.col_bias + j);
    *(vec *)place = value;
}

/* Early: what is indexed by a variable when registers are given out is not in one. */
#define UNROLL _Pragma("GCC unroll 8")

enum { AHEAD = 16 }; /* rows of B that lie far from each other are asked for this many steps before they are read */

/* A value that is still used here is not overwritten before: GCC would add to it instead of to the sum, and move it back. */
#if defined(__x86_64__) || defined(__i386__)
#define USED(value) __asm__ volatile("" ::"v"(value))
#elif defined(__aarch64__)
#define USED(value) __asm__ volatile("" ::"w"(value))
#else
#define USED(value) ((void)0)
#endif

/* sum += a column of A times a row of B, which is copied, if anywhere; the next one is ``next`` elements further on */
RL_INLINE void add_outer(const int rows, const int vecs, vec sum[ROWS][VECS], const real *const line[ROWS], long at,
                         const real *b, real *copy, long next)
{
    vec row[VECS];
    UNROLL
    for (int j = 0; j < vecs; j++) {
        row[j] = *(const vec *)(b + j * LANES);
        if (copy) {
            *(vec *)(copy + j * LANES) = row[j];
            __builtin_prefetch(b + j * LANES + AHEAD * next);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        const vec one = line[i][at] - (vec){0};
        UNROLL
        for (int j = 0; j < vecs; j++)
            sum[i][j] += one * row[j];
        USED(one);
    }
    __asm__ volatile("" ::: "memory"); /* GCC would begin the next one, run out of registers and move sums about */
}

/* kind, rows and vecs are constants wherever this is inlined: all loops over them unroll, and sum lives in registers. */
RL_INLINE void tile_body(const int kind, const int rows, const int vecs, int width, const operands *o, target c)
{
    vec sum[ROWS][VECS];
    const real *line[ROWS], *b = o->b;
    UNROLL
    for (int i = 0; i < rows; i++) {
        line[i] = o->a + (kind == FOUND ? o->row[i] : i * o->a_row);
        UNROLL
        for (int j = 0; j < vecs; j++) {
            sum[i][j] = (vec){0};
            __builtin_prefetch(c.at + i * c.row + j * LANES, 1); /* it is there when the sums are */
        }
    }
    const long k = o->k, a_step = o->a_step, b_row = o->b_row, *at = o->at, *b_line = o->line;
    real *copy = o->copy;
    if (kind == FOUND)
        for (long p = 0; p < k; p++)
            add_outer(rows, vecs, sum, line, at[p], b + b_line[p], NULL, 0);
    else
        for (long p = 0, step = 0; p < k; p++, step += a_step, b += b_row, copy += kind == COPYING ? COLS : 0)
            add_outer(rows, vecs, sum, line, step, b, kind == COPYING ? copy : NULL, b_row);
    if (c.col == 1 && width == vecs * LANES) {
        UNROLL
        for (int i = 0; i < rows; i++)
            UNROLL
            for (int j = 0; j < vecs; j++)
                store_vector(sum[i][j], c.at + i * c.row + j * LANES, i, j * LANES, c);
        return;
    }
    real tile[ROWS * COLS];
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
        for (int j = 0; j < vecs; j++)
            *(vec *)(tile + i * COLS + j * LANES) = sum[i][j];
    store_elements(rows, width, tile, c);
}

#define TILE(kind, rows, vecs)                                                                                         \
    static void kind##_##rows##_##vecs(int width, const operands *o, target c)                                         \
    {                                                                                                                  \
        tile_body(kind, rows, vecs, width, o, c);                                                                      \
    }
#define TILES(rows)                                                                                                    \
    TILE(PLAIN, rows, 1) TILE(PLAIN, rows, 2) TILE(PLAIN, rows, 3)                                                     \
    TILE(FOUND, rows, 1) TILE(FOUND, rows, 2) TILE(FOUND, rows, 3)                                                     \
    TILE(COPYING, rows, 1) TILE(COPYING, rows, 2) TILE(COPYING, rows, 3)
#define NAMES(kind, rows) {kind##_##rows##_1, kind##_##rows##_2, kind##_##rows##_3}

TILES(1) TILES(2) TILES(3) TILES(4)
#if ROWS == 8
TILES(5) TILES(6) TILES(7) TILES(8)
#define ALL(kind)                                                                                                      \
    {NAMES(kind, 1), NAMES(kind, 2), NAMES(kind, 3), NAMES(kind, 4),                                                   \
     NAMES(kind, 5), NAMES(kind, 6), NAMES(kind, 7), NAMES(kind, 8)}
#else
#define ALL(kind) {NAMES(kind, 1), NAMES(kind, 2), NAMES(kind, 3), NAMES(kind, 4)}
#endif
tile_function *const tile_table[KINDS][ROWS][VECS] = {ALL(PLAIN), ALL(FOUND), ALL(COPYING)};

/* -- products ------------------------------------------------------------------------------------------------------ */

enum {
    FAR = 2048,           /* bytes from one column of A to the next */
    SLICE = (36 << 10) / (COLS * (int)sizeof(real)), /* of k: a strip of B is to stay in the first-level cache */
    BLOCK_ROWS = 128,     /* of C */
    BLOCK_COLS = 6 * COLS,
    FEW_ROWS = 128,       /* a block that has fewer spends too much of its time on packing B, */
    FEW_IN_PLACE = 32,    /* or on reading it where it lies */
    ENOUGH = 8,           /* blocks that keep some threads busy */
    WORTH = 1 << 19,      /* multiplications that are worth a piece of work of their own */
    TOGETHER = 1 << 20,   /* elements of operands that are packed at once for all blocks */
    LONG = 256,           /* k that is worth cutting */
    FEWEST_ROWS = 2 * ROWS, MOST_ROWS = 64, MANY_BLOCKS = 16, /* then */
};

typedef struct {
    long m, n, k, outer, inner; /* outer x inner products of m x k by k x n */
    matrix a, b;
    target c;
    long a_outer, a_inner, b_outer, b_inner, c_outer, c_inner; /* strides from one product to the next */
    long rows, cols, row_blocks, col_blocks;
    int out_of_memory;
} product;

/* rows x cols of C from A where it lies, or packed (then a.at is that), and packed strips of B. */
static void multiply(long rows, long cols, long k, matrix a, int a_packed, const real *packed, target c)
{
    if (a_packed)
        tiles(rows, cols, k, (matrix){a.at, 1, ROWS}, ROWS * k, (strips){packed, k, cols}, c);
    else
        tiles(rows, cols, k, a, ROWS * a.row, (strips){packed, k, cols}, c);
}

/* The same where B lies: a strip after the other, which the first rows of A read there and copy for the next ones. A last
   strip whose vectors are not whole is packed: behind it there may be nothing to read. */
static void multiply_in_place(long rows, long cols, long k, matrix a, matrix b, real *strip, target c)
{
    for (long s = 0, j = 0; j < cols; j = strip_begin(cols, ++s)) {
        long width = strip_width(cols, s);
        int in_place = width % LANES == 0;
        if (!in_place)
            pack_strip(k, width, part(b, 0, j), strip);
        for (long step = 0, many = parts(rows, ROWS); step < many; step++) {
            long i = inwards(step, many) * ROWS;
            operands o = {.k = k, .a = a.at + i * a.row, .a_row = a.row, .a_step = a.col, .b = strip, .b_row = COLS};
            if (in_place && i == 0)
                o.b = b.at + j, o.b_row = b.row, o.copy = rows > ROWS ? strip : NULL;
            tile(least(ROWS, rows - i), width, &o, target_part(c, i, j));
        }
    }
}

/* Where it lies, that is. What is far apart falls into the same few places of a cache, and is gone when the next rows want
   their half of a line. */
static int is_readable(matrix a) { return a.col == 1 || (a.row == 1 && a.col * (long)sizeof(real) < FAR); }

static int block(long rows, long cols, long k, matrix a, matrix b, target c)
{
    long slice = most(1, parts(k, most(1, parts(k, SLICE)))), wide = parts(cols, COLS) * COLS;
    int turn = c.col != 1 && c.row == 1, pack_a = !is_readable(a), in_place = !pack_a && b.col == 1;
    long strips_size = (in_place ? COLS : wide) * slice, rows_size = pack_a ? (rows + ROWS) * slice : 0;
    long aside_size = turn ? rows * wide : 0;
    real *strips = rl_scratch((size_t)(strips_size + rows_size + aside_size) * sizeof(real));
    if (!strips)
        return RL_NO_MEMORY;
    real *packed = strips + strips_size, *aside = packed + rows_size;
    target to = turn ? (target){aside, wide, 1, 0, c.row_bias, c.col_bias} : c;
    for (long p = 0; p == 0 || p < k; p += slice) {
        long some = least(slice, k - p);
        matrix a_here = part(a, 0, p), b_here = part(b, p, 0);
        if (p)
            to.add = 1, to.row_bias = to.col_bias = NULL;
        if (in_place) {
            multiply_in_place(rows, cols, some, a_here, b_here, strips, to);
            continue;
        }
        if (pack_a)
            pack_rows(rows, some, a_here, packed), a_here.at = packed;
        pack_strips(some, cols, b_here, strips);
        multiply(rows, cols, some, a_here, pack_a, strips, to);
    }
    if (turn)
        transpose(rows, cols, aside, wide, c.at, c.col);
    return RL_OK;
}

static void blocks(void *context, long begin, long end)
{
    product *w = context;
    for (long which = begin; which < end; which++) {
        long j = which % w->col_blocks * w->cols, rest = which / w->col_blocks;
        long i = rest % w->row_blocks * w->rows, one = rest / w->row_blocks;
        long outer = one / w->inner, inner = one % w->inner;
        matrix a = part(w->a, i, 0), b = part(w->b, 0, j);
        target c = target_part(w->c, i, j);
        a.at += outer * w->a_outer + inner * w->a_inner;
        b.at += outer * w->b_outer + inner * w->b_inner;
        c.at += outer * w->c_outer + inner * w->c_inner;
        if (block(least(w->rows, w->m - i), least(w->cols, w->n - j), w->k, a, b, c))
            w->out_of_memory = 1;
    }
}

/* Blocks that fit the caches, halved until there are enough of them or they become too small. */
static void cut(product *w)
{
    long row_blocks = parts(w->m, BLOCK_ROWS), col_blocks = parts(w->n, BLOCK_COLS);
    long few = w->b.col == 1 ? FEW_IN_PLACE : FEW_ROWS;
    double work = (double)w->m * (double)w->n * (double)w->k;
    while (w->outer * w->inner * row_blocks * col_blocks < ENOUGH && work / (double)(row_blocks * col_blocks) > WORTH) {
        long rows = parts(w->m, row_blocks), cols = parts(w->n, col_blocks);
        if (cols >= 4 * COLS)
            col_blocks *= 2;
        else if (rows >= 2 * few)
            row_blocks *= 2;
        else if (cols >= 2 * COLS)
            col_blocks *= 2;
        else
            break;
    }
    w->rows = parts(parts(w->m, row_blocks), ROWS) * ROWS;
    w->cols = parts(parts(w->n, col_blocks), COLS) * COLS;
    w->row_blocks = parts(w->m, w->rows), w->col_blocks = parts(w->n, w->cols);
}

/* -- operands that each thread packs once, for all its blocks --------------------------------------------------------- */

/* Each thread has packed operands of its own: to write where another core has read takes ten times as long as to pack. */
typedef struct {
    const product *w;
    long slice, wide, tall; /* of k; columns of B and rows of A, filled up */
    long begin, end;        /* the part of k that is packed */
    int pack_a, by_columns;
    long number; /* of this loop, among all */
    atomic_int out_of_memory;
} together;

/* What this thread has packed, of which loop: a mark for each block of columns and of rows, then they themselves. */
static _Thread_local struct {
    long number;
    char *marks;
    real *strips, *rows;
} own;

static int is_prepared(together *t)
{
    if (own.number == t->number)
        return own.marks != NULL;
    const product *w = t->w;
    long marks = parts(w->col_blocks + w->row_blocks, VECTOR_BYTES) * VECTOR_BYTES, some = t->end - t->begin;
    own.number = t->number;
    own.marks = rl_scratch((size_t)marks + (size_t)(some * (t->wide + t->tall)) * sizeof(real));
    if (!own.marks)
        return 0;
    memset(own.marks, 0, (size_t)marks);
    own.strips = (real *)(own.marks + marks), own.rows = own.strips + some * t->wide;
    return 1;
}

static int is_new(char *mark)
{
    int was = *mark;
    *mark = 1;
    return !was;
}

static void multiply_pieces(void *context, long begin, long end)
{
    together *t = context;
    const product *w = t->w;
    if (!is_prepared(t)) {
        atomic_store(&t->out_of_memory, 1);
        return;
    }
    for (long which = begin; which < end; which++) {
        long row = t->by_columns ? which % w->row_blocks : which / w->col_blocks, i = row * w->rows;
        long col = t->by_columns ? which / w->row_blocks : which % w->col_blocks, j = col * w->cols;
        long rows = least(w->rows, w->m - i), cols = least(w->cols, w->n - j);
        int new_strips = is_new(own.marks + col), new_rows = t->pack_a && is_new(own.marks + w->col_blocks + row);
        target c = target_part(w->c, i, j);
        for (long p = t->begin; p < t->end; p += t->slice) {
            long some = least(t->slice, t->end - p), at = p - t->begin;
            real *strips = own.strips + at * t->wide + j * some, *lines = own.rows + at * t->tall + i * some;
            matrix a = part(w->a, i, p);
            if (new_strips)
                pack_strips(some, cols, part(w->b, p, j), strips);
            if (new_rows)
                pack_rows(rows, some, a, lines);
            if (t->pack_a)
                a.at = lines;
            if (p)
                c.add = 1, c.row_bias = c.col_bias = NULL;
            multiply(rows, cols, some, a, t->pack_a, strips, c);
        }
    }
}

/* Elements to pack for each k. */
static long packed_width(const product *w)
{
    return parts(w->n, COLS) * COLS + (is_readable(w->a) ? 0 : parts(w->m, ROWS) * ROWS);
}

static int fits_together(const product *w)
{
    return w->b.col != 1 && w->outer * w->inner == 1 && w->k > 0 && w->c.col == 1 &&
           packed_width(w) * least(w->k, SLICE) <= TOGETHER;
}

/* As many slices as fit are packed, then multiplied, then the next ones. */
static int run_together(product *w)
{
    static atomic_long loops;
    long slice = parts(w->k, parts(w->k, SLICE)), some = least(w->k, TOGETHER / (slice * packed_width(w)) * slice);
    int pack_a = !is_readable(w->a);
    together t = {.w = w, .slice = slice, .wide = parts(w->n, COLS) * COLS, .pack_a = pack_a,
                  .tall = pack_a ? parts(w->m, ROWS) * ROWS : 0, .by_columns = !pack_a && w->n > w->m};
    w->col_blocks = parts(w->n, BLOCK_COLS), w->cols = parts(t.wide / COLS, w->col_blocks) * COLS;
    w->rows = least(MOST_ROWS, most(FEWEST_ROWS, parts(parts(w->m * w->col_blocks, MANY_BLOCKS), ROWS) * ROWS));
    w->row_blocks = parts(w->m, w->rows);
    long blocks = w->row_blocks * w->col_blocks;
    int alone = (double)w->m * (double)w->n * (double)w->k <= WORTH;
    for (; t.begin < w->k; t.begin = t.end) {
        t.end = least(w->k, t.begin + some);
        t.number = atomic_fetch_add(&loops, 1) + 1;
        rl_parallel(multiply_pieces, &t, blocks, alone ? blocks : 1);
    }
    return t.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

static void turn(product *w)
{
    product before = *w;
    w->m = before.n, w->n = before.m;
    w->a = turned(before.b), w->b = turned(before.a);
    w->a_outer = before.b_outer, w->a_inner = before.b_inner;
    w->b_outer = before.a_outer, w->b_inner = before.a_inner;
    w->c.row = before.c.col, w->c.col = before.c.row;
    w->c.row_bias = before.c.col_bias, w->c.col_bias = before.c.row_bias;
}

static int run(product *w)
{
    if (!w->m || !w->n || !w->outer || !w->inner)
        return RL_OK;
    int thin = w->a.col == 1 && w->b.row == 1 && 4 * w->m <= w->n;
    if (w->c.row == 1 ? w->c.col != 1 : thin)
        turn(w);
    if (fits_together(w))
        return run_together(w);
    cut(w);
    double each = (double)w->rows * (double)w->cols * (double)most(1, w->k);
    rl_parallel(blocks, w, w->outer * w->inner * w->row_blocks * w->col_blocks, most(1, (long)(WORTH / each)));
    return w->out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* -- sums over many rows, as in the gradient of a weight ------------------------------------------------------------- */

/* Cut along k, each thread reads only rows of A and B that it has made itself. What two cores have read, either may write
   only after asking the other: on AMD's 26 ns for each line, all of which the next operators would wait for. */
typedef struct {
    product half[2];
    atomic_int out_of_memory;
} halves;

static int has_long_sums(const product *w)
{
    int over_rows = w->a.col != 1 && w->b.row != 1;
    return over_rows && w->outer * w->inner == 1 && w->c.col == 1 && w->k >= LONG && w->k >= most(w->m, w->n) &&
           w->k * (w->m + w->n) >= 4 * w->m * w->n && (double)w->m * (double)w->n * (double)w->k >= ENOUGH * (double)WORTH;
}

static void run_half(void *context, long begin, long end)
{
    halves *h = context;
    for (long i = begin; i < end; i++) {
        product w = h->half[i]; /* which may be turned */
        if (run(&w))
            atomic_store(&h->out_of_memory, 1);
    }
}

static void add_half(void *context, long begin, long end)
{
    const halves *h = context;
    const target *to = &h->half[0].c, *from = &h->half[1].c;
    for (long i = begin; i < end; i++)
        RL_SIMD
        for (long j = 0; j < h->half[0].n; j++)
            to->at[i * to->row + j] += from->at[i * from->row + j];
}

/* The same two sums, whoever does them: with more threads than two, all do one after the other. */
static int run_in_two(const product *w)
{
    real *more = malloc((size_t)(w->m * w->n) * sizeof(real));
    if (!more)
        return RL_NO_MEMORY;
    long middle = w->k / 2;
    halves h = {.half = {*w, *w}};
    h.half[0].k = middle, h.half[1].k = w->k - middle;
    h.half[1].a = part(w->a, 0, middle), h.half[1].b = part(w->b, middle, 0);
    h.half[1].c = (target){more, w->n, 1, 0, NULL, NULL};
    if (rl_get_threads() > 2)
        run_half(&h, 0, 2);
    else
        rl_parallel(run_half, &h, 2, 1);
    rl_share(add_half, &h, w->m, rl_rows(2 * w->n));
    free(more);
    return h.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

static int run_whole(product *w) { return has_long_sums(w) ? run_in_two(w) : run(w); }

static long stride(const rl_call *c, int array, int axis) { return c->stride[array][axis] / (long)sizeof(real); }

/* matmul(a, b, bias, c): a is (outer, inner, m, k), b (outer, inner, k, n), c (outer, inner, m, n) with n contiguous. */
static int matmul(const rl_call *c)
{
    const ptrdiff_t *shape = c->shape[3];
    product w = {
        .outer = shape[0], .inner = shape[1], .m = shape[2], .n = shape[3], .k = c->shape[0][3],
        .a = {c->array[0], stride(c, 0, 2), stride(c, 0, 3)},
        .b = {c->array[1], stride(c, 1, 2), stride(c, 1, 3)},
        .c = {c->array[3], stride(c, 3, 2), stride(c, 3, 3), 0, NULL, c->array[2]},
        .a_outer = stride(c, 0, 0), .a_inner = stride(c, 0, 1),
        .b_outer = stride(c, 1, 0), .b_inner = stride(c, 1, 1),
        .c_outer = stride(c, 3, 0), .c_inner = stride(c, 3, 1),
    };
    return run_whole(&w);
}

/* product(a, b, bias, c): the same for single matrices. */
static int single(const rl_call *c)
{
    product w = {
        .outer = 1, .inner = 1, .m = c->shape[3][0], .n = c->shape[3][1], .k = c->shape[0][1],
        .a = {c->array[0], stride(c, 0, 0), stride(c, 0, 1)},
        .b = {c->array[1], stride(c, 1, 0), stride(c, 1, 1)},
        .c = {c->array[3], stride(c, 3, 0), stride(c, 3, 1), 0, NULL, c->array[2]},
    };
    return run_whole(&w);
}

/* -- small linear layers, where packing or BLAS would take longer than the product ---------------------------------- */

/* The products of a row x with four rows that follow each other, in one pass over x. Lanes are added up as rl_total does
   it, but for all four at once. */
RL_INLINE void four_dots(const real *x, const real *row, long k, real *y)
{
    rl_lanes part[4] = {{0}};
    real eight[4][8], four[4][4];
    long lanes = k - k % RL_WAYS;
    for (long i = 0; i < lanes; i += RL_WAYS)
        for (int r = 0; r < 4; r++)
            RL_SIMD
            for (int j = 0; j < RL_WAYS; j++)
                part[r][j] += x[i + j] * row[r * k + i + j];
    for (int r = 0; r < 4; r++)
        RL_SIMD
        for (int j = 0; j < 8; j++)
            eight[r][j] = part[r][j] + part[r][j + 8];
    for (int r = 0; r < 4; r++)
        RL_SIMD
        for (int j = 0; j < 4; j++)
            four[j][r] = eight[r][j] + eight[r][j + 4];
    RL_SIMD
    for (int r = 0; r < 4; r++)
        y[r] = (four[0][r] + four[2][r]) + (four[1][r] + four[3][r]);
    for (long i = lanes; i < k; i++)
        for (int r = 0; r < 4; r++)
            y[r] += x[i] * row[r * k + i];
}

/* thin(x, w, bias, y): x (m, k) times w (n, k) transposed, as dot products of rows where they lie. */
static int thin(const rl_call *c)
{
    const real *w = c->array[1], *bias = c->array[2];
    long m = c->shape[0][0], k = c->shape[0][1], n = c->shape[1][0];
    for (long i = 0; i < m; i++) {
        const real *x = (const real *)c->array[0] + i * k;
        real *y = (real *)c->array[3] + i * n;
        long j = 0;
        for (; j + 4 <= n; j += 4)
            four_dots(x, w + j * k, k, y + j);
        for (; j < n; j++)
            y[j] = (real)rl_dot(x, w + j * k, k);
        if (bias)
            RL_SIMD
            for (j = 0; j < n; j++)
                y[j] += bias[j];
    }
    return RL_OK;
}

RL_INLINE void add_scaled(real *to, real by, const real *from, long n)
{
    RL_SIMD
    for (long i = 0; i < n; i++)
        to[i] += by * from[i];
}

/* thin_slopes(g, x, w, gx, gw, gb): what thin gives back for g (m, n); what is not wanted is None, and needs no x or w. */
static int thin_slopes(const rl_call *c)
{
    const real *g = c->array[0], *x = c->array[1], *w = c->array[2];
    real *gx = c->array[3], *gw = c->array[4], *gb = c->array[5];
    long m = c->shape[0][0], n = c->shape[0][1], k = x ? c->shape[1][1] : w ? c->shape[2][1] : 0;
    if (gx)
        memset(gx, 0, (size_t)(m * k) * sizeof(real));
    if (gw)
        memset(gw, 0, (size_t)(n * k) * sizeof(real));
    if (gb)
        memset(gb, 0, (size_t)n * sizeof(real));
    for (long i = 0; i < m; i++, g += n) {
        if (gb)
            add_scaled(gb, 1, g, n);
        for (long j = 0; j < n; j++) {
            if (gx)
                add_scaled(gx + i * k, g[j], w + j * k, k);
            if (gw)
                add_scaled(gw + j * k, g[j], x + i * k, k);
        }
    }
    return RL_OK;
}

/* -- columns times rows: nothing is added up ------------------------------------------------------------------------- */

typedef struct {
    const real *x, *w;
    real *y;
    long m, n;
} outer_products;

static void outer_rows(void *context, long begin, long end)
{
    const outer_products *o = context;
    for (long row = begin; row < end; row++) {
        const real by = o->x[row], *from = o->w + row / o->m * o->n;
        real *to = o->y + row * o->n;
        RL_SIMD
        for (long j = 0; j < o->n; j++)
            to[j] = by * from[j];
    }
}

/* outer(x, w, y): x is (batch, m, 1), w (batch, 1, n), y (batch, m, n). */
static int outer(const rl_call *c)
{
    outer_products o = {c->array[0], c->array[1], c->array[2], c->integer[0], c->integer[1]};
    rl_share(outer_rows, &o, c->size[0], rl_rows(o.n));
    return RL_OK;
}

RL_FAMILY(matmul) = {
    {"matmul", "ssx?S", matmul},
    {"product", "ssx?S", single},
    {"outer", "xxy ii", outer},
    {"thin", "xxx?y", thin},
    {"thin_slopes", "xx?x?y?y?y?", thin_slopes},
    RL_END,
};
