/* The inner loops of every matrix product: C = A B in small tiles that stay in registers.

   A tile of C has up to ROWS rows and VECS vectors of LANES columns. For each k it adds the outer product of a column
   of A and a row of B: the row of B is loaded once as vectors, the elements of A are broadcast one by one. The rows of
   B have to be contiguous: pack_strip makes strips of COLS columns of them, by copying from a matrix that has contiguous
   rows, by transposing squares of LANES x LANES in registers from one with contiguous columns. Or the first tile that reads
   contiguous rows where they lie copies them for the tiles after it, which takes no time of its own. Nothing is padded but
   the last vector of a strip, and what is computed there is dropped. */
#ifndef RL_GEMM_H
#define RL_GEMM_H

#include "kernels.h"

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define ROWS 8
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define ROWS 4
#elif defined(__aarch64__)
#define VECTOR_BYTES 16
#define ROWS 8
#else
#define VECTOR_BYTES 16
#define ROWS 4
#endif
#ifdef RL_DOUBLE
#define LANES (VECTOR_BYTES / 8)
#else
#define LANES (VECTOR_BYTES / 4)
#endif
#define VECS 3 /* ROWS of them, a row of B and an element of A fill the registers */
#define COLS (VECS * LANES)
#define tile_table RL_OWN(tile_table)

typedef real vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

typedef whole whole_vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

RL_INLINE long least(long a, long b) { return a < b ? a : b; }
RL_INLINE long most(long a, long b) { return a > b ? a : b; }
RL_INLINE long parts(long count, long size) { return (count + size - 1) / size; }

/* Element (i, j) is at[i * row + j * col]. */
typedef struct {
    const real *at;
    long row, col;
} matrix;

/* Where a product goes, and what is added to it: what is there already, a bias with an element a row or a column. */
typedef struct {
    real *at;
    long row, col;
    int add;
    const real *row_bias, *col_bias;
} target;

RL_INLINE matrix part(matrix a, long i, long j)
{
    a.at += i * a.row + j * a.col;
    return a;
}

RL_INLINE matrix turned(matrix a) { return (matrix){a.at, a.col, a.row}; }

RL_INLINE target target_part(target c, long i, long j)
{
    c.at += i * c.row + j * c.col;
    c.row_bias = c.row_bias ? c.row_bias + i : NULL;
    c.col_bias = c.col_bias ? c.col_bias + j : NULL;
    return c;
}

/* What a tile multiplies: element (i, p) of A is a[i * a_row + p * a_step], row p of B begins at b[p * b_row]. With tables
   (images) they are a[row[i] + at[p]] and b[line[p]]. */
typedef struct {
    long k;
    const real *a, *b;
    long a_row, a_step, b_row;
    const long *row, *at, *line;
    real *copy; /* if not NULL, and there are no tables: rows of B are copied to here, COLS apart */
} operands;

enum { PLAIN, FOUND, COPYING, KINDS };

/* tile_table[kind][rows - 1][vectors - 1] computes rows x width of C; it stands in matmul.c. */
typedef void tile_function(int width, const operands *o, target c);
extern tile_function *const tile_table[KINDS][ROWS][VECS];

/* rows x width of C, at most ROWS x COLS. Every row of B has whole vectors. */
RL_INLINE void tile(long rows, long width, const operands *o, target c)
{
    tile_table[o->at ? FOUND : o->copy ? COPYING : PLAIN][rows - 1][parts(width, LANES) - 1]((int)width, o, c);
}

/* Columns are cut into strips of COLS. If a single vector would be left over, the last strip begins one vector earlier: a
   tile that is one vector wide has too few sums under way at a time. strip_begin(cols, s) is where strip s begins. */
RL_INLINE long strip_begin(long cols, long s)
{
    long begin = s * COLS;
    return begin >= cols ? cols : s && cols - begin <= LANES ? begin - LANES : begin;
}

RL_INLINE long strip_width(long cols, long s) { return strip_begin(cols, s + 1) - strip_begin(cols, s); }

/* 0, count - 1, 1, count - 2, …: rows of C in such an order have no constant distance. If they had, an AMD processor would fetch
   rows that come after a thread's last ones, which another thread is writing: 512x64 by 64x512 took half as long again. */
RL_INLINE long inwards(long step, long count) { return step % 2 ? count - 1 - step / 2 : step / 2; }

/* A matrix that pack_strips has made. */
typedef struct {
    const real *at;
    long rows, cols;
} strips;

/* C = A B, for the first k rows and ``cols`` columns of B. From ROWS rows of A to the next is ``next``. A strip stays in the
   first-level cache while A goes by: going along the strips for each few rows would read six times as much. */
static inline void tiles(long rows, long cols, long k, matrix a, long next, strips b, target c)
{
    long many = parts(rows, ROWS);
    for (long s = 0, j = 0; j < cols; j = strip_begin(b.cols, ++s))
        for (long step = 0; step < many; step++) {
            long i = inwards(step, many) * ROWS;
            operands o = {.k = k, .a = a.at + i / ROWS * next, .a_row = a.row, .a_step = a.col,
                          .b = b.at + s * COLS * b.rows, .b_row = COLS};
            tile(least(ROWS, rows - i), least(strip_width(b.cols, s), cols - j), &o, target_part(c, i, j));
        }
}

RL_INLINE void count(long *table, long length, long step)
{
    for (long i = 0; i < length; i++)
        table[i] = i * step;
}

/* -- packing ------------------------------------------------------------------------------------------------------- */

/* The lower (from = 0) or upper (from = LANES / 2) halves of two vectors, an element of each in turn. */
#if LANES == 16
#define ZIP(a, b, s)                                                                                                   \
    __builtin_shufflevector(a, b, s, s + 16, s + 1, s + 17, s + 2, s + 18, s + 3, s + 19, s + 4, s + 20, s + 5,        \
                            s + 21, s + 6, s + 22, s + 7, s + 23)
#elif LANES == 8
#define ZIP(a, b, s) __builtin_shufflevector(a, b, s, s + 8, s + 1, s + 9, s + 2, s + 10, s + 3, s + 11)
#elif LANES == 4
#define ZIP(a, b, s) __builtin_shufflevector(a, b, s, s + 4, s + 1, s + 5)
#else
#define ZIP(a, b, s) __builtin_shufflevector(a, b, s, s + 2)
#endif

/* Every second element of two vectors, one after the other. */
#if LANES == 16
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#elif LANES == 8
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#elif LANES == 4
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#else
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2)
#endif

/* to(j, i) = from(i, j) for a square of LANES: to zip its halves log2(LANES) times is to transpose it. */
RL_INLINE void transpose_square(const real *from, long from_row, real *to, long to_row)
{
    vec x[LANES], y[LANES];
    for (int i = 0; i < LANES; i++)
        x[i] = *(const vec *)(from + i * from_row);
    for (int round = 1; round < LANES; round *= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = ZIP(x[i], x[i + LANES / 2], 0);
            y[2 * i + 1] = ZIP(x[i], x[i + LANES / 2], LANES / 2);
        }
        for (int i = 0; i < LANES; i++)
            x[i] = y[i];
    }
    for (int i = 0; i < LANES; i++)
        *(vec *)(to + i * to_row) = x[i];
}

/* to[j * to_row + i] = from[i * from_row + j] */
static inline void transpose(long rows, long cols, const real *from, long from_row, real *to, long to_row)
{
    long i = 0;
    for (; i + LANES <= rows; i += LANES) {
        long j = 0;
        for (; j + LANES <= cols; j += LANES)
            transpose_square(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
        for (; j < cols; j++)
            for (int l = 0; l < LANES; l++)
                to[j * to_row + i + l] = from[(i + l) * from_row + j];
    }
    for (; i < rows; i++)
        for (long j = 0; j < cols; j++)
            to[j * to_row + i] = from[i * from_row + j];
}

/* to[p * COLS + j] = b(p, j) for k rows and width columns; the last vector is filled up with 0. */
static inline void pack_strip(long k, long width, matrix b, real *to)
{
    long last = parts(width, LANES) * LANES - LANES;
    if (width < last + LANES)
        for (long p = 0; p < k; p++)
            *(vec *)(to + p * COLS + last) = (vec){0};
    if (b.col == 1 && width == COLS)
        for (long p = 0; p < k; p++)
            for (int j = 0; j < COLS; j += LANES)
                *(vec *)(to + p * COLS + j) = *(const vec *)(b.at + p * b.row + j);
    else if (b.col == 1)
        for (long p = 0; p < k; p++)
            memcpy(to + p * COLS, b.at + p * b.row, (size_t)width * sizeof(real));
    else if (b.row == 1)
        transpose(width, k, b.at, b.col, to, COLS);
    else
        for (long p = 0; p < k; p++)
            for (int j = 0; j < width; j++)
                to[p * COLS + j] = b.at[p * b.row + j * b.col];
}

/* All strips of b, one after the other. */
static inline void pack_strips(long k, long cols, matrix b, real *to)
{
    for (long s = 0; s * COLS < cols; s++)
        pack_strip(k, strip_width(cols, s), part(b, 0, strip_begin(cols, s)), to + s * COLS * k);
}

enum { GROUPS = 4 };

/* Rows of A in groups of ROWS, each with k as the outer index: what a tile reads lies together. */
static inline void pack_rows(long rows, long k, matrix a, real *to)
{
    long i = 0;
    if (a.row == 1) /* several groups at a time: neighbours in memory are read together */
        while (i + ROWS <= rows) {
            long groups = least(GROUPS, (rows - i) / ROWS);
            for (long p = 0; p < k; p++) {
                const real *from = a.at + i + p * a.col;
                real *place = to + i * k + p * ROWS;
                for (long g = 0; g < groups; g++, from += ROWS, place += ROWS * k)
                    memcpy(place, from, ROWS * sizeof(real));
            }
            i += groups * ROWS;
        }
    for (; i < rows; i++)
        for (long p = 0; p < k; p++)
            to[i / ROWS * ROWS * k + p * ROWS + i % ROWS] = a.at[i * a.row + p * a.col];
}

#endif
