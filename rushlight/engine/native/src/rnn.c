/* One direction of a recurrent layer, given the input's products: gates (rows x gates of hidden size).

   Sequences of a batch do not meet: each piece of work takes some of them through all steps, and threads never wait for
   one another. The weights of the hidden state are packed once, before the first step, for all pieces. A step is a
   product with them, added to the gates in place, and one pass over the gates, which end up as what backward needs.

   ``first[t]`` is the row where step t begins, and ``sizes[t]`` how many sequences it has: ever fewer in packed ones. */
#include "approximations.h"
#include "gemm.h"

enum { SEQUENCES = 16, TANH = 0, RELU = 1, GRU = 2, LSTM = 3 };

typedef struct {
    int kind;
    long steps, batch, size, gate_count, reverse;
    const int64_t *first, *sizes;
    real *gates;        /* (rows, gate_count * size) */
    real *before;       /* (rows, size): h before each step */
    real *y;            /* (rows, size) */
    real *h, *c;        /* (batch, size): the state */
    real *inner;        /* GRU: the hidden state's part of n; LSTM: c before each step */
    real *squashed;     /* LSTM: tanh of c after each step */
    const real *bias;   /* GRU: the hidden state's */
    real *packed;       /* weights, in strips */
    /* backward */
    const real *gy;
    real *from_x, *from_h;
    int out_of_memory;
} layer;

/* C (+)= A W for some rows: A is (rows, k), W packed, k x cols. */
static void times(const layer *l, long rows, long cols, long k, const real *a, long a_row, target c)
{
    tiles(rows, cols, k, (matrix){a, a_row, 1}, ROWS * a_row, (strips){l->packed, k, cols}, c);
}

RL_INLINE real sigmoid(real x)
{
    real slope;
    return rl_sigmoid(x, &slope);
}

static void lstm_row(long n, real *restrict gates, real *restrict cell, real *restrict kept, real *restrict squashed,
                     real *restrict h)
{
    RL_SIMD
    for (long j = 0; j < n; j++) {
        real i = sigmoid(gates[j]), f = sigmoid(gates[n + j]), g = rl_tanh(gates[2 * n + j]), o = sigmoid(gates[3 * n + j]);
        real c = cell[j], t;
        kept[j] = c;
        c = f * c + i * g, t = rl_tanh(c);
        gates[j] = i, gates[n + j] = f, gates[2 * n + j] = g, gates[3 * n + j] = o;
        cell[j] = c, squashed[j] = t, h[j] = o * t;
    }
}

static void gru_row(long n, real *restrict gates, const real *restrict hidden, real *restrict inner, real *restrict h)
{
    RL_SIMD
    for (long j = 0; j < n; j++) {
        real r = sigmoid(gates[j] + hidden[j]), z = sigmoid(gates[n + j] + hidden[n + j]), u = hidden[2 * n + j];
        real m = rl_tanh(gates[2 * n + j] + r * u);
        inner[j] = u;
        gates[j] = r, gates[n + j] = z, gates[2 * n + j] = m;
        h[j] = m + z * (h[j] - m);
    }
}

static void plain_row(long n, int relu, real *restrict gates, real *restrict h)
{
    if (relu) {
        RL_SIMD
        for (long j = 0; j < n; j++)
            gates[j] = gates[j] < 0 ? 0 : gates[j];
    } else {
        RL_SIMD
        for (long j = 0; j < n; j++)
            gates[j] = rl_tanh(gates[j]);
    }
    memcpy(h, gates, (size_t)n * sizeof(real));
}

static void forward_sequences(void *context, long begin, long end)
{
    layer *l = context;
    long n = l->size, all = l->gate_count * n;
    real *hidden = rl_scratch((size_t)((end - begin) * all) * sizeof(real));
    if (!hidden) {
        l->out_of_memory = 1;
        return;
    }
    for (long s = 0; s < l->steps; s++) {
        long t = l->reverse ? l->steps - 1 - s : s, row = l->first[t] + begin, rows = least(end, l->sizes[t]) - begin;
        if (rows <= 0)
            continue;
        real *gates = l->gates + row * all, *h = l->h + begin * n;
        memcpy(l->before + row * n, h, (size_t)(rows * n) * sizeof(real));
        target added = {gates, all, 1, 1, NULL, NULL}, apart = {hidden, all, 1, 0, NULL, l->bias};
        times(l, rows, all, n, h, n, l->kind == GRU ? apart : added);
        for (long i = 0; i < rows; i++) {
            long r = (row + i) * n;
            if (l->kind == LSTM)
                lstm_row(n, gates + i * all, l->c + (begin + i) * n, l->inner + r, l->squashed + r, h + i * n);
            else if (l->kind == GRU)
                gru_row(n, gates + i * all, hidden + i * all, l->inner + r, h + i * n);
            else
                plain_row(n, l->kind == RELU, gates + i * all, h + i * n);
        }
        memcpy(l->y + row * n, h, (size_t)(rows * n) * sizeof(real));
    }
}

/* -- backward ------------------------------------------------------------------------------------------------------ */

static void lstm_slopes(long n, const real *restrict gates, const real *restrict kept, const real *restrict squashed,
                        const real *restrict dh, real *restrict dc, real *restrict to)
{
    RL_SIMD
    for (long j = 0; j < n; j++) {
        real i = gates[j], f = gates[n + j], g = gates[2 * n + j], o = gates[3 * n + j], t = squashed[j];
        real d = dc[j] + dh[j] * o * (1 - t * t);
        to[j] = d * g * (i * (1 - i));
        to[n + j] = d * kept[j] * (f * (1 - f));
        to[2 * n + j] = d * i * (1 - g * g);
        to[3 * n + j] = dh[j] * t * (o * (1 - o));
        dc[j] = d * f;
    }
}

static void gru_slopes(long n, const real *restrict gates, const real *restrict before, const real *restrict inner,
                       real *restrict dh, real *restrict to, real *restrict to_hidden)
{
    RL_SIMD
    for (long j = 0; j < n; j++) {
        real r = gates[j], z = gates[n + j], m = gates[2 * n + j], d = dh[j];
        real dm = d * (1 - z) * (1 - m * m), dz = d * (before[j] - m) * (z * (1 - z)), dr = dm * inner[j] * (r * (1 - r));
        to[j] = to_hidden[j] = dr, to[n + j] = to_hidden[n + j] = dz;
        to[2 * n + j] = dm, to_hidden[2 * n + j] = dm * r;
        dh[j] = d * z;
    }
}

static void plain_slopes(long n, int relu, const real *restrict gates, const real *restrict dh, real *restrict to)
{
    RL_SIMD
    for (long j = 0; j < n; j++)
        to[j] = relu ? (gates[j] > 0 ? dh[j] : dh[j] * 0) : dh[j] * (1 - gates[j] * gates[j]);
}

static void backward_sequences(void *context, long begin, long end)
{
    layer *l = context;
    long n = l->size, all = l->gate_count * n;
    for (long s = l->steps; s-- > 0;) {
        long t = l->reverse ? l->steps - 1 - s : s, row = l->first[t] + begin, rows = least(end, l->sizes[t]) - begin;
        if (rows <= 0)
            continue;
        real *dh = l->h + begin * n;
        for (long i = 0; i < rows; i++) {
            long r = (row + i) * n, g = (row + i) * all;
            real *d = dh + i * n;
            RL_SIMD
            for (long j = 0; j < n; j++)
                d[j] += l->gy[r + j];
            if (l->kind == LSTM)
                lstm_slopes(n, l->gates + g, l->inner + r, l->squashed + r, d, l->c + (begin + i) * n, l->from_x + g);
            else if (l->kind == GRU)
                gru_slopes(n, l->gates + g, l->before + r, l->inner + r, d, l->from_x + g, l->from_h + g);
            else
                plain_slopes(n, l->kind == RELU, l->gates + g, d, l->from_x + g);
        }
        const real *slopes = (l->kind == GRU ? l->from_h : l->from_x) + row * all;
        times(l, rows, n, all, slopes, all, (target){dh, n, 1, l->kind == GRU, NULL, NULL});
    }
}

/* Packs the weights, k x cols, and runs all sequences. */
static int run(layer *l, void (*body)(void *, long, long), long k, long cols, matrix weights)
{
    l->packed = malloc((size_t)(parts(cols, COLS) * COLS * k) * sizeof(real));
    if (!l->packed)
        return RL_NO_MEMORY;
    pack_strips(k, cols, weights, l->packed);
    rl_parallel(body, l, l->batch, SEQUENCES);
    free(l->packed);
    return l->out_of_memory ? RL_NO_MEMORY : RL_OK;
}

static layer layer_of(const rl_call *c)
{
    const long *i = c->integer;
    return (layer){.kind = (int)i[0], .batch = i[1], .size = i[2], .reverse = i[3], .steps = c->size[0],
                   .gate_count = i[0] == LSTM ? 4 : i[0] == GRU ? 3 : 1, .first = c->array[0], .sizes = c->array[1]};
}

/* recurrent(first, sizes, w_hh, bias, gates, before, y, h, c, inner, squashed, kind, batch, size, reverse) */
static int recurrent(const rl_call *c)
{
    layer l = layer_of(c);
    l.bias = c->array[3], l.gates = c->array[4], l.before = c->array[5], l.y = c->array[6], l.h = c->array[7];
    l.c = c->array[8], l.inner = c->array[9], l.squashed = c->array[10];
    return run(&l, forward_sequences, l.size, l.gate_count * l.size, (matrix){c->array[2], 1, l.size});
}

/* recurrent_backward(first, sizes, w_hh, gates, before, inner, squashed, gy, dh, dc, from_x, from_h, …) */
static int recurrent_backward(const rl_call *c)
{
    layer l = layer_of(c);
    l.gates = c->array[3], l.before = c->array[4], l.inner = c->array[5], l.squashed = c->array[6], l.gy = c->array[7];
    l.h = c->array[8], l.c = c->array[9], l.from_x = c->array[10], l.from_h = c->array[11];
    return run(&l, backward_sequences, l.gate_count * l.size, l.size, (matrix){c->array[2], l.size, 1});
}

RL_FAMILY(rnn) = {
    {"recurrent", "qqxx? yyyy y?y?y? iiii", recurrent},
    {"recurrent_backward", "qqxxx x?x?x yy? yy? iiii", recurrent_backward},
    RL_END,
};
