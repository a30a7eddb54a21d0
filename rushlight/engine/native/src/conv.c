/* Convolution and its transposes in the input and in the weight, in one to three dimensions, as matrix products that
   read the image itself: no column matrix is made.

   The image of one job is copied once, with its zeros around it, so that what a tap of the kernel meets at successive
   positions of a row is contiguous: with a stride s, every s-th column goes to a part of its own. Then, for a tap, the
   positions of the whole image lie in one run of memory from the tap's offset on; rows go on into each other, what is
   computed between them is dropped. Such a run is a row of B for the tiles of gemm.h, and its offset an entry of a table:

       y (outputs x run) = w (outputs x taps) image (taps x run)          A: weights       B: the image
       dw (taps x outputs) = image (taps x positions) g (positions x outputs)   A: the image   B: g, transposed in strips

   The input's gradient is a convolution of g with taps in reverse. With a stride s it is s of them in each dimension,
   each for every s-th position of the input, with every s-th tap.

   Where images are small, a run fills vectors badly, and all weights are read for a few positions. Then the columns of
   several images are made after all, side by side: see ``columns``.

   3 x 3 taps with stride 1 take another way, see winograd.h. */
#include "gemm.h"
#include "sums.h"
#include "winograd.h"

enum {
    DIMS = 3,
    RUN = 1024,        /* positions of one job, about */
    IMAGE = 1 << 17,   /* reals of the image that one job reads, about */
    PARTIAL = 1 << 18, /* reals of a weight gradient that several jobs may each have one of */
    WORTH = 1 << 18,   /* multiplications that are worth a piece of work of their own */
    ENOUGH = 8,
    FEW = 64,          /* positions of a small image, at most */
    COLUMNS = 1 << 20, /* reals of the columns of several small images, about */
    GATHERED = 40,     /* multiplications that take as long as to make an element of the columns */
    SLICE = 128,       /* of rows of the columns that are multiplied at once */
    CACHED = 1 << 18,  /* reals of columns that stay in the second-level cache */
    SOME_ROWS = 64,    /* of the other matrix */
    SOME = 32,         /* positions whose taps stay in the first-level cache, with a slice of the weights */
    SHORT = 16,        /* positions that take as long as to add a sum of products to another */
    TURNED = 16,       /* channels of weights that are turned at once */
    SUMMED = 512,      /* products summed up by themselves: sums of sums are off by less than one long sum */
};

/* One dimension: tap t of position p reads source[first + gap * t + step * pitch * p], or 0 outside of [0, in). */
typedef struct {
    long in, out, taps, step, pitch, first, gap;
    /* of the copy: element i of part r is source[origin + step * i + r]; positions are pitch elements apart */
    long origin, phases, size;
} axis;

typedef struct {
    axis axis[DIMS];
    long images, groups, channels, taps; /* channels of the source in a group; taps in all dimensions together */
    const real *source;
    long source_end;           /* its size */
    int direct;                /* the source is read where it lies */
    int cut;                   /* the dimension that is cut into chunks of ``chunk`` positions */
    long chunk, chunks, image; /* image: size of a channel of the copy */
    long *offset;              /* where each tap of each channel begins, (channels, taps) */
} layout;

RL_INLINE long low(const axis *a) { return least(a->first, a->first + a->gap * (a->taps - 1)); }
RL_INLINE long high(const axis *a) { return most(a->first, a->first + a->gap * (a->taps - 1)); }

/* From the first of so many positions to the last one. */
RL_INLINE long extent(const axis *a, long out) { return (out - 1) * a->pitch + 1; }

static int inside(const axis *a)
{
    return a->step == 1 && low(a) >= 0 && high(a) + extent(a, a->out) <= a->in;
}

/* Sizes of the copy for ``out`` positions. In the last dimension zeros at the end of a row serve as those before the
   next one too. */
static void lay_axis(axis *a, long out, int direct, int last)
{
    a->phases = 1;
    if (direct) {
        a->origin = 0, a->size = a->in;
    } else if (last && a->step == 1) {
        long left = most(0, -low(a)), right = most(0, extent(a, out) + high(a) - a->in);
        a->origin = -left, a->size = left + a->in + most(0, right - left);
    } else {
        a->origin = low(a), a->phases = least(a->step, high(a) - low(a) + 1);
        a->size = extent(a, out) + (high(a) - low(a)) / a->step;
    }
}

/* The place of tap t in the copy: which part of it, and where in the part. */
RL_INLINE long phase_of(const axis *a, long t) { return a->taps ? (a->first + a->gap * t - a->origin) % a->step : 0; }
RL_INLINE long place_of(const axis *a, long t) { return a->taps ? (a->first + a->gap * t - a->origin) / a->step : 0; }

static void fill_offsets(layout *l)
{
    const axis *z = &l->axis[0], *y = &l->axis[1], *x = &l->axis[2];
    long volume = z->size * y->size * x->size, *to = l->offset;
    for (long c = 0; c < l->channels; c++)
        for (long i = 0; i < z->taps; i++)
            for (long j = 0; j < y->taps; j++)
                for (long k = 0; k < x->taps; k++) {
                    long phase = (phase_of(z, i) * y->phases + phase_of(y, j)) * x->phases + phase_of(x, k);
                    long place = (place_of(z, i) * y->size + place_of(y, j)) * x->size + place_of(x, k);
                    *to++ = c * l->image + phase * volume + place;
                }
}

/* Columns stay in their order, and positions as far apart as the stride says: for tiles that take the image as A, whose
   elements may lie anywhere. */
static void keep_order(layout *l)
{
    for (int d = 0; d < DIMS; d++)
        l->axis[d].pitch = l->axis[d].step, l->axis[d].step = 1;
}

/* Where each position of a chunk is in an image that was kept in order; NULL: there is no memory. */
static long *places_of(const layout *l)
{
    const axis *a = l->axis;
    long end[DIMS] = {a[0].out, a[1].out, a[2].out};
    end[l->cut] = l->chunk;
    long *places = malloc((size_t)(end[0] * end[1] * end[2] + 1) * sizeof(long)), *to = places;
    if (places)
        for (long z = 0; z < end[0]; z++)
            for (long y = 0; y < end[1]; y++)
                for (long x = 0; x < end[2]; x++)
                    *to++ = (z * a[0].pitch * a[1].size + y * a[1].pitch) * a[2].size + x * a[2].pitch;
    return places;
}

/* In chunks, or ``whole``. */
static int lay_out(layout *l, int whole)
{
    l->direct = 1, l->taps = 1;
    for (int d = 0; d < DIMS; d++) {
        l->direct &= inside(&l->axis[d]);
        l->taps *= l->axis[d].taps;
    }
    l->direct &= l->taps > 0;
    l->cut = l->axis[0].out > 1 ? 0 : l->axis[1].out > 1 ? 1 : 2;
    axis *cut = &l->axis[l->cut];
    long line = 1, area = l->channels;
    for (int d = l->cut + 1; d < DIMS; d++)
        line *= l->axis[d].out, area *= l->axis[d].in;
    l->chunk = most(1, least(RUN / most(1, line), IMAGE / most(1, area * least(cut->step, cut->taps) * cut->pitch)));
    if (whole)
        l->chunk = most(1, cut->out);
    l->chunks = parts(cut->out, l->chunk), l->chunk = parts(cut->out, most(1, l->chunks));
    l->image = 1;
    for (int d = 0; d < DIMS; d++) {
        axis *a = &l->axis[d];
        lay_axis(a, d == l->cut ? l->chunk : a->out, l->direct, d == DIMS - 1 && d != l->cut);
        l->image *= a->phases * a->size;
    }
    l->offset = malloc((size_t)(l->channels * l->taps + 1) * sizeof(long));
    if (!l->offset)
        return RL_NO_MEMORY;
    fill_offsets(l);
    return RL_OK;
}

/* -- the copy of an image ------------------------------------------------------------------------------------------ */

/* The numbers of one part of a row: to[i] = from[begin + step * i] for i in [lead, stop), zeros around them. */
typedef struct {
    long begin, step, lead, stop, size;
} row_part;

static row_part part_of(const axis *x, long begin)
{
    row_part p = {.begin = begin, .step = x->step, .size = x->size};
    p.lead = least(x->size, begin < 0 ? parts(-begin, x->step) : 0);
    p.stop = begin >= x->in ? p.lead : most(p.lead, least(x->size, (x->in - begin - 1) / x->step + 1));
    return p;
}

/* ``room``: numbers that may be read from ``from`` on. Vectors write beyond the row: what follows is written later. */
static void copy_row(const row_part *p, const real *restrict from, long room, real *restrict to)
{
    for (long i = 0; i < p->lead; i++)
        to[i] = 0;
    long i = p->lead;
    if (p->step == 1 && i < p->stop) {
        memcpy(to + i, from + p->begin + i, (size_t)(p->stop - i) * sizeof(real)), i = p->stop;
    } else if (p->step == 2) {
        for (const real *at; i < p->stop && p->begin + 2 * (i + LANES) <= room; i += LANES)
            at = from + p->begin + 2 * i, *(vec *)(to + i) = EVEN(*(const vec *)at, *(const vec *)(at + LANES));
    }
    for (; i < p->stop; i++)
        to[i] = from[p->begin + p->step * i];
    for (i = p->stop; i < p->size; i++)
        to[i] = 0;
}

/* Rows of part (r, s, t) of one channel; parts are volume apart. */
static void copy_channel(const layout *l, const real *from, long first, real *to)
{
    const axis *z = &l->axis[0], *y = &l->axis[1], *x = &l->axis[2];
    long room = l->source_end - (from - l->source);
    long z_origin = z->origin + (l->cut == 0 ? first * z->step * z->pitch : 0);
    long y_origin = y->origin + (l->cut == 1 ? first * y->step * y->pitch : 0);
    long x_origin = x->origin + (l->cut == 2 ? first * x->step * x->pitch : 0);
    for (long r = 0; r < z->phases; r++)
        for (long s = 0; s < y->phases; s++)
            for (long t = 0; t < x->phases; t++) {
                row_part part = part_of(x, x_origin + t);
                for (long i = 0; i < z->size; i++)
                    for (long j = 0; j < y->size; j++, to += x->size) {
                        long at_z = z_origin + r + i * z->step, at_y = y_origin + s + j * y->step;
                        long at = (at_z * y->in + at_y) * x->in;
                        if (at_z < 0 || at_z >= z->in || at_y < 0 || at_y >= y->in)
                            memset(to, 0, (size_t)x->size * sizeof(real));
                        else
                            copy_row(&part, from + at, room - at, to);
                    }
            }
}

/* How much scratch memory ``spread`` takes for so many channels; vectors at the end of a run reach beyond it. */
static long spread_size(const layout *l, long channels) { return channels * l->image + l->axis[2].size + 2 * COLS; }

/* What chunk ``c`` of one group of an image reads, from ``channel`` on: the copy in ``to``, or the source itself. */
static const real *spread(const layout *l, long image, long group, long channel, long channels, long c, real *to)
{
    long volume = l->axis[0].in * l->axis[1].in * l->axis[2].in;
    long begin = ((image * l->groups + group) * l->channels + channel) * volume, first = c * l->chunk;
    const real *from = l->source + begin;
    if (l->direct) {
        long skip = first * l->axis[l->cut].pitch * (l->cut < 1 ? l->axis[1].in : 1) * (l->cut < 2 ? l->axis[2].in : 1);
        if (begin + channels * volume + skip + 2 * COLS <= l->source_end)
            return from + skip;
        memcpy(to, from, (size_t)(channels * volume) * sizeof(real)); /* where a vector would reach beyond the source */
        memset(to + channels * volume, 0, (size_t)(spread_size(l, channels) - channels * volume) * sizeof(real));
        return to + skip;
    }
    for (long i = 0; i < channels; i++)
        copy_channel(l, from + i * volume, first, to + i * l->image);
    memset(to + channels * l->image, 0, (size_t)(spread_size(l, 0)) * sizeof(real));
    return to;
}

static long chunk_positions(const layout *l, long chunk)
{
    long count = least(l->chunk, l->axis[l->cut].out - chunk * l->chunk);
    for (int d = l->cut + 1; d < DIMS; d++)
        count *= l->axis[d].out;
    return count;
}

/* -- columns of several images ------------------------------------------------------------------------------------- */

/* What the taps of all channels (rows) meet at all positions of some images, as strips for the tiles of gemm.h. */
typedef struct {
    const layout *l;
    long group, first, images; /* which images */
    long positions, all, wide; /* of one image, of all of them, and those in whole vectors */
    long rows, some;           /* channels * taps; how many are made at once */
    real *strips;
    int out_of_memory;
} columns;

RL_INLINE long line_of(const columns *c) { return c->wide + LANES; } /* vectors reach beyond the last position */

static columns columns_of(const layout *l, long images)
{
    columns c = {.l = l, .images = images, .positions = l->axis[0].out * l->axis[1].out * l->axis[2].out};
    c.all = images * c.positions, c.wide = parts(c.all, LANES) * LANES, c.rows = l->channels * l->taps;
    c.some = l->taps * parts(RL_PIECE, l->taps * c.wide);
    return c;
}

/* Row i of a chunk of positions in the copy of an image. */
RL_INLINE long row_place(const layout *l, long i)
{
    return (l->cut ? i : i / l->axis[1].out * l->axis[1].size + i % l->axis[1].out) * l->axis[2].size;
}

/* Rows [begin, end), line_of(c) apart. */
static void fill_lines(const columns *c, long begin, long end, real *copy, real *to)
{
    const layout *l = c->l;
    for (long i = begin; i < end;) {
        long tap = i % l->taps, taps = least(l->taps - tap, end - i), place = 0;
        for (long n = 0; n < c->images; n++)
            for (long chunk = 0; chunk < l->chunks; chunk++) {
                const real *image = spread(l, c->first + n, c->group, i / l->taps, 1, chunk, copy);
                long some = chunk_positions(l, chunk), width = l->cut == 2 ? some : l->axis[2].out;
                for (long t = 0; t < taps; t++) {
                    real *row = to + t * line_of(c) + place;
                    for (long r = 0; r * width < some; r++, row += width) {
                        const real *from = image + l->offset[tap + t] + row_place(l, r);
                        for (long j = 0; j < width; j += LANES) /* vectors reach into what comes next */
                            *(vec *)(row + j) = *(const vec *)(from + j);
                    }
                }
                place += some;
            }
        for (long t = 0; t < taps; t++, to += line_of(c))
            memset(to + c->all, 0, (size_t)(c->wide - c->all) * sizeof(real));
        i += taps;
    }
}

static void fill_strips(void *context, long begin, long end)
{
    columns *c = context;
    real *lines = rl_scratch((size_t)(c->some * line_of(c) + spread_size(c->l, 1)) * sizeof(real));
    if (!lines) {
        c->out_of_memory = 1;
        return;
    }
    for (long i = begin; i < end; i += c->some) {
        long rows = least(c->some, end - i);
        fill_lines(c, i, i + rows, lines + c->some * line_of(c), lines);
        for (long s = 0; s * COLS < c->wide; s++)
            pack_strip(rows, strip_width(c->wide, s), (matrix){lines + strip_begin(c->wide, s), line_of(c), 1},
                       c->strips + (s * c->rows + i) * COLS);
    }
}

static int make_columns(columns *c)
{
    rl_parallel(fill_strips, c, c->rows, c->some);
    return c->out_of_memory;
}

/* ``to`` = A times strips [first, last). From ROWS rows of A to the next is ``next``. Where all of the strips stay in the
   second-level cache a few rows are read to their ends; else it is a slice of the strips that stays, for all rows. */
static void times_columns(const columns *c, long first, long last, long rows, matrix a, long next, target to)
{
    if (rows > ROWS && c->rows * (last - first) * COLS <= CACHED) {
        for (long i = 0; i < rows; i += ROWS, a.at += next)
            times_columns(c, first, last, least(ROWS, rows - i), a, next, target_part(to, i, 0));
        return;
    }
    for (long p = 0; p < c->rows; p += SLICE, to.add = 1, to.row_bias = NULL)
        for (long s = first; s < last; s++)
            for (long i = 0; i < rows; i += ROWS) {
                operands o = {.k = least(SLICE, c->rows - p), .a = a.at + i / ROWS * next + p * a.col, .a_row = a.row,
                              .a_step = a.col, .b = c->strips + (s * c->rows + p) * COLS, .b_row = COLS};
                tile(least(ROWS, rows - i), strip_width(c->wide, s), &o,
                     target_part(to, i, strip_begin(c->wide, s) - strip_begin(c->wide, first)));
            }
}

/* How many images have so many columns as are made at once. */
static long images_at_once(const layout *l, long reals)
{
    long positions = l->axis[0].out * l->axis[1].out * l->axis[2].out;
    long images = most(1, most(COLS, reals / most(1, l->channels * l->taps)) / positions);
    return parts(l->images, parts(l->images, images));
}

/* -- outputs from an image ----------------------------------------------------------------------------------------- */

typedef struct {
    layout l;
    const real *weights, *bias; /* weights are (groups, outputs, channels * taps) */
    long *at;                   /* 0, 1, 2, …: where those of an output are; or where positions are */
    real *packed;               /* weights in strips */
    real *result;
    long outputs; /* channels of the result in a group */
    long volume, stride[DIMS]; /* the result's channels, and its positions, are so far apart */
    int out_of_memory;
} forward;

/* Rows of a run to their places, without what lies between them. */
static void place_rows(const forward *f, const real *run, long chunk, real *to)
{
    const axis *a = f->l.axis;
    long begin[DIMS] = {0}, end[DIMS] = {a[0].out, a[1].out, a[2].out};
    begin[f->l.cut] = chunk * f->l.chunk;
    end[f->l.cut] = least(end[f->l.cut], begin[f->l.cut] + f->l.chunk);
    for (long z = begin[0]; z < end[0]; z++)
        for (long y = begin[1]; y < end[1]; y++) {
            const real *restrict from = run + ((z - begin[0]) * a[1].size + y - begin[1]) * a[2].size;
            real *restrict row = to + z * f->stride[0] + y * f->stride[1] + begin[2] * f->stride[2];
            long wide = end[2] - begin[2], step = f->stride[2];
            if (step == 1)
                memcpy(row, from, (size_t)wide * sizeof(real));
            else
                for (long x = 0; x < wide; x++)
                    row[x * step] = from[x];
        }
}

/* How far a chunk's last position is from its first one, plus one. */
static long run_length(const layout *l, long chunk)
{
    const axis *a = l->axis;
    long last[DIMS] = {a[0].out - 1, a[1].out - 1, a[2].out - 1};
    last[l->cut] = least(l->chunk, a[l->cut].out - chunk * l->chunk) - 1;
    return (last[0] * a[1].size + last[1]) * a[2].size + last[2] + 1;
}

/* The run of a single output, as in a depthwise convolution: so few taps that to call a tile would take as long. */
static void one_output(const real *image, const long *offset, const real *weights, long k, const real *bias, long run,
                       real *to)
{
    for (long j = 0; j < run; j += COLS) {
        vec sum[VECS] = {0};
        for (long p = 0; p < k; p++)
            for (int i = 0; i < VECS; i++)
                sum[i] += weights[p] * *(const vec *)(image + offset[p] + j + i * LANES);
        for (int i = 0; i < VECS; i++) {
            if (bias)
                sum[i] += *bias;
            *(vec *)(to + j + i * LANES) = sum[i];
        }
    }
}

static void forward_pieces(void *context, long begin, long end)
{
    forward *f = context;
    const layout *l = &f->l;
    long most_wide = parts(run_length(l, 0), COLS) * COLS, k = l->channels * l->taps, row[ROWS];
    long copy_size = parts(spread_size(l, l->channels), LANES) * LANES;
    real *copy = rl_scratch((size_t)(copy_size + ROWS * most_wide) * sizeof(real)), *aside = copy + copy_size;
    if (!copy) {
        f->out_of_memory = 1;
        return;
    }
    count(row, ROWS, k);
    for (long piece = begin; piece < end; piece++) {
        long chunk = piece % l->chunks, n = piece / l->chunks / l->groups, g = piece / l->chunks % l->groups;
        const real *image = k ? spread(l, n, g, 0, l->channels, chunk, copy) : copy;
        long run = run_length(l, chunk), wide = parts(run, LANES) * LANES;
        for (long i = 0; i < f->outputs; i += ROWS) {
            long rows = least(ROWS, f->outputs - i), channel = g * f->outputs + i;
            const real *bias = f->bias ? f->bias + channel : NULL, *weights = f->weights + channel * k;
            if (f->outputs == 1 && k && k <= SUMMED)
                one_output(image, l->offset, weights, k, bias, run, aside);
            else
                for (long s = 0, j = 0; j < wide; j = strip_begin(wide, ++s))
                    for (long p = 0; p == 0 || p < k; p += SUMMED) {
                        operands o = {.k = least(SUMMED, k - p), .a = weights + p, .row = row, .at = f->at,
                                      .b = image + j, .line = l->offset + p};
                        target to = {aside + j, wide, 1, p > 0, p ? NULL : bias, NULL};
                        tile(rows, strip_width(wide, s), &o, to);
                    }
            for (long r = 0; r < rows; r++)
                place_rows(f, aside + r * wide, chunk, f->result + ((n * l->groups) * f->outputs + channel + r) * f->volume);
        }
    }
}

/* Weights one after the other. */
static int in_order(forward *f)
{
    long k = f->l.channels * f->l.taps;
    f->at = malloc((size_t)(k + f->l.taps + 1) * sizeof(long)); /* room for the taps of one channel where there is none */
    if (!f->at)
        return RL_NO_MEMORY;
    count(f->at, k, 1);
    return RL_OK;
}

static int run_forward(forward *f)
{
    layout *l = &f->l;
    long k = l->channels * l->taps;
    double work = (double)f->outputs * (double)k * (double)run_length(l, 0);
    rl_parallel(forward_pieces, f, l->images * l->groups * l->chunks, most(1, (long)(WORTH / (work + 1))));
    return f->out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* -- positions down, outputs across ---------------------------------------------------------------------------------- */

/* y' (positions x outputs) = image (positions x taps) w' (taps x outputs), turned at the end. The image is A and read
   wherever its numbers lie: it needs no parts for a stride, and nothing is computed between its rows. */

/* Jobs are strips of all groups' weights. */
static void pack_weights(void *context, long begin, long end)
{
    const forward *f = context;
    long k = f->l.channels * f->l.taps, strips = parts(f->outputs, COLS);
    for (long i = begin; i < end; i++) {
        long s = i % strips;
        matrix w = {f->weights + (i / strips * f->outputs + strip_begin(f->outputs, s)) * k, 1, k};
        pack_strip(k, strip_width(f->outputs, s), w, f->packed + i * k * COLS);
    }
}

static void across_pieces(void *context, long begin, long end)
{
    forward *f = context;
    const layout *l = &f->l;
    long all = chunk_positions(l, 0), strips = parts(f->outputs, COLS), line = strips * COLS;
    long k = l->channels * l->taps, step[SLICE];
    real *aside = rl_scratch((size_t)(all * line + spread_size(l, l->channels)) * sizeof(real)), *copy = aside + all * line;
    if (!aside) {
        f->out_of_memory = 1;
        return;
    }
    count(step, SLICE, COLS);
    for (long piece = begin; piece < end; piece++) {
        long chunk = piece % l->chunks, image = piece / l->chunks, group = image % l->groups;
        long positions = chunk_positions(l, chunk);
        const real *from = spread(l, image / l->groups, group, 0, l->channels, chunk, copy);
        target to = {aside, line, 1, 0, NULL, f->bias ? f->bias + group * f->outputs : NULL};
        for (long p = 0; p < k; p += SLICE, to.add = 1, to.col_bias = NULL)
            for (long first = 0; first < positions; first += SOME)
                for (long s = 0; s < strips; s++)
                    for (long i = first; i < least(positions, first + SOME); i += ROWS) {
                        operands o = {.k = least(SLICE, k - p), .a = from, .row = f->at + i, .at = l->offset + p,
                                      .b = f->packed + ((group * strips + s) * k + p) * COLS, .line = step};
                        tile(least(ROWS, positions - i), strip_width(f->outputs, s), &o,
                             target_part(to, i, strip_begin(f->outputs, s)));
                    }
        transpose(positions, f->outputs, aside, line, f->result + image * f->outputs * f->volume + chunk * all, f->volume);
    }
}

static int run_across(forward *f)
{
    layout *l = &f->l;
    free(l->offset), keep_order(l);
    if (lay_out(l, 0))
        return RL_NO_MEMORY;
    long k = l->channels * l->taps, all = l->groups * parts(f->outputs, COLS);
    double work = (double)f->outputs * (double)k * (double)chunk_positions(l, 0);
    f->packed = malloc((size_t)(all * COLS * k) * sizeof(real)), f->at = places_of(l);
    if (f->packed && f->at) {
        rl_parallel(pack_weights, f, all, most(1, RL_PIECE / (COLS * k)));
        rl_parallel(across_pieces, f, l->images * l->groups * l->chunks, most(1, (long)(WORTH / (work + 1))));
    }
    free(f->packed);
    return f->out_of_memory || !f->packed || !f->at ? RL_NO_MEMORY : RL_OK;
}

/* Are there so many weights that they should not be read for each small image? */
static int has_many_weights(const forward *f)
{
    const layout *l = &f->l;
    long positions = l->axis[0].out * l->axis[1].out * l->axis[2].out, k = l->channels * l->taps;
    return l->images > 1 && positions <= FEW && f->outputs >= 4 * GATHERED && f->outputs * k > IMAGE;
}

/* Does it take less to turn the result than to cut an image into parts, and do outputs fill vectors? */
static int is_across(const forward *f)
{
    const layout *l = &f->l;
    const axis *a = l->axis;
    long positions = a[0].out * a[1].out * a[2].out, full = parts(f->outputs, LANES) * LANES;
    return a[0].step * a[1].step * a[2].step > 1 && f->outputs * positions < l->channels * l->image * l->chunks &&
           full > LANES && full - f->outputs <= f->outputs / 8 && !has_many_weights(f);
}

/* -- outputs from columns ------------------------------------------------------------------------------------------ */

typedef struct {
    const forward *f;
    columns c;
    long blocks, strips; /* of strips; strips in a block */
    int out_of_memory;
} column_outputs;

/* Jobs are (some outputs, block of strips). */
static void output_blocks(void *context, long begin, long end)
{
    column_outputs *o = context;
    const forward *f = o->f;
    const columns *c = &o->c;
    long line = o->strips * COLS, outputs = f->l.groups * f->outputs;
    real *aside = rl_scratch((size_t)(SOME_ROWS * line) * sizeof(real));
    if (!aside) {
        o->out_of_memory = 1;
        return;
    }
    for (long job = begin; job < end; job++) {
        long first = job % o->blocks * o->strips, last = least(first + o->strips, parts(c->wide, COLS));
        long i = job / o->blocks * SOME_ROWS, rows = least(SOME_ROWS, f->outputs - i), channel = c->group * f->outputs + i;
        long start = strip_begin(c->wide, first), stop = least(c->all, strip_begin(c->wide, last));
        target to = {aside, line, 1, 0, f->bias ? f->bias + channel : NULL, NULL};
        times_columns(c, first, last, rows, (matrix){f->weights + channel * c->rows, c->rows, 1}, ROWS * c->rows, to);
        for (long r = 0; r < rows; r++)
            for (long j = start, some; j < stop; j += some) {
                long n = c->first + j / c->positions, at = j % c->positions;
                some = least(c->positions - at, stop - j);
                memcpy(f->result + (n * outputs + channel + r) * c->positions + at, aside + r * line + j - start,
                       (size_t)some * sizeof(real));
            }
    }
}

/* Does it cost less to make columns than to compute what is dropped of runs? */
static int few_positions(const forward *f)
{
    const layout *l = &f->l;
    const axis *a = l->axis;
    long positions = a[0].out * a[1].out * a[2].out, k = l->channels * l->taps, computed = 0;
    for (long chunk = 0; chunk < l->chunks; chunk++)
        computed += parts(run_length(l, chunk), LANES) * LANES;
    return k && (f->outputs * (computed - positions) > GATHERED * positions || has_many_weights(f));
}

static int run_columns(const forward *f)
{
    const layout *l = &f->l;
    long images = images_at_once(l, COLUMNS), row_blocks = parts(f->outputs, SOME_ROWS);
    column_outputs o = {.f = f, .c = columns_of(l, images)};
    o.c.strips = malloc((size_t)(o.c.rows * (o.c.wide + COLS)) * sizeof(real));
    if (!o.c.strips)
        return RL_NO_MEMORY;
    real *strips = o.c.strips;
    for (long group = 0; group < l->groups; group++)
        for (long first = 0; first < l->images; first += images) {
            o.c = columns_of(l, least(images, l->images - first));
            o.c.strips = strips, o.c.group = group, o.c.first = first;
            long all = parts(o.c.wide, COLS);
            o.strips = parts(all, least(all, parts(ENOUGH, row_blocks))), o.blocks = parts(all, o.strips);
            o.out_of_memory |= make_columns(&o.c);
            if (!o.out_of_memory)
                rl_parallel(output_blocks, &o, row_blocks * o.blocks, 1);
        }
    free(strips);
    return o.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* -- the three kernels --------------------------------------------------------------------------------------------- */

/* The whole numbers that all three take. */
typedef struct {
    long images, groups, channels, outputs; /* of a group */
    const long *in, *out, *kernel, *stride, *padding, *dilation;
} sizes;

static sizes sizes_of(const rl_call *c)
{
    const long *i = c->integer;
    return (sizes){i[0], i[1], i[2], i[3], i + 4, i + 7, i + 10, i + 13, i + 16, i + 19};
}

static layout layout_of(const sizes *s, const real *source, long size)
{
    layout l = {.images = s->images, .groups = s->groups, .channels = s->channels, .source = source, .source_end = size};
    for (int d = 0; d < DIMS; d++)
        l.axis[d] = (axis){.in = s->in[d], .out = s->out[d], .taps = s->kernel[d], .step = s->stride[d], .pitch = 1,
                           .first = -s->padding[d], .gap = s->dilation[d]};
    return l;
}

/* Is it for winograd.h? */
static int is_small(const sizes *s)
{
    int plane = s->groups == 1 && s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1;
    for (int d = 1; d < DIMS; d++)
        plane &= s->kernel[d] == 3 && s->stride[d] == 1 && s->dilation[d] == 1 && s->padding[d] <= 2;
    return plane && winograd_serves(s->images, s->channels, s->outputs, s->out[1], s->out[2]);
}

/* conv(x, w, bias, y, sizes): all outputs of all images. */
static int conv(const rl_call *c)
{
    sizes s = sizes_of(c);
    if (is_small(&s)) {
        winograd v = {.images = s.images, .channels = s.channels, .outputs = s.outputs, .height = s.in[1], .width = s.in[2],
                      .out_height = s.out[1], .out_width = s.out[2], .top = s.padding[1], .left = s.padding[2],
                      .source = c->array[0], .weights = c->array[1], .bias = c->array[2], .result = c->array[3],
                      .row = s.channels * TAPS, .col = TAPS};
        if (run_winograd(&v) || !v.bad)
            return v.status;
    }
    forward f = {.l = layout_of(&s, c->array[0], c->size[0]), .weights = c->array[1], .bias = c->array[2],
                 .result = c->array[3], .outputs = s.outputs};
    if (lay_out(&f.l, 0))
        return RL_NO_MEMORY;
    f.stride[2] = 1, f.stride[1] = s.out[2], f.stride[0] = s.out[1] * s.out[2], f.volume = s.out[0] * f.stride[0];
    int status = is_across(&f)        ? run_across(&f)
                 : few_positions(&f)  ? run_columns(&f)
                 : in_order(&f)       ? RL_NO_MEMORY
                                      : run_forward(&f);
    free(f.at), free(f.l.offset);
    return status;
}

/* The taps and positions of the input's gradient with (position + padding) % stride == rest, in one dimension; the first
   such position, and which taps they are: the first, and how far apart. */
static axis phase_axis(const sizes *s, int d, long rest, long *position, long *tap, long *apart)
{
    long t = s->stride[d], gap = s->dilation[d], k = s->kernel[d], p = s->padding[d];
    axis a = {.in = s->out[d], .step = 1, .pitch = 1};
    *tap = 0;
    while (*tap < k && gap * *tap % t != rest)
        ++*tap;
    *apart = 1;
    while (gap * *apart % t)
        ++*apart;
    a.taps = *tap < k ? (k - *tap - 1) / *apart + 1 : 0;
    long first = most(0, parts(p - rest, t)); /* position + padding = stride * i + rest */
    *position = t * first + rest - p;
    a.out = *position < s->in[d] ? (s->in[d] - *position - 1) / t + 1 : 0;
    a.first = first + (rest - gap * *tap) / t;
    a.gap = -(gap * *apart / t);
    return a;
}

/* The weights that one part of the input's gradient meets, as those of a convolution from outputs to channels. */
typedef struct {
    const sizes *s;
    const real *from;
    real *to;
    const long *tap; /* where each tap that is met is in a kernel */
    long taps;
} turned_weights;

static void turn_weights(void *context, long begin, long end)
{
    const turned_weights *t = context;
    const long *kernel = t->s->kernel, all = kernel[0] * kernel[1] * kernel[2];
    for (long first = begin; first < end; first += TURNED) /* some channels at once: they lie together */
        for (long o = 0; o < t->s->outputs; o++)
            for (long channel = first; channel < least(end, first + TURNED); channel++) {
                long group = channel / t->s->channels, c = channel % t->s->channels;
                const real *from = t->from + ((group * t->s->outputs + o) * t->s->channels + c) * all;
                real *to = t->to + (channel * t->s->outputs + o) * t->taps;
                for (long i = 0; i < t->taps; i++)
                    to[i] = from[t->tap[i]];
            }
}

/* Runs read the weights often: they are turned first. ``at`` says where the taps are in a kernel. */
static int run_turned(forward *f, const sizes *s, const real *weights)
{
    long all = s->groups * s->channels, size = s->outputs * f->l.taps;
    turned_weights t = {.s = s, .from = weights, .tap = f->at, .taps = f->l.taps};
    f->weights = t.to = malloc((size_t)(all * size + 1) * sizeof(real));
    if (!t.to)
        return RL_NO_MEMORY;
    rl_parallel(turn_weights, &t, all, most(1, RL_PIECE / most(1, size)));
    count(f->at, size, 1);
    int status = run_forward(f);
    free(t.to);
    return status;
}

/* One part of the input's gradient. */
static int conv_input_phase(const rl_call *c, const sizes *s, const long rest[DIMS])
{
    forward f = {.bias = c->array[2], .result = c->array[3], .outputs = s->channels};
    layout *l = &f.l;
    *l = (layout){.images = s->images, .groups = s->groups, .channels = s->outputs,
                  .source = c->array[0], .source_end = c->size[0]};
    long position, first[DIMS], apart[DIMS], places[DIMS] = {s->in[1] * s->in[2], s->in[2], 1};
    for (int d = 0; d < DIMS; d++) {
        l->axis[d] = phase_axis(s, d, rest[d], &position, &first[d], &apart[d]);
        f.result += position * places[d], f.stride[d] = places[d] * s->stride[d];
        if (!l->axis[d].out)
            return RL_OK;
    }
    f.volume = s->in[0] * places[0];
    if (lay_out(l, 0))
        return RL_NO_MEMORY;
    int status = in_order(&f);
    if (!status) {
        const axis *z = &l->axis[0], *y = &l->axis[1], *x = &l->axis[2];
        for (long i = 0; i < z->taps; i++)
            for (long j = 0; j < y->taps; j++)
                for (long k = 0; k < x->taps; k++)
                    f.at[(i * y->taps + j) * x->taps + k] =
                        ((first[0] + i * apart[0]) * s->kernel[1] + first[1] + j * apart[1]) * s->kernel[2] + first[2] +
                        k * apart[2];
        status = run_turned(&f, s, c->array[1]);
    }
    free(f.at), free(l->offset);
    return status;
}

/* The same of small images: what each tap of each channel adds to all positions is a product of weights and columns of g.
   Those are then added to where the taps read. */
typedef struct {
    const sizes *s;
    layout l;         /* of the image that is the result, in one chunk */
    columns g;
    const real *weights, *bias;
    real *result;
    long some;        /* channels of a job */
    int out_of_memory;
} scattered;

/* plane += row, at the places that a tap reads; ``mask`` is for the last vector of a row of positions. */
static void add_tap(const layout *l, const real *row, whole_vec mask, real *plane)
{
    const axis *a = l->axis;
    for (long z = 0; z < a[0].out; z++)
        for (long y = 0; y < a[1].out; y++, row += a[2].out) {
            real *to = plane + (z * a[1].size + y) * a[2].size;
            long j = 0;
            for (; j + LANES < a[2].out; j += LANES)
                *(vec *)(to + j) += *(const vec *)(row + j);
            *(vec *)(to + j) += (vec)(*(const whole_vec *)(row + j) & mask);
        }
}

/* What ``copy_channel`` does, back. */
static void copy_back(const layout *l, const real *plane, real bias, real *to)
{
    const axis *z = &l->axis[0], *y = &l->axis[1], *x = &l->axis[2];
    for (long i = 0; i < z->in * y->in * x->in; i++)
        to[i] = bias; /* where no tap reads */
    for (long r = 0; r < z->phases; r++)
        for (long s = 0; s < y->phases; s++)
            for (long t = 0; t < x->phases; t++) {
                row_part part = part_of(x, x->origin + t);
                for (long i = 0; i < z->size; i++)
                    for (long j = 0; j < y->size; j++, plane += x->size) {
                        long at_z = z->origin + r + i * z->step, at_y = y->origin + s + j * y->step;
                        real *row = to + (at_z * y->in + at_y) * x->in + part.begin;
                        if (at_z >= 0 && at_z < z->in && at_y >= 0 && at_y < y->in)
                            for (long k = part.lead; k < part.stop; k++)
                                row[k * x->step] += plane[k];
                    }
            }
}

/* Jobs are some channels each. */
static void scatter_channels(void *context, long begin, long end)
{
    scattered *d = context;
    const layout *l = &d->l;
    const columns *g = &d->g;
    long rows = d->some * l->taps, packed_size = parts(rows, ROWS) * ROWS * g->rows, line = line_of(g);
    long volume = l->axis[0].in * l->axis[1].in * l->axis[2].in;
    real *packed = rl_scratch((size_t)(packed_size + rows * line + spread_size(l, 1)) * sizeof(real));
    if (!packed) {
        d->out_of_memory = 1;
        return;
    }
    real *aside = packed + packed_size, *plane = aside + rows * line;
    whole_vec mask;
    for (int i = 0; i < LANES; i++)
        mask[i] = i <= (l->axis[2].out - 1) % LANES ? -1 : 0;
    for (long job = begin; job < end; job++) {
        long first = job * d->some, channels = least(d->some, d->s->channels - first), all = d->s->channels * l->taps;
        matrix a = {d->weights + g->group * g->rows * all + first * l->taps, 1, all};
        pack_rows(channels * l->taps, g->rows, a, packed);
        times_columns(g, 0, parts(g->wide, COLS), channels * l->taps, (matrix){packed, 1, ROWS}, ROWS * g->rows,
                      (target){aside, line, 1, 0, NULL, NULL});
        for (long c = 0; c < channels; c++)
            for (long n = 0; n < g->images; n++) {
                long channel = g->group * d->s->channels + first + c;
                memset(plane, 0, (size_t)spread_size(l, 1) * sizeof(real));
                for (long t = 0; t < l->taps; t++)
                    add_tap(l, aside + (c * l->taps + t) * line + n * g->positions, mask, plane + l->offset[t]);
                copy_back(l, plane, d->bias ? d->bias[channel] : 0,
                          d->result + ((g->first + n) * l->groups * d->s->channels + channel) * volume);
            }
    }
}

/* Are the products for g's positions, with what it takes to add them up, fewer than those of runs? Or are there so many
   weights that they should not be read for each image? */
static int is_scattered(const sizes *s)
{
    long positions = s->out[0] * s->out[1] * s->out[2], run = 1;
    for (int d = 0; d < DIMS; d++)
        run *= parts(s->in[d], s->stride[d]) + (d == 2 ? (s->kernel[d] - 1) * s->dilation[d] / s->stride[d] : 0);
    long k = s->outputs * s->kernel[0] * s->kernel[1] * s->kernel[2];
    return (s->outputs + GATHERED) * positions < s->outputs * parts(run, LANES) * LANES ||
           (s->images > 1 && positions <= FEW && s->outputs >= 4 * GATHERED && s->channels * k > IMAGE);
}

static int conv_input_scattered(const rl_call *c, const sizes *s)
{
    long positions = s->out[0] * s->out[1] * s->out[2];
    scattered d = {.s = s, .l = layout_of(s, c->array[3], c->size[3]), .weights = c->array[1], .bias = c->array[2],
                   .result = c->array[3]};
    layout g = {.images = s->images, .groups = s->groups, .channels = s->outputs, .source = c->array[0],
                .source_end = c->size[0]};
    for (int i = 0; i < DIMS; i++)
        g.axis[i] = (axis){.in = 1, .out = 1, .taps = 1, .step = 1, .pitch = 1, .gap = 1};
    g.axis[2].in = g.axis[2].out = positions;
    d.l.channels = 1; /* each has a plane of its own */
    int status = lay_out(&g, 0) || lay_out(&d.l, 1) ? RL_NO_MEMORY : RL_OK;
    long images = images_at_once(&g, COLUMNS);
    d.g = columns_of(&g, images), d.some = parts(SOME_ROWS - ROWS + 1, d.l.taps);
    real *strips = malloc((size_t)(d.g.rows * (d.g.wide + COLS)) * sizeof(real));
    if (!strips)
        status = RL_NO_MEMORY;
    for (long group = 0; group < s->groups && !status; group++)
        for (long first = 0; first < s->images && !status; first += images) {
            d.g = columns_of(&g, least(images, s->images - first));
            d.g.strips = strips, d.g.group = group, d.g.first = first;
            if (!make_columns(&d.g))
                rl_parallel(scatter_channels, &d, parts(s->channels, d.some), 1);
            if (d.g.out_of_memory || d.out_of_memory)
                status = RL_NO_MEMORY;
        }
    free(strips), free(g.offset), free(d.l.offset);
    return status;
}

/* The same of one output and one channel in a group, with a stride of 2 along rows: even and odd positions of a row are two
   sums of products, whose elements are then written in turn. */
typedef struct {
    long from, tap; /* where it begins in the copy of g, and in a kernel */
} term;

typedef struct {
    const sizes *s;
    const real *g, *weights, *bias;
    real *result;
    long left, line; /* zeros before a row of g's copy; how far its rows are apart */
    term *terms;     /* of each row: those of its even positions, those of the odd ones */
    long *ends;
    int out_of_memory;
} in_turn;

/* The element of g whose tap is at this position, or -1. */
static long met_by(const sizes *s, int d, long position, long tap)
{
    long at = position + s->padding[d] - tap * s->dilation[d];
    return at < 0 || at % s->stride[d] || at / s->stride[d] >= s->out[d] ? -1 : at / s->stride[d];
}

static void find_terms(in_turn *h, const axis half[2], const long first[2], const long apart[2])
{
    const sizes *s = h->s;
    term *to = h->terms;
    for (long row = 0; row < s->in[0] * s->in[1]; row++)
        for (int odd = 0; odd < 2; odd++, h->ends[2 * row + odd - 1] = to - h->terms)
            for (long i = 0; i < s->kernel[0]; i++)
                for (long j = 0; j < s->kernel[1]; j++) {
                    long z = met_by(s, 0, row / s->in[1], i), y = met_by(s, 1, row % s->in[1], j);
                    for (long t = 0; t < half[odd].taps && z >= 0 && y >= 0; t++)
                        *to++ = (term){(z * s->out[1] + y) * h->line + h->left + half[odd].first + half[odd].gap * t,
                                       (i * s->kernel[1] + j) * s->kernel[2] + first[odd] + apart[odd] * t};
                }
}

static void in_turn_pieces(void *context, long begin, long end)
{
    in_turn *h = context;
    const sizes *s = h->s;
    long rows = s->in[0] * s->in[1], width = s->in[2], taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    long g_rows = s->out[0] * s->out[1], wide = s->out[2], copy_size = (g_rows + 1) * h->line + 2 * LANES;
    real *copy = rl_scratch((size_t)(copy_size + width + 2 * LANES) * sizeof(real)), *aside = copy + copy_size;
    if (!copy) {
        h->out_of_memory = 1;
        return;
    }
    memset(copy, 0, (size_t)copy_size * sizeof(real));
    for (long plane = begin; plane < end; plane++) {
        const real *weights = h->weights + plane % s->groups * taps;
        real bias = h->bias ? h->bias[plane % s->groups] : 0, *result = h->result + plane * rows * width;
        for (long r = 0; r < g_rows; r++)
            memcpy(copy + r * h->line + h->left, h->g + (plane * g_rows + r) * wide, (size_t)wide * sizeof(real));
        for (long r = 0; r < rows; r++) {
            /* beyond a row: what follows is written later; nothing follows the last ones */
            int apart = (rows - r) * width < parts(width, 2 * LANES) * 2 * LANES;
            real *to = apart ? aside : result + r * width;
            const term *even = h->terms + (r ? h->ends[2 * r - 1] : 0), *odd = h->terms + h->ends[2 * r];
            const term *last = h->terms + h->ends[2 * r + 1];
            for (long j = 0; 2 * j < width; j += LANES) {
                vec a = {0}, b = {0};
                for (const term *t = even; t < odd; t++)
                    a += weights[t->tap] * *(const vec *)(copy + t->from + j);
                for (const term *t = odd; t < last; t++)
                    b += weights[t->tap] * *(const vec *)(copy + t->from + j);
                a += bias, b += bias;
                *(vec *)(to + 2 * j) = ZIP(a, b, 0);
                *(vec *)(to + 2 * j + LANES) = ZIP(a, b, LANES / 2);
            }
            if (apart)
                memcpy(result + r * width, aside, (size_t)width * sizeof(real));
        }
    }
}

static int conv_input_in_turn(const rl_call *c, const sizes *s)
{
    in_turn h = {.s = s, .g = c->array[0], .weights = c->array[1], .bias = c->array[2], .result = c->array[3]};
    axis half[2];
    long position, first[2], apart[2], tap, gap, right = s->out[2], taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    for (long rest = 0; rest < 2; rest++) {
        axis a = phase_axis(s, 2, rest, &position, &tap, &gap);
        half[position] = a, first[position] = tap, apart[position] = gap;
        if (a.taps)
            h.left = most(h.left, -low(&a)), right = most(right, high(&a) + parts(s->in[2], 2));
    }
    h.line = h.left + right;
    h.terms = malloc((size_t)(s->in[0] * s->in[1] * taps + 1) * sizeof(term));
    h.ends = malloc((size_t)(2 * s->in[0] * s->in[1] + 1) * sizeof(long));
    if (h.terms && h.ends) {
        find_terms(&h, half, first, apart);
        rl_parallel(in_turn_pieces, &h, s->images * s->groups, most(1, WORTH / (taps * s->out[0] * s->out[1] * s->out[2] + 1)));
    }
    free(h.terms), free(h.ends);
    return h.out_of_memory || !h.terms || !h.ends ? RL_NO_MEMORY : RL_OK;
}

/* conv_input(g, w, bias, dx, sizes): the transpose of conv in x, which is also transposed convolution. */
static int conv_input(const rl_call *c)
{
    sizes s = sizes_of(c);
    if (is_small(&s)) {
        winograd v = {.images = s.images, .channels = s.outputs, .outputs = s.channels, .height = s.out[1], .width = s.out[2],
                      .out_height = s.in[1], .out_width = s.in[2], .top = 2 - s.padding[1], .left = 2 - s.padding[2],
                      .source = c->array[0], .weights = c->array[1], .bias = c->array[2], .result = c->array[3],
                      .row = TAPS, .col = s.channels * TAPS, .reversed = 1};
        if (run_winograd(&v) || !v.bad)
            return v.status;
    }
    if (s.channels == 1 && s.outputs == 1 && s.stride[2] == 2)
        return conv_input_in_turn(c, &s);
    if (is_scattered(&s))
        return conv_input_scattered(c, &s);
    long rest[DIMS];
    for (rest[0] = 0; rest[0] < s.stride[0]; rest[0]++)
        for (rest[1] = 0; rest[1] < s.stride[1]; rest[1]++)
            for (rest[2] = 0; rest[2] < s.stride[2]; rest[2]++)
                if (conv_input_phase(c, &s, rest))
                    return RL_NO_MEMORY;
    return RL_OK;
}

/* -- the weight's gradient ----------------------------------------------------------------------------------------- */

typedef struct {
    layout l;
    const real *g;
    long outputs, positions; /* channels of g in a group; positions of one of its images */
    long groups, shares, blocks, units; /* shares of the units (chunks of images), blocks of channels */
    real *partial, *result;  /* (shares, groups, channels * taps, wide) and (groups * outputs, channels * taps) */
    long wide;
    long *position;          /* where each position of a chunk is in the copy */
    int out_of_memory;
} weight;

/* One unit's products, added to ``to``. */
static void weight_unit(const weight *w, long unit, long group, long begin, long end, real *strips, real *copy, real *to)
{
    const layout *l = &w->l;
    long chunk = unit % l->chunks, n = unit / l->chunks, some = chunk_positions(l, chunk);
    const real *image = spread(l, n, group, begin, end - begin, chunk, copy);
    const real *g = w->g + (n * w->groups + group) * w->outputs * w->positions + chunk * chunk_positions(l, 0);
    pack_strips(some, w->outputs, (matrix){g, 1, w->positions}, strips);
    long line[RUN + 1];
    long rows = (end - begin) * l->taps;
    for (long p = 0; p < some; p += RUN) {
        long k = least(RUN, some - p);
        count(line, k, COLS);
        for (long i = 0; i < rows; i += ROWS)
            for (long s = 0; s * COLS < w->outputs; s++) {
                operands o = {.k = k, .a = image, .row = l->offset + i, .at = w->position + p,
                              .b = strips + (s * some + p) * COLS, .line = line};
                target c = {to + i * w->wide + strip_begin(w->outputs, s), w->wide, 1, 1, NULL, NULL};
                tile(least(ROWS, rows - i), parts(strip_width(w->outputs, s), LANES) * LANES, &o, c);
            }
    }
}

static void weight_pieces(void *context, long begin, long end)
{
    weight *w = context;
    const layout *l = &w->l;
    long channels = parts(l->channels, w->blocks), strips_size = chunk_positions(l, 0) * w->wide;
    real *strips = rl_scratch((size_t)(strips_size + spread_size(l, channels)) * sizeof(real));
    if (!strips) {
        w->out_of_memory = 1;
        return;
    }
    for (long piece = begin; piece < end; piece++) {
        long block = piece % w->blocks, share = piece / w->blocks % w->shares, group = piece / w->blocks / w->shares;
        long first = block * channels, last = least(l->channels, first + channels);
        if (first >= last)
            continue;
        real *to = w->partial + ((share * w->groups + group) * l->channels + first) * l->taps * w->wide;
        memset(to, 0, (size_t)((last - first) * l->taps * w->wide) * sizeof(real));
        for (long unit = share * w->units / w->shares; unit < (share + 1) * w->units / w->shares; unit++)
            weight_unit(w, unit, group, first, last, strips, strips + strips_size, to);
    }
}

/* The partial sums, added up in their order and transposed; rows are those of all groups. */
static void weight_sums(void *context, long begin, long end)
{
    weight *w = context;
    long rows = w->l.channels * w->l.taps, size = w->groups * rows * w->wide;
    for (long share = 1; share < w->shares; share++) {
        real *total = w->partial;
        const real *more = total + share * size;
        RL_SIMD
        for (long i = begin * w->wide; i < end * w->wide; i++)
            total[i] += more[i];
    }
    for (long i = begin, some; i < end; i += some) {
        long group = i / rows, row = i % rows;
        some = least(rows - row, end - i);
        transpose(some, w->outputs, w->partial + i * w->wide, w->wide, w->result + group * w->outputs * rows + row, rows);
    }
}

/* Of small images, dw (outputs x taps) = g (outputs x positions) columns' (positions x taps). */
typedef struct {
    columns c;
    const real *g;
    real *packed, *result; /* g in groups of ROWS outputs; (outputs, taps) */
    long outputs;
    int add, out_of_memory;
} column_weight;

/* Jobs are groups of ROWS outputs. */
static void pack_gradients(void *context, long begin, long end)
{
    const column_weight *w = context;
    const columns *c = &w->c;
    for (long i = begin * ROWS; i < least(end * ROWS, w->outputs); i += ROWS)
        for (long n = 0; n < c->images; n++) {
            long channel = ((c->first + n) * c->l->groups + c->group) * w->outputs + i;
            pack_rows(least(ROWS, w->outputs - i), c->positions, (matrix){w->g + channel * c->positions, c->positions, 1},
                      w->packed + i * c->all + n * c->positions * ROWS);
        }
}

enum { TAPS_AT_ONCE = 3 * COLS };

/* Jobs are TAPS_AT_ONCE rows of the columns. */
static void weight_columns(void *context, long begin, long end)
{
    column_weight *w = context;
    const columns *c = &w->c;
    real *lines = rl_scratch((size_t)(TAPS_AT_ONCE * (line_of(c) + c->all) + spread_size(c->l, 1)) * sizeof(real));
    if (!lines) {
        w->out_of_memory = 1;
        return;
    }
    real *packed = lines + TAPS_AT_ONCE * line_of(c), *copy = packed + TAPS_AT_ONCE * c->all;
    for (long i = begin * TAPS_AT_ONCE; i < least(end * TAPS_AT_ONCE, c->rows); i += TAPS_AT_ONCE) {
        long rows = least(TAPS_AT_ONCE, c->rows - i);
        fill_lines(c, i, i + rows, copy, lines);
        pack_strips(c->all, rows, (matrix){lines, 1, line_of(c)}, packed);
        target to = {w->result + c->group * w->outputs * c->rows + i, c->rows, 1, w->add, NULL, NULL};
        tiles(w->outputs, rows, c->all, (matrix){w->packed, 1, ROWS}, ROWS * c->all, (strips){packed, c->all, rows}, to);
    }
}

/* Does it cost less to make columns, and to turn them, than to add up the sums of each image and to turn those? */
static int is_short(const sizes *s)
{
    return s->out[0] * s->out[1] * s->out[2] * GATHERED < s->outputs * SHORT;
}

static int run_weight_columns(const layout *l, const rl_call *call, long outputs)
{
    long images = images_at_once(l, SUMMED * l->channels * l->taps);
    column_weight w = {.c = columns_of(l, images), .g = call->array[1], .result = call->array[2], .outputs = outputs};
    w.packed = malloc((size_t)(parts(outputs, ROWS) * ROWS * w.c.all) * sizeof(real));
    if (!w.packed)
        return RL_NO_MEMORY;
    for (long group = 0; group < l->groups; group++)
        for (long first = 0; first < l->images; first += images) {
            w.c = columns_of(l, least(images, l->images - first));
            w.c.group = group, w.c.first = first, w.add = first > 0;
            rl_parallel(pack_gradients, &w, parts(outputs, ROWS), most(1, RL_PIECE / ROWS / w.c.all));
            rl_parallel(weight_columns, &w, parts(w.c.rows, TAPS_AT_ONCE), 1);
        }
    free(w.packed);
    return w.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

static int conv_weight(const rl_call *c)
{
    sizes s = sizes_of(c);
    if (is_small(&s)) {
        winograd v = {.images = s.images, .channels = s.channels, .outputs = s.outputs, .height = s.in[1], .width = s.in[2],
                      .out_height = s.out[1], .out_width = s.out[2], .top = s.padding[1], .left = s.padding[2],
                      .source = c->array[0], .g = c->array[1], .result = c->array[2]};
        if (run_winograd_weight(&v) || !v.bad)
            return v.status;
    }
    weight w = {.l = layout_of(&s, c->array[0], c->size[0]), .g = c->array[1], .result = c->array[2], .outputs = s.outputs,
                .groups = s.groups, .positions = s.out[0] * s.out[1] * s.out[2]};
    layout *l = &w.l;
    if (!is_short(&s))
        keep_order(l);
    if (lay_out(l, 0))
        return RL_NO_MEMORY;
    if (is_short(&s)) {
        int status = run_weight_columns(l, c, s.outputs);
        free(l->offset);
        return status;
    }
    w.wide = parts(s.outputs, COLS) * COLS, w.units = l->images * l->chunks;
    long size = s.groups * l->channels * l->taps * w.wide;
    w.shares = most(1, least(w.units, least(ENOUGH, most(1, PARTIAL / most(1, size)))));
    w.blocks = most(1, least(parts(ENOUGH, w.shares * s.groups), l->channels * l->taps / 64));
    w.partial = malloc((size_t)(w.shares * size) * sizeof(real));
    w.position = places_of(l);
    int status = RL_NO_MEMORY;
    if (w.partial && w.position) {
        rl_parallel(weight_pieces, &w, w.groups * w.shares * w.blocks, 1);
        rl_parallel(weight_sums, &w, w.groups * l->channels * l->taps, parts(rl_rows(w.shares * w.wide), LANES) * LANES);
        status = w.out_of_memory ? RL_NO_MEMORY : RL_OK;
    }
    free(w.partial), free(w.position), free(l->offset);
    return status;
}

/* -- one filter for each channel ----------------------------------------------------------------------------------- */

/* Its weight's gradient has too few numbers for tiles: each is a sum of its own over all positions. */
static void depthwise_pieces(void *context, long begin, long end)
{
    weight *w = context;
    const layout *l = &w->l;
    const axis *y = &l->axis[1], *x = &l->axis[2];
    long width = l->cut == 2 ? l->chunk : x->out, row_size = parts(width, LANES) * LANES;
    real *sums = rl_scratch((size_t)(l->taps * LANES + row_size + spread_size(l, 1)) * sizeof(real));
    if (!sums) {
        w->out_of_memory = 1;
        return;
    }
    real *row = sums + l->taps * LANES, *copy = row + row_size;
    for (long channel = begin; channel < end; channel++) {
        memset(sums, 0, (size_t)(l->taps * LANES) * sizeof(real));
        for (long unit = 0; unit < w->units; unit++) {
            long n = unit / l->chunks, chunk = unit % l->chunks, some = chunk_positions(l, chunk);
            long wide = least(width, some), vecs = parts(wide, LANES);
            const real *image = spread(l, n, channel, 0, 1, chunk, copy);
            const real *g = w->g + (n * w->groups + channel) * w->positions + chunk * chunk_positions(l, 0);
            whole_vec mask = {0};
            for (int i = 0; i < LANES; i++)
                mask[i] = (vecs - 1) * LANES + i < wide ? -1 : 0;
            memset(row, 0, (size_t)row_size * sizeof(real));
            for (long r = 0; r < some / wide; r++) {
                long at = (l->cut ? r : r / y->out * y->size + r % y->out) * x->size;
                memcpy(row, g + r * wide, (size_t)wide * sizeof(real));
                for (long j = 0; j < vecs; j++) {
                    vec here = *(const vec *)(row + j * LANES);
                    for (long t = 0; t < l->taps; t++) {
                        whole_vec met = *(const whole_vec *)(image + l->offset[t] + at + j * LANES);
                        if (j == vecs - 1)
                            met &= mask; /* what follows the row may be infinite */
                        *(vec *)(sums + t * LANES) += here * (vec)met;
                    }
                }
            }
        }
        for (long t = 0; t < l->taps; t++) {
            real total = 0;
            for (int i = 0; i < LANES; i++)
                total += sums[t * LANES + i];
            w->result[channel * l->taps + t] = total;
        }
    }
}

static int depthwise_weight(const rl_call *c)
{
    sizes s = sizes_of(c);
    weight w = {.l = layout_of(&s, c->array[0], c->size[0]), .g = c->array[1], .result = c->array[2],
                .groups = s.groups, .positions = s.out[0] * s.out[1] * s.out[2]};
    if (lay_out(&w.l, 0))
        return RL_NO_MEMORY;
    w.units = w.l.images * w.l.chunks;
    rl_parallel(depthwise_pieces, &w, s.groups, 1);
    free(w.l.offset);
    return w.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* -- the bias's gradient ------------------------------------------------------------------------------------------- */

static void channel_pieces(void *context, long begin, long end)
{
    const rl_call *c = context;
    const real *g = c->array[0];
    long images = c->integer[0], channels = c->integer[1], size = c->integer[2];
    for (long channel = begin; channel < end; channel++) {
        double total = 0;
        for (long n = 0; n < images; n++) {
            const real *plane = g + (n * channels + channel) * size;
            total += rl_sum(plane, size);
        }
        ((real *)c->array[1])[channel] = (real)total;
    }
}

/* channel_sums(g, sums, images, channels, size): the sum of each channel. */
static int channel_sums(const rl_call *c)
{
    rl_parallel(channel_pieces, (void *)c, c->integer[1], rl_rows(c->integer[0] * c->integer[2]));
    return RL_OK;
}

RL_FAMILY(conv) = {
    {"conv", "xxx?y iiii iii iii iii iii iii iii", conv},
    {"conv_input", "xxx?y iiii iii iii iii iii iii iii", conv_input},
    {"conv_weight", "xxy iiii iii iii iii iii iii iii", conv_weight},
    {"depthwise_weight", "xxy iiii iii iii iii iii iii iii", depthwise_weight},
    {"channel_sums", "xy iii", channel_sums},
    RL_END,
};
