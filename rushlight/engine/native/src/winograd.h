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
    TAPS_TRANSFORMED = 320,  /* multiplications that take as long as to transform the taps of an output and a channel */
    SLICE_CHANNELS = 128,    /* whose taps are transformed where they are used */
    FEW_PIECES = 2,          /* so many transform the taps they use, each for itself */
    RANGE = 4 * COLS,        /* channels of a weight's gradient that one job computes */
    ALL_SUMS = 1 << 19,      /* reals of weight gradients in all shares */
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
    long ranges, range;         /* of channels, in the weight's gradient */
    long shares;                /* of the pieces, in the weight's gradient */
    real *tiles;                /* pieces as transform_piece or strips_of_channels makes them, where several jobs read each */
    real *taps;                 /* of all outputs and channels, where several pieces read them */
    real *sums;                 /* of the shares */
    int status, bad;
} winograd;

/* Are there fewer multiplications in it than in ``taps`` for each position, those that transforming takes as long as included? */
static int winograd_serves(long images, long channels, long outputs, long out_height, long out_width)
{
    long tiles = images * parts(out_height, 2) * parts(out_width, 2), positions = images * out_height * out_width;
    return least(channels, outputs) >= FEW_CHANNELS &&
           ELEMENTS * parts(tiles, LANES) * LANES + TAPS_TRANSFORMED < TAPS * positions;
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

/* That of the sixteen elements of a piece's tiles. */
RL_INLINE long tiles_apart(const winograd *w) { return apart_of(w->channels * w->wide); }

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

/* Taps lie next to those of the next channel of the same output or, reversed, of the next output of the same channel. */
RL_INLINE long far_stride(const winograd *w) { return w->reversed ? w->col : w->row; }

/* G w G' of the taps of ``near`` neighbours, ``far`` times; element e of (i, j) goes to to[e * apart + i * line + j], up to
   whole vectors of j. */
static void transform_taps(const winograd *w, const real *from, long far, long near, real *to, long line, long apart)
{
    const real half = (real)0.5;
    real taps[TAPS * LANES] = {0};
    for (long i = 0; i < far; i++, from += far_stride(w))
        for (long j = 0; j < near; j += LANES) {
            long some = least(LANES, near - j);
            if (some == LANES)
                transpose(LANES, TAPS, from + j * TAPS, TAPS, taps, LANES);
            else
                for (long l = 0; l < some; l++)
                    for (int t = 0; t < TAPS; t++)
                        taps[t * LANES + l] = from[(j + l) * TAPS + t];
            vec r[4][3];
            for (int k = 0; k < 3; k++) {
                const real *p = taps + (w->reversed ? TAPS - 1 - k : k) * LANES;
                long step = (w->reversed ? -3 : 3) * LANES;
                vec w0 = at(p), w1 = at(p + step), w2 = at(p + 2 * step);
                r[0][k] = w0, r[1][k] = half * (w0 + w1 + w2), r[2][k] = half * (w0 - w1 + w2), r[3][k] = w2;
            }
            real *out = to + i * line + j;
            for (int k = 0; k < 4; k++, out += 4 * apart) {
                put(out, r[k][0]);
                put(out + apart, half * (r[k][0] + r[k][1] + r[k][2]));
                put(out + 2 * apart, half * (r[k][0] - r[k][1] + r[k][2]));
                put(out + 3 * apart, r[k][2]);
            }
        }
}

/* G' u G, the gradients of an output's taps for some channels. */
static void transform_sums(const real *u, long apart, long channels, real *to)
{
    const real half = (real)0.5;
    real taps[TAPS * LANES];
    for (long c = 0; c < channels; c += LANES, u += LANES, to += TAPS * LANES) {
        vec r[3][4];
        for (int j = 0; j < 4; j++) {
            vec u0 = at(u + j * apart), u1 = half * at(u + (4 + j) * apart), u2 = half * at(u + (8 + j) * apart);
            vec u3 = at(u + (12 + j) * apart);
            r[0][j] = u0 + u1 + u2, r[1][j] = u1 - u2, r[2][j] = u1 + u2 + u3;
        }
        for (int i = 0; i < 3; i++) {
            vec u1 = half * r[i][1], u2 = half * r[i][2];
            put(taps + 3 * i * LANES, r[i][0] + u1 + u2);
            put(taps + (3 * i + 1) * LANES, u1 - u2);
            put(taps + (3 * i + 2) * LANES, u1 + u2 + r[i][3]);
        }
        for (long l = 0; l < least(LANES, channels - c); l++)
            for (int t = 0; t < TAPS; t++)
                to[l * TAPS + t] = taps[t * LANES + l];
    }
}

/* Channels from ``first`` on of a piece as (16, channels, wide). */
static void transform_piece(const winograd *w, const piece *p, long first, long channels, real *planes, real *to, long apart)
{
    for (long c = 0; c < channels; c++)
        for (long n = 0; n < p->images; n++) {
            const real *from = w->source + ((p->image + n) * w->channels + first + c) * w->height * w->width;
            to_planes(w, from, w->height, w->width, 2 * p->first - w->top, w->left, p->rows + 1, planes);
            for (long r = 0; r < p->rows; r++)
                transform_image(w, planes + r * w->line, to + c * w->wide + (n * p->rows + r) * w->across, apart);
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

/* The sixteen products of outputs and tiles, for some channels, added to m if there were some before. */
static void multiply_tiles(const winograd *w, matrix taps, long taps_apart, long outputs, const real *v, long channels,
                           long tiles, int add, real *m)
{
    long cols = parts(tiles, LANES) * LANES;
    for (int e = 0; e < ELEMENTS; e++)
        for (long s = 0, j = 0; j < cols; j = strip_begin(cols, ++s))
            for (long i = 0; i < outputs; i += ROWS)
                for (long c = 0; c < channels; c += SOME_CHANNELS) {
                    matrix a = part(taps, i, c);
                    operands o = {.k = least(SOME_CHANNELS, channels - c), .a = a.at + e * taps_apart, .a_row = a.row,
                                  .a_step = a.col, .b = v + e * tiles_apart(w) + c * w->wide + j, .b_row = w->wide};
                    target sum = {m + e * apart_of(SOME_OUTPUTS * w->wide) + i * w->wide + j, w->wide, 1, add || c > 0,
                                  NULL, NULL};
                    tile(least(ROWS, outputs - i), strip_width(cols, s), &o, sum);
                }
}

/* Taps of all outputs and channels lie as those of so many, see transform_taps. */
RL_INLINE long far_of(const winograd *w, long outputs, long channels) { return w->reversed ? channels : outputs; }
RL_INLINE long near_of(const winograd *w, long outputs, long channels)
{
    return apart_of(w->reversed ? outputs : channels);
}
RL_INLINE long taps_size(const winograd *w, long outputs, long channels)
{
    return apart_of(far_of(w, outputs, channels) * near_of(w, outputs, channels));
}
RL_INLINE matrix taps_matrix(const winograd *w, const real *at, long outputs, long channels)
{
    long line = near_of(w, outputs, channels);
    return w->reversed ? (matrix){at, 1, line} : (matrix){at, line, 1};
}

static void winograd_pieces(void *context, long begin, long end)
{
    winograd *w = context;
    long image = w->tiles ? 0 : ELEMENTS * tiles_apart(w), products = ELEMENTS * apart_of(SOME_OUTPUTS * w->wide);
    long slice = w->taps ? w->channels : least(SLICE_CHANNELS, w->channels), apart = taps_size(w, SOME_OUTPUTS, slice);
    real *own = rl_scratch((size_t)(image + products + 4 * w->plane + (w->taps ? 0 : ELEMENTS * apart)) * sizeof(real));
    if (!own) {
        w->status = RL_NO_MEMORY;
        return;
    }
    real *m = own + image, *planes = m + products, *u = planes + 4 * w->plane;
    memset(planes, 0, (size_t)(4 * w->plane) * sizeof(real));
    for (long which = begin; which < end && !w->bad; which++) {
        piece p = piece_of(w, which / w->blocks);
        long from = which % w->blocks * w->block, to = least(w->outputs, from + w->block);
        const real *v = w->tiles ? w->tiles + which / w->blocks * ELEMENTS * tiles_apart(w) : own;
        if (!w->tiles)
            transform_piece(w, &p, 0, w->channels, planes, own, tiles_apart(w));
        for (long first = from; first < to; first += SOME_OUTPUTS) {
            long outputs = least(SOME_OUTPUTS, to - first);
            if (w->taps)
                multiply_tiles(w, part(taps_matrix(w, w->taps, w->outputs, w->channels), first, 0),
                               taps_size(w, w->outputs, w->channels), outputs, v, w->channels, p.tiles, 0, m);
            else
                for (long c = 0; c < w->channels; c += slice) {
                    long some = least(slice, w->channels - c), far = far_of(w, outputs, some);
                    transform_taps(w, w->weights + first * w->row + c * w->col, far, w->reversed ? outputs : some, u,
                                   near_of(w, SOME_OUTPUTS, slice), apart);
                    multiply_tiles(w, taps_matrix(w, u, SOME_OUTPUTS, slice), apart, outputs, v + c * w->wide, some, p.tiles,
                                   c > 0, m);
                }
            finish_piece(w, &p, first, outputs, m, planes);
        }
    }
}

static void all_taps(void *context, long begin, long end)
{
    const winograd *w = context;
    long line = near_of(w, w->outputs, w->channels);
    transform_taps(w, w->weights + begin * far_stride(w), end - begin, w->reversed ? w->outputs : w->channels,
                   w->taps + begin * line, line, taps_size(w, w->outputs, w->channels));
}

/* Jobs are (piece, channel). */
static void all_tiles(void *context, long begin, long end)
{
    winograd *w = context;
    real *planes = rl_scratch((size_t)(4 * w->plane) * sizeof(real));
    if (!planes) {
        w->status = RL_NO_MEMORY;
        return;
    }
    memset(planes, 0, (size_t)(4 * w->plane) * sizeof(real));
    for (long which = begin; which < end; which++) {
        piece p = piece_of(w, which / w->channels);
        long c = which % w->channels;
        real *to = w->tiles + which / w->channels * ELEMENTS * tiles_apart(w) + c * w->wide;
        transform_piece(w, &p, c, 1, planes, to, tiles_apart(w));
    }
}

/* RL_OK; if ``bad`` is set then, the result is not to be used. */
static int run_winograd(winograd *w)
{
    cut_winograd(w);
    w->blocks = least(parts(w->outputs, SOME_OUTPUTS), parts(PIECES, w->pieces));
    w->block = parts(parts(w->outputs, w->blocks), ROWS) * ROWS;
    w->blocks = parts(w->outputs, w->block);
    long taps = w->pieces > FEW_PIECES ? ELEMENTS * taps_size(w, w->outputs, w->channels) : 0;
    long tiles = w->blocks > 1 ? w->pieces * ELEMENTS * tiles_apart(w) : 0;
    real *memory = malloc((size_t)(taps + tiles + 1) * sizeof(real));
    if (!memory)
        return w->status = RL_NO_MEMORY;
    w->taps = taps ? memory : NULL, w->tiles = tiles ? memory + taps : NULL;
    if (taps) {
        long far = far_of(w, w->outputs, w->channels);
        rl_parallel(all_taps, w, far, most(1, RL_PIECE * far / taps));
    }
    if (tiles)
        rl_parallel(all_tiles, w, w->pieces * w->channels, most(1, RL_PIECE / ELEMENTS / w->wide));
    if (!w->status)
        rl_parallel(winograd_pieces, w, w->pieces * w->blocks, 1);
    free(memory);
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

/* Where strip ``s`` of a piece's channels is: strips are (16, tiles, COLS) each. */
RL_INLINE long strip_size(const winograd *w) { return ELEMENTS * w->wide * COLS; }
RL_INLINE long strip_count(const winograd *w) { return parts(w->channels, COLS); }

/* Strips of some channels of a piece: positions are the rows. ``v``: room for the tiles of a strip. */
static void strips_of_channels(const winograd *w, const piece *p, long first, long count, real *planes, real *v, real *to)
{
    long apart = apart_of(COLS * w->wide);
    for (long s = first; s < first + count; s++, to += strip_size(w)) {
        long begin = strip_begin(w->channels, s), width = strip_width(w->channels, s);
        transform_piece(w, p, begin, width, planes, v, apart);
        for (int e = 0; e < ELEMENTS; e++)
            pack_strip(p->tiles, width, (matrix){v + e * apart, 1, w->wide}, to + e * w->wide * COLS);
    }
}

/* Jobs are (piece, strip). */
static void all_strips(void *context, long begin, long end)
{
    winograd *w = context;
    real *planes = rl_scratch((size_t)(4 * w->plane + ELEMENTS * apart_of(COLS * w->wide)) * sizeof(real));
    if (!planes) {
        w->status = RL_NO_MEMORY;
        return;
    }
    memset(planes, 0, (size_t)(4 * w->plane) * sizeof(real));
    for (long which = begin; which < end; which++) {
        piece p = piece_of(w, which / strip_count(w));
        strips_of_channels(w, &p, which % strip_count(w), 1, planes, planes + 4 * w->plane, w->tiles + which * strip_size(w));
    }
}

/* The sums of one job: (16, block, range), with room for whole strips. */
RL_INLINE long sums_apart(const winograd *w) { return apart_of(w->block * w->range * COLS); }

/* Row i of them: an output's. */
static void finish_sums(winograd *w, const real *sums, long job, long i)
{
    long range = job % w->ranges, c = strip_begin(w->channels, range * w->range);
    long channels = strip_begin(w->channels, (range + 1) * w->range) - c;
    real *to = w->result + ((job / w->ranges * w->block + i) * w->channels + c) * TAPS;
    transform_sums(sums + i * w->range * COLS, sums_apart(w), channels, to);
    if (!all_finite(to, channels * TAPS))
        w->bad = 1;
}

/* Sums of one share of the pieces, for one block of outputs and one range of strips of channels. */
static void weight_jobs(void *context, long begin, long end)
{
    winograd *w = context;
    long gradient_apart = apart_of(w->block * w->wide), gradient = ELEMENTS * gradient_apart;
    long strips_size = w->tiles ? 0 : w->range * strip_size(w) + ELEMENTS * apart_of(COLS * w->wide);
    long all = gradient + strips_size + 4 * w->plane + (w->sums ? 0 : ELEMENTS * sums_apart(w));
    real *m = rl_scratch((size_t)all * sizeof(real));
    if (!m) {
        w->status = RL_NO_MEMORY;
        return;
    }
    real *own = m + gradient, *planes = own + strips_size, *sums = planes + 4 * w->plane;
    memset(planes, 0, (size_t)(4 * w->plane) * sizeof(real));
    for (long which = begin; which < end; which++) {
        long share = which / w->ranges / w->blocks, block = which / w->ranges % w->blocks, range = which % w->ranges;
        long first = block * w->block, outputs = least(w->block, w->outputs - first), line = w->range * COLS;
        long s = range * w->range, count = least(w->range, strip_count(w) - s), add = 0;
        if (w->sums)
            sums = w->sums + which * ELEMENTS * sums_apart(w);
        for (long one = share * w->pieces / w->shares; one < (share + 1) * w->pieces / w->shares; one++, add = 1) {
            piece p = piece_of(w, one);
            transform_gradients(w, &p, first, outputs, planes, m);
            const real *strips = w->tiles ? w->tiles + (one * strip_count(w) + s) * strip_size(w) : own;
            if (!w->tiles)
                strips_of_channels(w, &p, s, count, planes, own + w->range * strip_size(w), own);
            for (int e = 0; e < ELEMENTS; e++)
                for (long j = 0; j < count; j++)
                    for (long i = 0; i < outputs; i += ROWS) {
                        operands o = {.k = p.tiles, .a = m + e * gradient_apart + i * w->wide, .a_row = w->wide, .a_step = 1,
                                      .b = strips + j * strip_size(w) + e * w->wide * COLS, .b_row = COLS};
                        long at = strip_begin(w->channels, s + j) - strip_begin(w->channels, s);
                        target c = {sums + e * sums_apart(w) + i * line + at, line, 1, (int)add, NULL, NULL};
                        tile(least(ROWS, outputs - i), parts(strip_width(w->channels, s + j), LANES) * LANES, &o, c);
                    }
        }
        for (long i = 0; i < outputs && !w->sums; i++)
            finish_sums(w, sums, which, i);
    }
}

/* The shares' sums, added up in their order, and transformed: row by row of each job's. */
static void sum_shares(void *context, long begin, long end)
{
    winograd *w = context;
    long size = ELEMENTS * sums_apart(w), line = w->range * COLS;
    for (long row = begin; row < end; row++) {
        long job = row / w->block, i = row % w->block;
        if (job / w->ranges * w->block + i >= w->outputs)
            continue;
        real *sums = w->sums + job * size;
        for (int e = 0; e < ELEMENTS; e++)
            for (long share = 1; share < w->shares; share++) {
                real *total = sums + e * sums_apart(w) + i * line;
                const real *more = total + share * w->blocks * w->ranges * size;
                RL_SIMD
                for (long j = 0; j < line; j++)
                    total[j] += more[j];
            }
        finish_sums(w, sums, job, i);
    }
}

static int run_winograd_weight(winograd *w)
{
    cut_winograd(w);
    long size = ELEMENTS * w->outputs * w->channels;
    w->shares = most(1, least(least(PIECES, ALL_SUMS / size), w->pieces));
    w->blocks = least(parts(w->outputs, SOME_OUTPUTS), parts(PIECES, w->shares));
    w->block = parts(parts(w->outputs, w->blocks), ROWS) * ROWS;
    w->blocks = parts(w->outputs, w->block);
    w->range = least(RANGE / COLS, strip_count(w)), w->ranges = parts(strip_count(w), w->range);
    long jobs = w->blocks * w->ranges;
    long sums = w->shares > 1 ? w->shares * jobs * ELEMENTS * sums_apart(w) : 0;
    long tiles = jobs > 1 ? w->pieces * strip_count(w) * strip_size(w) : 0;
    real *memory = malloc((size_t)(sums + tiles + 1) * sizeof(real));
    if (!memory)
        return w->status = RL_NO_MEMORY;
    w->sums = sums ? memory : NULL, w->tiles = tiles ? memory + sums : NULL;
    if (tiles)
        rl_parallel(all_strips, w, w->pieces * strip_count(w), 1);
    if (!w->status)
        rl_parallel(weight_jobs, w, w->shares * jobs, 1);
    if (!w->status && sums)
        rl_parallel(sum_shares, w, jobs * w->block, most(1, RL_PIECE / ELEMENTS / (w->range * COLS)));
    free(memory);
    return w->status;
}

#endif
