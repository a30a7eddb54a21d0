/* Losses that are sums of a formula of each difference, and their gradients: one pass over memory each. */
#include "sums.h"

/* The formulas of a difference, or of its absolute value. */
RL_INLINE real squared(real d) { return d * d; }

RL_INLINE real huber(real d, real limit)
{
    real inner = (real)0.5 * d * d, outer = limit * (d - (real)0.5 * limit);
    return d <= limit ? inner : outer;
}

RL_INLINE real smooth(real d, real limit)
{
    real inner = (real)0.5 * d * d / limit, outer = d - (real)0.5 * limit;
    return d < limit ? inner : outer;
}

/* Inner where d is within the limit or no number, a line's slope on each side. */
RL_INLINE real within(real d, real limit, real inner, real slope)
{
    real below = d <= -limit ? -slope : inner;
    return d >= limit ? slope : below;
}

RL_INLINE real distance(real x, real w)
{
    real d = x - w;
    return d < 0 ? -d : d;
}

RL_DEFINE_SUM(squares, (const real *x, const real *w, long n), squared(x[i] - w[i]))
RL_DEFINE_SUM(hubers, (const real *x, const real *w, real limit, long n), huber(distance(x[i], w[i]), limit))
RL_DEFINE_SUM(smooths, (const real *x, const real *w, real limit, long n), smooth(distance(x[i], w[i]), limit))

typedef struct {
    const rl_call *call;
    double *sums; /* of each piece */
} losses;

#define PIECE(name, formula)                                                                                           \
    static void name##_piece(void *context, long begin, long end)                                                      \
    {                                                                                                                  \
        const losses *t = context;                                                                                     \
        const rl_call *c = t->call;                                                                                    \
        const real *x = (const real *)c->array[0] + begin, *w = (const real *)c->array[1] + begin;                     \
        long n = end - begin;                                                                                          \
        t->sums[begin / RL_PIECE] = formula;                                                                           \
    }                                                                                                                  \
    static int name##_sum(const rl_call *c) { return total_of(c, name##_piece); }

#define SLOPE(name, formula)                                                                                           \
    static void name##_slope_piece(void *context, long begin, long end)                                                \
    {                                                                                                                  \
        const rl_call *c = context;                                                                                    \
        const real *restrict x = c->array[0], *restrict w = c->array[1];                                               \
        real *restrict to = c->array[2], g = (real)c->number[1];                                                       \
        RL_SIMD                                                                                                        \
        for (long i = begin; i < end; i++) {                                                                           \
            real d = x[i] - w[i];                                                                                      \
            to[i] = formula;                                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static int name##_slope(const rl_call *c)                                                                          \
    {                                                                                                                  \
        rl_share(name##_slope_piece, (void *)c, c->size[0], RL_PIECE);                                                 \
        return RL_OK;                                                                                                  \
    }

/* The pieces' sums are added in their order, and divided once. */
static int total_of(const rl_call *c, void (*piece)(void *, long, long))
{
    enum { FEW = 64 };
    long n = c->size[0], pieces = (n + RL_PIECE - 1) / RL_PIECE;
    double few[FEW], total = 0;
    losses t = {c, pieces <= FEW ? few : malloc(sizeof(double) * (size_t)pieces)};
    if (!t.sums)
        return RL_NO_MEMORY;
    rl_parallel(piece, &t, n, RL_PIECE);
    for (long i = 0; i < pieces; i++)
        total += t.sums[i];
    *(real *)c->array[2] = (real)(total / c->number[1]);
    if (t.sums != few)
        free(t.sums);
    return RL_OK;
}

#define LIMIT ((real)c->number[0])

PIECE(squares, squares(x, w, n))
PIECE(huber, hubers(x, w, LIMIT, n))
PIECE(smooth, smooths(x, w, LIMIT, n))
SLOPE(squares, d * g) /* 2 is in the number */
SLOPE(huber, within(d, LIMIT, g * d, g * LIMIT))
SLOPE(smooth, within(d, LIMIT, g * (d / LIMIT), g))

/* x, w, the sum; limit, divisor.  x, w, the gradient of x; limit, the gradient of each loss */
RL_FAMILY(losses) = {
    {"squares_sum", "xxy dd", squares_sum},
    {"huber_sum", "xxy dd", huber_sum},
    {"smooth_sum", "xxy dd", smooth_sum},
    {"squares_slope", "xxy dd", squares_slope},
    {"huber_slope", "xxy dd", huber_slope},
    {"smooth_slope", "xxy dd", smooth_slope},
    RL_END,
};
