/* Convolution with 3 x 3 taps by Winograd's algorithm F(2 x 2, 3 x 3), for conv.c: 16 multiplications, not 36.

   A tile is four outputs y, 2 x 2; they read 4 x 4 of the image, d. With fixed small matrices

       y = A' ((G w G') * (B' d B)) A            ' transposes, * is element by element

   and the sum over channels can be made before A: sixteen matrix products (outputs x channels) (channels x tiles), one
   for each element of a 4 x 4. The weight's gradient is the transpose of the same: G' ((A g A') * (B' d B)) G.

   A piece of work is some rows of tiles of an image, or all of several small images. The image under them is copied
   into four planes, of even and odd rows and columns, so that element (i, j) of the tiles of a row is a plane from an
   offset on, and transforming is plain loops over tiles.

   Where something is infinite or NaN, differences would spread it over the whole tile: the caller then starts again
   without this. */
#ifndef RL_WINOGRAD_H
#define RL_WINOGRAD_H

#include "gemm.h"

enum {
    TAPS = 9,
    ELEMENTS = 16,
    TILES = 3 * COLS,        /* of a piece, at most */
    SOME_OUTPUTS = 64,       /* outputs computed before they are transformed */
    SOME_CHANNELS = 64,      /* summed up by themselves: sums of sums are off by less than one long sum */
    FEW_CHANNELS = 16,       /* with fewer, transforming takes longer than it saves */
    FEW_POSITIONS = 6,       /* in each direction */
    ALL_SUMS = 1 << 19,      /* reals of weight gradients in all pieces */
    PIECES = 8,              /* that keep some threads busy */
};

typedef struct {
    long images, channels, outputs; /* the channels of what is read, and of the result (or of g) */
    long height, width;             /* of what is read */
    long out_height, out_width;
    long top, left;                 /* zeros around it */
    const real *source, *bias;
    real *result;
    const real *weights; /* tap t of output o and channel c: weights[o * row + c * col + t], or 8 - t if reversed */
    long row, col;
    int reversed;
    const real *g; /* for the weight's gradient */
    /* what follows is computed */
    long across, line, down;    /* tiles in a row; places in a row of a plane; rows of tiles */
    long rows, chunks, several; /* rows of tiles and images in a piece */
    long wide, plane;           /* room for a piece's tiles, and for a plane */
    long pieces, blocks, block; /* blocks of outputs */
    real *taps;                 /* (16, outputs, channels) */
    long shares;                /* of the pieces, in the weight's gradient */
    int status, bad;
} winograd;

static int winograd_serves(long channels, long outputs, long out_height, long out_width)
{
    return least(channels, outputs) >= FEW_CHANNELS && least(out_height, out_width) >= FEW_POSITIONS;
}

/* What the products for so many tiles cost, about: vectors, and loops over them. */
RL_INLINE long cost(long tiles) { return parts(tiles, LANES) + parts(tiles, COLS); }

static void cut_winograd(winograd *w)
{
    w->across = parts(w->out_width, 2), w->line = w->across + 1, w->down = parts(w->out_height, 2);
    long best = 0;
    w->rows = 1;
    for (long rows = 1; rows <= w->down && (rows == 1 || rows * w->across <= TILES); rows++) {
        long rest = w->down % rows, all = w->down / rows * cost(rows * w->across) + (rest ? cost(rest * w->across) : 0);
        if (rows == 1 || all <= best)
            best = all, w->rows = rows;
    }
    w->chunks = parts(w->down, w->rows), w->several = 1;
    if (w->chunks == 1)
        w->several = parts(w->images, parts(w->images, most(1, TILES / (w->rows * w->across))));
    w->pieces = parts(w->images, w->several) * w->chunks;
    w->wide = parts(w->several * w->rows * w->across, LANES) * LANES + LANES; /* vectors reach beyond the last tile */
    w->plane = (w->rows + 1) * w->line + LANES;
}

/* The tiles of one piece: rows of tiles from ``first`` on, of images from ``image`` on. */
typedef struct {
    long image, images, first, rows, tiles;
} piece;

static piece piece_of(const winograd *w, long which)
{
    piece p = {.image = which / w->chunks * w->several, .first = which % w->chunks * w->rows};
    p.images = least(w->several, w->images - p.image), p.rows = least(w->rows, w->down - p.first);
    p.tiles = p.images * p.rows * w->across;
    return p;
}

/* Sixteen of something lie so far apart that they do not share places in the caches. */
RL_INLINE long apart_of(long size) { return parts(size, LANES) * LANES + LANES; }

/* -- transforms ---------------------------------------------------------------------------------------------------- */

RL_INLINE real or_zero(const real *row, long width, long x) { return x >= 0 && x < width ? row[x] : 0; }

/* One channel of an image, from row ``first`` and column -left on, into even and odd rows and columns: plane
   2 * (row odd) + (column odd). */
static void to_planes(const winograd *w, const real *from, long height, long width, long first, long left, long rows,
                      real *to)
{
    long line = w->line, begin = least(line, parts(left, 2)), end = most(begin, least(line, (width + left) / 2));
    for (long i = 0; i < 2 * rows; i++) {
        real *restrict even = to + (i & 1 ? 2 * w->plane : 0) + i / 2 * line, *restrict odd = even + w->plane;
        const real *restrict row = from + (first + i) * width - left;
        if (first + i < 0 || first + i >= height) {
            memset(even, 0, (size_t)line * sizeof(real)), memset(odd, 0, (size_t)line * sizeof(real));
            continue;
        }
        for (long j = begin; j < end; j++)
            even[j] = row[2 * j], odd[j] = row[2 * j + 1];
        for (long j = 0; j < line - (end - begin); j++) { /* where not both columns are inside */
            long place = j < begin ? j : j + end - begin, x = 2 * place - left;
            even[place] = or_zero(row + left, width, x), odd[place] = or_zero(row + left, width, x + 1);
        }
    }
}

/* Rows of a channel of the result from four planes. */
static void from_planes(const winograd *w, const piece *p, const real *planes, real *to)
{
    long pairs = w->out_width / 2;
    for (long i = 0; i < 2 * p->rows && 2 * p->first + i < w->out_height; i++) {
        const real *restrict even = planes + (i & 1 ? 2 * w->plane : 0) + i / 2 * w->line;
        const real *restrict odd = even + w->plane;
        real *restrict row = to + (2 * p->first + i) * w->out_width;
        for (long j = 0; j < pairs; j++)
            row[2 * j] = even[j], row[2 * j + 1] = odd[j];
        if (w->out_width & 1)
            row[2 * pairs] = even[pairs];
    }
}

RL_INLINE vec at(const real *p) { return *(const vec *)p; }
RL_INLINE void put(real *p, vec v) { *(vec *)p = v; }

/* These transform a row of tiles. The last vector may reach into what the next row writes: rows come in their order. */

/* B' d B of each tile; element e goes to to[e * apart]. */
static void transform_image(const winograd *w, const real *planes, real *to, long apart)
{
    long plane = w->plane, line = w->line;
    for (long t = 0; t < w->across; t += LANES) {
        vec r[4][4];
        for (int j = 0; j < 4; j++) {
            const real *p = planes + (j & 1) * plane + t + j / 2;
            vec d0 = at(p), d1 = at(p + 2 * plane), d2 = at(p + line), d3 = at(p + 2 * plane + line);
            r[0][j] = d0 - d2, r[1][j] = d1 + d2, r[2][j] = d2 - d1, r[3][j] = d1 - d3;
        }
        real *out = to + t;
        for (int i = 0; i < 4; i++, out += 4 * apart) {
            put(out, r[i][0] - r[i][2]);
            put(out + apart, r[i][1] + r[i][2]);
            put(out + 2 * apart, r[i][2] - r[i][1]);
            put(out + 3 * apart, r[i][1] - r[i][3]);
        }
    }
}

/* A' m A of each tile plus bias, into four planes. */
static void transform_result(const winograd *w, const real *m, long apart, real bias, real *planes)
{
    long plane = w->plane;
    for (long t = 0; t < w->across; t += LANES) {
        vec r[2][4];
        for (int j = 0; j < 4; j++) {
            const real *p = m + j * apart + t;
            vec m0 = at(p), m1 = at(p + 4 * apart), m2 = at(p + 8 * apart), m3 = at(p + 12 * apart);
            r[0][j] = m0 + m1 + m2, r[1][j] = m1 - m2 - m3;
        }
        for (int i = 0; i < 2; i++) {
            put(planes + 2 * i * plane + t, r[i][0] + r[i][1] + r[i][2] + bias);
            put(planes + (2 * i + 1) * plane + t, r[i][1] - r[i][2] - r[i][3] + bias);
        }
    }
}

/* A g A' of each tile, from four planes; element e goes to to[e * apart]. */
static void transform_gradient(const winograd *w, const real *planes, real *to, long apart)
{
    long plane = w->plane;
    for (long t = 0; t < w->across; t += LANES) {
        vec r[4][2];
        for (int j = 0; j < 2; j++) {
            vec g0 = at(planes + j * plane + t), g1 = at(planes + (2 + j) * plane + t);
            r[0][j] = g0, r[1][j] = g0 + g1, r[2][j] = g0 - g1, r[3][j] = -g1;
        }
        real *out = to + t;
        for (int i = 0; i < 4; i++, out += 4 * apart) {
            put(out, r[i][0]);
            put(out + apart, r[i][0] + r[i][1]);
            put(out + 2 * apart, r[i][0] - r[i][1]);
            put(out + 3 * apart, -r[i][1]);
        }
    }
}

/* G w G' of all taps of some outputs. */
static void transform_taps(void *context, long begin, long end)
{
    const winograd *w = context;
    long apart = apart_of(w->outputs * w->channels), last = w->reversed ? TAPS - 1 : 0, step = w->reversed ? -1 : 1;
    const real half = (real)0.5;
    for (long o = begin; o < end; o++)
        for (long c = 0; c < w->channels; c++) {
            const real *from = w->weights + o * w->row + c * w->col + last;
            real *to = w->taps + o * w->channels + c, r[4][3];
            for (int j = 0; j < 3; j++) {
                real w0 = from[step * j], w1 = from[step * (3 + j)], w2 = from[step * (6 + j)];
                r[0][j] = w0, r[1][j] = half * (w0 + w1 + w2), r[2][j] = half * (w0 - w1 + w2), r[3][j] = w2;
            }
            for (int i = 0; i < 4; i++) {
                to[(4 * i + 0) * apart] = r[i][0];
                to[(4 * i + 1) * apart] = half * (r[i][0] + r[i][1] + r[i][2]);
                to[(4 * i + 2) * apart] = half * (r[i][0] - r[i][1] + r[i][2]);
                to[(4 * i + 3) * apart] = r[i][2];
            }
        }
}

/* G' u G, the gradient of one output's and channel's taps. */
static void transform_sums(const real *u, long apart, real *to)
{
    const real half = (real)0.5;
    real r[3][4];
    for (int j = 0; j < 4; j++) {
        real u0 = u[j * apart], u1 = half * u[(4 + j) * apart], u2 = half * u[(8 + j) * apart];
        real u3 = u[(12 + j) * apart];
        r[0][j] = u0 + u1 + u2, r[1][j] = u1 - u2, r[2][j] = u1 + u2 + u3;
    }
    for (int i = 0; i < 3; i++) {
        real u1 = half * r[i][1], u2 = half * r[i][2];
        to[3 * i] = r[i][0] + u1 + u2, to[3 * i + 1] = u1 - u2, to[3 * i + 2] = u1 + u2 + r[i][3];
    }
}

/* All channels of a piece as (16, channels, wide). */
static void transform_piece(const winograd *w, const piece *p, real *planes, real *to)
{
    for (long c = 0; c < w->channels; c++)
        for (long n = 0; n < p->images; n++) {
            const real *from = w->source + ((p->image + n) * w->channels + c) * w->height * w->width;
            to_planes(w, from, w->height, w->width, 2 * p->first - w->top, w->left, p->rows + 1, planes);
            for (long r = 0; r < p->rows; r++)
                transform_image(w, planes + r * w->line, to + c * w->wide + (n * p->rows + r) * w->across,
                                apart_of(w->channels * w->wide));
        }
}

/* Is it neither infinite nor NaN? */
static int all_finite(const real *at, long count)
{
    real sum = 0;
    RL_SUM(sum)
    for (long i = 0; i < count; i++)
        sum += at[i] * 0;
    return sum == 0;
}

/* -- outputs ------------------------------------------------------------------------------------------------------- */

/* Outputs from ``first`` on, of one channel each. */
static void finish_piece(winograd *w, const piece *p, long first, long outputs, const real *m, real *planes)
{
    long size = w->out_height * w->out_width, rows = least(2 * p->rows, w->out_height - 2 * p->first);
    for (long i = 0; i < outputs; i++)
        for (long n = 0; n < p->images; n++) {
            real *to = w->result + ((p->image + n) * w->outputs + first + i) * size;
            for (long r = 0; r < p->rows; r++)
                transform_result(w, m + i * w->wide + (n * p->rows + r) * w->across, apart_of(SOME_OUTPUTS * w->wide),
                                 w->bias ? w->bias[first + i] : 0, planes + r * w->line);
            from_planes(w, p, planes, to);
            if (!all_finite(to + 2 * p->first * w->out_width, rows * w->out_width))
                w->bad = 1;
        }
}

static void winograd_pieces(void *context, long begin, long end)
{
    winograd *w = context;
    long k = w->channels, image_apart = apart_of(k * w->wide), m_apart = apart_of(SOME_OUTPUTS * w->wide);
    long image = ELEMENTS * image_apart, products = ELEMENTS * m_apart, taps_apart = apart_of(w->outputs * k);
    real *v = rl_scratch((size_t)(image + products + 4 * w->plane) * sizeof(real));
    if (!v) {
        w->status = RL_NO_MEMORY;
        return;
    }
    real *m = v + image, *planes = m + products;
    memset(planes, 0, (size_t)(4 * w->plane) * sizeof(real));
    for (long which = begin; which < end && !w->bad; which++) {
        piece p = piece_of(w, which / w->blocks);
        long from = which % w->blocks * w->block, to = least(w->outputs, from + w->block);
        transform_piece(w, &p, planes, v);
        for (long first = from; first < to; first += SOME_OUTPUTS) {
            long outputs = least(SOME_OUTPUTS, to - first);
            for (int e = 0; e < ELEMENTS; e++)
                for (long j = 0; j < p.tiles; j += COLS)
                    for (long i = 0; i < outputs; i += ROWS)
                        for (long c = 0; c < k; c += SOME_CHANNELS) {
                            const real *taps = w->taps + e * taps_apart + (first + i) * k + c;
                            const real *tiles = v + e * image_apart + c * w->wide + j;
                            operands o = {.k = least(SOME_CHANNELS, k - c), .a = taps, .a_row = k, .a_step = 1,
                                          .b = tiles, .b_row = w->wide};
                            target sum = {m + e * m_apart + i * w->wide + j, w->wide, 1, c > 0, NULL, NULL};
                            tile(least(ROWS, outputs - i), least(COLS, parts(p.tiles - j, LANES) * LANES), &o, sum);
                        }
            finish_piece(w, &p, first, outputs, m, planes);
        }
    }
}

/* RL_OK; if ``bad`` is set then, the result is not to be used. */
static int run_winograd(winograd *w)
{
    cut_winograd(w);
    w->blocks = least(parts(w->outputs, SOME_OUTPUTS), parts(PIECES, w->pieces));
    w->block = parts(parts(w->outputs, w->blocks), ROWS) * ROWS;
    w->blocks = parts(w->outputs, w->block);
    w->taps = malloc((size_t)(ELEMENTS * apart_of(w->outputs * w->channels)) * sizeof(real));
    if (!w->taps)
        return w->status = RL_NO_MEMORY;
    rl_parallel(transform_taps, w, w->outputs, most(1, RL_PIECE / ELEMENTS / w->channels));
    rl_parallel(winograd_pieces, w, w->pieces * w->blocks, 1);
    free(w->taps);
    return w->status;
}

/* -- the weight's gradient ----------------------------------------------------------------------------------------- */

/* The gradients of some outputs as (16, block, wide). */
static void transform_gradients(const winograd *w, const piece *p, long first, long outputs, real *planes, real *to)
{
    for (long i = 0; i < outputs; i++)
        for (long n = 0; n < p->images; n++) {
            const real *g = w->g + ((p->image + n) * w->outputs + first + i) * w->out_height * w->out_width;
            to_planes(w, g, w->out_height, w->out_width, 2 * p->first, 0, p->rows, planes);
            for (long r = 0; r < p->rows; r++)
                transform_gradient(w, planes + r * w->line, to + i * w->wide + (n * p->rows + r) * w->across,
                                   apart_of(w->block * w->wide));
        }
}

/* Sums of one share of the pieces, for one block of outputs, as (16, outputs, channels). */
static void weight_shares(void *context, long begin, long end)
{
    winograd *w = context;
    long k = w->channels, image_apart = apart_of(k * w->wide), m_apart = apart_of(w->block * w->wide);
    long image = ELEMENTS * image_apart, gradient = ELEMENTS * m_apart, taps_apart = apart_of(w->outputs * k);
    long strips_size = parts(k, COLS) * COLS * w->wide;
    real *v = rl_scratch((size_t)(image + gradient + strips_size + 4 * w->plane) * sizeof(real));
    if (!v) {
        w->status = RL_NO_MEMORY;
        return;
    }
    real *m = v + image, *packed = m + gradient, *planes = packed + strips_size;
    memset(planes, 0, (size_t)(4 * w->plane) * sizeof(real));
    for (long which = begin; which < end; which++) {
        long share = which / w->blocks, first = which % w->blocks * w->block;
        long outputs = least(w->block, w->outputs - first);
        real *sums = w->taps + share * ELEMENTS * taps_apart + first * k;
        for (int e = 0; e < ELEMENTS; e++)
            memset(sums + e * taps_apart, 0, (size_t)(outputs * k) * sizeof(real));
        for (long one = share * w->pieces / w->shares; one < (share + 1) * w->pieces / w->shares; one++) {
            piece p = piece_of(w, one);
            transform_piece(w, &p, planes, v);
            transform_gradients(w, &p, first, outputs, planes, m);
            for (int e = 0; e < ELEMENTS; e++) {
                pack_strips(p.tiles, k, (matrix){v + e * image_apart, 1, w->wide}, packed);
                target c = {sums + e * taps_apart, k, 1, 1, NULL, NULL};
                tiles(outputs, k, p.tiles, (matrix){m + e * m_apart, w->wide, 1}, ROWS * w->wide,
                      (strips){packed, p.tiles, k}, c);
            }
        }
    }
}

/* The shares' sums, added up in their order, and transformed. */
static void sum_shares(void *context, long begin, long end)
{
    winograd *w = context;
    long apart = apart_of(w->outputs * w->channels);
    for (int e = 0; e < ELEMENTS; e++)
        for (long share = 1; share < w->shares; share++) {
            real *total = w->taps + e * apart;
            const real *more = total + share * ELEMENTS * apart;
            RL_SIMD
            for (long i = begin * w->channels; i < end * w->channels; i++)
                total[i] += more[i];
        }
    for (long i = begin * w->channels; i < end * w->channels; i++)
        transform_sums(w->taps + i, apart, w->result + i * TAPS);
    if (!all_finite(w->result + begin * w->channels * TAPS, (end - begin) * w->channels * TAPS))
        w->bad = 1;
}

static int run_winograd_weight(winograd *w)
{
    cut_winograd(w);
    long size = ELEMENTS * apart_of(w->outputs * w->channels);
    w->shares = most(1, least(least(PIECES, ALL_SUMS / size), w->pieces));
    w->blocks = least(parts(w->outputs, SOME_OUTPUTS), parts(PIECES, w->shares));
    w->block = parts(parts(w->outputs, w->blocks), ROWS) * ROWS;
    w->blocks = parts(w->outputs, w->block);
    w->taps = malloc((size_t)(w->shares * size) * sizeof(real));
    if (!w->taps)
        return w->status = RL_NO_MEMORY;
    rl_parallel(weight_shares, w, w->shares * w->blocks, 1);
    if (!w->status)
        rl_parallel(sum_shares, w, w->outputs, most(1, RL_PIECE / ELEMENTS / w->channels));
    free(w->taps);
    return w->status;
}

#endif
