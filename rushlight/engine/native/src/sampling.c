/* Pictures read at points between their pixels, and the gradients of that: grid_sampler in ops/resize.py is the
   definition.

   The pixels that go into a point are the same in every channel. So for a block of points there is a table of places and
   weights, a row for each combination of neighbours along the axes, and then a loop over channels. */
#include "kernels.h"

enum { BLOCK = 256, AXES = 3, CORNERS = 16, GROUP = 32 }; /* points of a block; channels whose gradients are one piece */
enum { LINEAR, NEAREST, CUBIC };
enum { ZEROS, BORDER, REFLECTION };

#ifdef RL_DOUBLE
#define FLOOR __builtin_floor
#define ROUND __builtin_rint
#else
#define FLOOR __builtin_floorf
#define ROUND __builtin_rintf
#endif

typedef struct {
    const real *x, *grid, *g;
    real *y, *gx, *to_grid;
    long batch, channels, size[AXES], points;
    int dims, mode, padding, align;
    int out_of_memory;
} sampler;

/* Along one axis: where the neighbours of each point are, what they count, and how that moves with the grid. */
typedef struct {
    real place[4][BLOCK], weight[4][BLOCK], slope[4][BLOCK];
} axis_table;

typedef struct {
    axis_table axis[AXES];
    int32_t place[CORNERS][BLOCK]; /* in a plane; -1: outside */
    real weight[CORNERS][BLOCK];
} table;

static sampler sampler_of(const rl_call *c)
{
    const long *i = c->integer;
    return (sampler){.batch = i[0], .channels = i[1], .size = {i[2], i[3], i[4]}, .points = i[5], .dims = (int)i[6],
                     .mode = (int)i[7], .padding = (int)i[8], .align = (int)i[9]};
}

static long pixels(const sampler *s) { return s->size[0] * s->size[1] * s->size[2]; }
static int neighbours(const sampler *s) { return s->mode == NEAREST ? 1 : s->mode == LINEAR ? 2 : 4; }

static int corners(const sampler *s)
{
    int one = neighbours(s);
    return s->dims == 2 ? one * one : one * one * one;
}

/* -- one axis --------------------------------------------------------------------------------------------------------- */

static void reflect(real *restrict at, real *restrict slope, long many, long n, int align)
{
    real low = align ? 0 : (real)-0.5, span = (real)(align ? n - 1 : n);
    if (span == 0) {
        for (long p = 0; p < many; p++)
            at[p] *= 0, slope[p] = 0;
        return;
    }
    RL_SIMD
    for (long p = 0; p < many; p++) {
        real away = at[p] - low, sign = away < 0 ? -1 : 1;
        away *= sign;
        real turns = FLOOR(away / span), rest = away - turns * span;
        int odd = turns - 2 * FLOOR(turns / 2) == 1;
        at[p] = (odd ? span - rest : rest) + low;
        slope[p] = odd ? -sign : sign;
    }
}

/* Positions as the padding has them, and how those move with what they were. */
static void inside(const sampler *s, real *restrict at, real *restrict slope, long many, long n)
{
    real last = (real)(n - 1);
    for (long p = 0; p < many; p++)
        slope[p] = 1;
    if (s->padding == ZEROS)
        return;
    if (s->padding == REFLECTION)
        reflect(at, slope, many, n, s->align);
    if (s->dims == 2)
        RL_SIMD
        for (long p = 0; p < many; p++) { /* NaN is at the first border */
            int high = at[p] >= last, low = !(at[p] > 0);
            slope[p] = high | low ? 0 : slope[p];
            at[p] = high ? last : low ? 0 : at[p];
        }
    else
        RL_SIMD
        for (long p = 0; p < many; p++) { /* and in a volume at the last one */
            int low = at[p] <= 0, high = !(at[p] < last);
            slope[p] = high | low ? 0 : slope[p];
            at[p] = low ? 0 : high ? last : at[p];
        }
}

/* Cubic convolution with a = -3/4, up to a pixel away and from there to two, and their slopes. */
RL_INLINE real near(real d) { return ((real)1.25 * d - (real)2.25) * d * d + 1; }
RL_INLINE real far(real d) { return (((real)-0.75 * d + (real)3.75) * d - 6) * d + 3; }
RL_INLINE real near_slope(real d) { return ((real)3.75 * d - (real)4.5) * d; }
RL_INLINE real far_slope(real d) { return ((real)-2.25 * d + (real)7.5) * d - 6; }

static void cubic(const sampler *s, axis_table *t, const real *at, long many, long n, real ratio)
{
    real ignored[BLOCK];
    RL_SIMD
    for (long p = 0; p < many; p++) {
        real low = FLOOR(at[p]), part = at[p] - low;
        t->place[0][p] = low - 1, t->weight[0][p] = far(part + 1), t->slope[0][p] = ratio * far_slope(part + 1);
        t->place[1][p] = low, t->weight[1][p] = near(part), t->slope[1][p] = ratio * near_slope(part);
        t->place[2][p] = low + 1, t->weight[2][p] = near(1 - part), t->slope[2][p] = -ratio * near_slope(1 - part);
        t->place[3][p] = low + 2, t->weight[3][p] = far(2 - part), t->slope[3][p] = -ratio * far_slope(2 - part);
    }
    for (int k = 0; k < 4; k++)
        inside(s, t->place[k], ignored, many, n);
}

/* The table of one axis, whose coordinates lie `dims` apart. */
static void along_axis(const sampler *s, axis_table *t, const real *coordinate, long many, long n)
{
    real at[BLOCK], moves[BLOCK], ratio = (real)(s->align ? n - 1 : n) / 2;
    /* In steps that are rounded each for itself, or what is on a pixel is beside it. */
    for (long p = 0; p < many; p++)
        at[p] = (coordinate[p * s->dims] + 1) * ratio;
    if (!s->align)
        for (long p = 0; p < many; p++)
            at[p] -= (real)0.5;
    if (s->mode == CUBIC) {
        cubic(s, t, at, many, n, ratio);
        return;
    }
    inside(s, at, moves, many, n);
    if (s->mode == NEAREST)
        RL_SIMD
        for (long p = 0; p < many; p++)
            t->place[0][p] = ROUND(at[p]), t->weight[0][p] = 1, t->slope[0][p] = 0;
    else
        RL_SIMD
        for (long p = 0; p < many; p++) {
            real low = FLOOR(at[p]), part = at[p] - low;
            t->place[0][p] = low, t->weight[0][p] = 1 - part, t->slope[0][p] = -ratio * moves[p];
            t->place[1][p] = low + 1, t->weight[1][p] = part, t->slope[1][p] = ratio * moves[p];
        }
}

/* Which of an axis's neighbours corner k has: the last axis counts first. */
RL_INLINE int neighbour_of(const sampler *s, int k, int axis)
{
    for (int one = neighbours(s), last = AXES - 1; last > axis; last--)
        k /= one;
    return k % neighbours(s);
}

static void fill_table(const sampler *s, table *t, long image, long first, long many)
{
    int outermost = AXES - s->dims;
    for (int axis = outermost; axis < AXES; axis++)
        along_axis(s, &t->axis[axis], s->grid + (image * s->points + first) * s->dims + (AXES - 1 - axis), many, s->size[axis]);
    for (int k = 0; k < corners(s); k++) {
        int32_t *restrict place = t->place[k];
        real *restrict weight = t->weight[k];
        for (int axis = outermost; axis < AXES; axis++) {
            int which = neighbour_of(s, k, axis);
            const real *restrict at = t->axis[axis].place[which], *restrict w = t->axis[axis].weight[which];
            real last = (real)(s->size[axis] - 1);
            int32_t n = (int32_t)s->size[axis];
            int begun = axis > outermost;
            RL_SIMD
            for (long p = 0; p < many; p++) {
                int32_t before = begun ? place[p] : 0;
                int there = (at[p] >= 0) & (at[p] <= last) & (before >= 0);
                place[p] = there ? before * n + (int32_t)(there ? at[p] : 0) : -1;
                weight[p] = begun ? weight[p] * w[p] : w[p];
            }
        }
    }
}

/* -- forward ---------------------------------------------------------------------------------------------------------- */

/* y += what one corner gives. In an image a point that is not finite has no value; in a volume it is outside. */
RL_INLINE void read_corner(const real *restrict x, const int32_t *restrict place, const real *restrict weight, long many,
                           int volume, int begun, real *restrict y)
{
    RL_SIMD
    for (long p = 0; p < many; p++) {
        int32_t at = place[p] < 0 ? 0 : place[p];
        real value = x[at], w = volume && place[p] < 0 ? 0 : weight[p];
        value = (place[p] < 0 ? 0 : value) * w;
        y[p] = begun ? y[p] + value : value;
    }
}

RL_GATHERS static void read_plane(const sampler *s, const table *t, const real *x, long many, real *y)
{
    int count = corners(s);
    for (int k = 0; k < count; k++)
        if (s->dims == 3)
            read_corner(x, t->place[k], t->weight[k], many, 1, k > 0, y);
        else
            read_corner(x, t->place[k], t->weight[k], many, 0, k > 0, y);
}

static void read_blocks(void *context, long begin, long end)
{
    sampler *s = context;
    table *t = rl_scratch(sizeof(table));
    if (!t) {
        s->out_of_memory = 1;
        return;
    }
    long blocks = (s->points + BLOCK - 1) / BLOCK, plane = pixels(s);
    for (long i = begin; i < end; i++) {
        long image = i / blocks, first = i % blocks * BLOCK, many = s->points - first < BLOCK ? s->points - first : BLOCK;
        fill_table(s, t, image, first, many);
        for (long c = image * s->channels; c < (image + 1) * s->channels; c++)
            read_plane(s, t, s->x + c * plane, many, s->y + c * s->points + first);
    }
}

/* x (batch, channels, depth, height, width), grid, y; those sizes, points of a picture, dims, mode, padding, align */
static int grid_sample(const rl_call *c)
{
    sampler s = sampler_of(c);
    s.x = c->array[0], s.grid = c->array[1], s.y = c->array[2];
    rl_share(read_blocks, &s, s.batch * ((s.points + BLOCK - 1) / BLOCK), rl_rows(BLOCK * (s.channels + 8) * corners(&s)));
    return s.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

/* -- gradients --------------------------------------------------------------------------------------------------------- */

static void add_plane(const sampler *s, const table *t, const real *restrict g, long many, real *restrict gx)
{
    int count = corners(s);
    for (int k = 0; k < count; k++) {
        const int32_t *restrict place = t->place[k];
        const real *restrict weight = t->weight[k];
        for (long p = 0; p < many; p++)
            if (place[p] >= 0)
                gx[place[p]] += g[p] * weight[p];
    }
}

/* For a picture, and some of its channels, in each of which nobody else adds. */
static void add_groups(void *context, long begin, long end)
{
    sampler *s = context;
    table *t = rl_scratch(sizeof(table));
    if (!t) {
        s->out_of_memory = 1;
        return;
    }
    long groups = (s->channels + GROUP - 1) / GROUP, plane = pixels(s);
    for (long i = begin; i < end; i++) {
        long image = i / groups, from = image * s->channels + i % groups * GROUP;
        long to = from + GROUP < (image + 1) * s->channels ? from + GROUP : (image + 1) * s->channels;
        memset(s->gx + from * plane, 0, sizeof(real) * (size_t)((to - from) * plane));
        for (long first = 0; first < s->points; first += BLOCK) {
            long many = s->points - first < BLOCK ? s->points - first : BLOCK;
            fill_table(s, t, image, first, many);
            for (long c = from; c < to; c++)
                add_plane(s, t, s->g + c * s->points + first, many, s->gx + c * plane);
        }
    }
}

/* total += g times the pixels of one corner, as the rule takes what is outside */
RL_INLINE void weigh_corner(const real *restrict x, const int32_t *restrict place, const real *restrict g, long many,
                            int volume, double *restrict total)
{
    RL_SIMD
    for (long p = 0; p < many; p++) {
        int32_t at = place[p] < 0 ? 0 : place[p];
        real value = x[at], w = volume && place[p] < 0 ? 0 : g[p];
        total[p] += (double)((place[p] < 0 ? 0 : value) * w);
    }
}

/* What each corner's weight is worth goes to the axes: times the slope along one, and the weights along the others. */
static void add_slopes(const sampler *s, const table *t, int k, const double *total, long many, real *to)
{
    for (int axis = AXES - s->dims; axis < AXES; axis++) {
        real part[BLOCK];
        const real *slope = t->axis[axis].slope[neighbour_of(s, k, axis)];
        for (long p = 0; p < many; p++)
            part[p] = (real)total[p] * slope[p];
        for (int other = AXES - s->dims; other < AXES; other++) {
            const real *weight = t->axis[other].weight[neighbour_of(s, k, other)];
            for (long p = 0; other != axis && p < many; p++)
                part[p] *= weight[p];
        }
        for (long p = 0; p < many; p++)
            to[p * s->dims + AXES - 1 - axis] += part[p];
    }
}

RL_GATHERS static void grid_blocks(void *context, long begin, long end)
{
    sampler *s = context;
    table *t = rl_scratch(sizeof(table));
    if (!t) {
        s->out_of_memory = 1;
        return;
    }
    long blocks = (s->points + BLOCK - 1) / BLOCK, plane = pixels(s);
    for (long i = begin; i < end; i++) {
        long image = i / blocks, first = i % blocks * BLOCK, many = s->points - first < BLOCK ? s->points - first : BLOCK;
        real *to = s->to_grid + (image * s->points + first) * s->dims;
        memset(to, 0, sizeof(real) * (size_t)(many * s->dims));
        if (s->mode == NEAREST)
            continue;
        fill_table(s, t, image, first, many);
        for (int k = 0; k < corners(s); k++) {
            double total[BLOCK] = {0};
            for (long c = image * s->channels; c < (image + 1) * s->channels; c++) {
                const real *x = s->x + c * plane, *g = s->g + c * s->points + first;
                if (s->dims == 3)
                    weigh_corner(x, t->place[k], g, many, 1, total);
                else
                    weigh_corner(x, t->place[k], g, many, 0, total);
            }
            add_slopes(s, t, k, total, many, to);
        }
    }
}

/* g, x, grid, gx?, the grid's gradient?; integers as above */
static int grid_sample_slope(const rl_call *c)
{
    sampler s = sampler_of(c);
    s.g = c->array[0], s.x = c->array[1], s.grid = c->array[2], s.gx = c->array[3], s.to_grid = c->array[4];
    if (s.gx)
        rl_parallel(add_groups, &s, s.batch * ((s.channels + GROUP - 1) / GROUP), 1);
    if (s.to_grid)
        rl_share(grid_blocks, &s, s.batch * ((s.points + BLOCK - 1) / BLOCK), rl_rows(BLOCK * (s.channels + 8) * corners(&s)));
    return s.out_of_memory ? RL_NO_MEMORY : RL_OK;
}

RL_FAMILY(sampling) = {
    {"grid_sample", "xxy iiiiii iiii", grid_sample},
    {"grid_sample_slope", "xxxy?y? iiiiii iiii", grid_sample_slope},
    RL_END,
};
