/* Activations and their slopes, element by element. */
#include "approximations.h"

/* y[i] = formula of x */
#define OF_ONE(name, formula)                                                                                          \
    static void name##_piece(void *context, long begin, long end)                                                      \
    {                                                                                                                  \
        const rl_call *c = context;                                                                                    \
        const real *restrict from = c->array[0];                                                                       \
        real *restrict to = c->array[1];                                                                               \
        RL_SIMD                                                                                                        \
        for (long i = begin; i < end; i++) {                                                                           \
            real x = from[i];                                                                                          \
            to[i] = formula;                                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static int name(const rl_call *c)                                                                                  \
    {                                                                                                                  \
        rl_parallel(name##_piece, (void *)c, c->size[0], RL_PIECE);                                                    \
        return RL_OK;                                                                                                  \
    }

/* out[i] = formula of x (what the rule keeps: the input or the output) and of g, the gradient that comes in */
#define OF_TWO(name, formula)                                                                                          \
    static void name##_piece(void *context, long begin, long end)                                                      \
    {                                                                                                                  \
        const rl_call *c = context;                                                                                    \
        const real *restrict kept = c->array[0], *restrict gradient = c->array[1];                                     \
        real *restrict to = c->array[2];                                                                               \
        RL_SIMD                                                                                                        \
        for (long i = begin; i < end; i++) {                                                                           \
            real x = kept[i], g = gradient[i];                                                                         \
            to[i] = formula;                                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static int name(const rl_call *c)                                                                                  \
    {                                                                                                                  \
        rl_parallel(name##_piece, (void *)c, c->size[0], RL_PIECE);                                                    \
        return RL_OK;                                                                                                  \
    }

#define ONE ((real)1)
#define HALF ((real)0.5)
#define DENSITY ((real)0.3989422804014326779)    /* 1 / √(2π) */
#define TANH_SCALE ((real)0.7978845608028653559) /* √(2/π) */
#define TANH_CUBE ((real)0.044715)

/* exp(-x² / 2); what squaring x lost is put back, for far from 0 it counts. From 40 on it is 0. */
RL_INLINE real bell(real x)
{
    x = rl_abs(x);
    x = x > 40 ? 40 : x;
    real square = x * x, lost = rl_fma(x, x, -square);
    return rl_exp_below(-HALF * square) * (1 - HALF * lost);
}

/* The normal distribution function; exact far below 0 too, unlike 1 + erf. In single precision its tail, divided by the
   bell curve, is q times a polynomial of q = 1 / (1 + 0.35 |x|), fitted to 3e-8 for |x| up to 14. */
RL_INLINE real normal_cdf(real x, real bell_of_x)
{
#ifdef RL_DOUBLE
    (void)bell_of_x;
    return HALF * erfc(x * -0.7071067811865475244);
#else
    real q = 1 / (1 + 0.35f * rl_abs(x));
    real q2 = q * q, q4 = q2 * q2; /* in pairs: a long chain of sums would be waited for */
    real low = (0.13962130690801042f + 0.13986351419441212f * q) + (0.11982129727067974f + 0.10555246261641396f * q) * q2;
    real high = (-0.023212256356539694f + 0.15931955012522173f * q) + (-0.2558388737816821f + 0.1440308554417375f * q) * q2;
    real p = low + (high + -0.029157872404123854f * q4) * q4;
    real tail = p * q * bell_of_x;
    return x < 0 ? tail : 1 - tail;
#endif
}

RL_INLINE real gelu_of(real x) { return x * normal_cdf(x, bell(x)); }

RL_INLINE real gelu_slope_of(real x)
{
    real b = bell(x);
    return normal_cdf(x, b) + x * DENSITY * b;
}

RL_INLINE real sigmoid_of(real x)
{
    real slope;
    return rl_sigmoid(x, &slope);
}

/* (1 + tanh(u)) / 2 is the sigmoid of 2u. */
RL_INLINE real gelu_tanh_of(real x) { return x * sigmoid_of(2 * x * (TANH_SCALE + TANH_SCALE * TANH_CUBE * x * x)); }

RL_INLINE real gelu_tanh_slope_of(real x)
{
    real square = x * x, slope;
    real s = rl_sigmoid(2 * x * (TANH_SCALE + TANH_SCALE * TANH_CUBE * square), &slope);
    return s + 2 * x * slope * (TANH_SCALE + 3 * TANH_SCALE * TANH_CUBE * square);
}

RL_INLINE real silu_slope_of(real x)
{
    real slope, s = rl_sigmoid(x, &slope);
    return s + x * slope;
}

/* The first and second number of a call. */
#define FIRST ((real)c->number[0])
#define SECOND ((real)c->number[1])

RL_INLINE real between(real x, real low, real high)
{
    x = x < low ? low : x; /* NaN stays */
    return x > high ? high : x;
}

/* A function, so that the number is read before the question and not in one of its branches. */
RL_INLINE real leaky(real x, real value, real slope) { return x > 0 ? value : value * slope; }

OF_ONE(relu, x < 0 ? 0 : x) /* NaN stays */
OF_TWO(relu_slope, x <= 0 ? 0 : g)
OF_ONE(sigmoid, sigmoid_of(x))
OF_TWO(sigmoid_slope, (ONE - x) * x * g)
OF_ONE(tanh_, rl_tanh(x))
OF_TWO(tanh_slope, (ONE - x * x) * g)
OF_ONE(silu, x * sigmoid_of(x))
OF_TWO(silu_slope, silu_slope_of(x) * g)
OF_ONE(gelu, gelu_of(x))
OF_TWO(gelu_slope, gelu_slope_of(x) * g)
OF_ONE(gelu_tanh, gelu_tanh_of(x))
OF_TWO(gelu_tanh_slope, gelu_tanh_slope_of(x) * g)
OF_ONE(exp_, rl_exp(x))
OF_ONE(leaky_relu, leaky(x, x, FIRST))
OF_TWO(leaky_relu_slope, leaky(x, g, FIRST))
OF_ONE(hardtanh, between(x, FIRST, SECOND))
OF_TWO(hardtanh_slope, x <= FIRST || x >= SECOND ? 0 : g)
OF_ONE(hardsigmoid, between(x + 3, 0, 6) / 6)
OF_TWO(hardsigmoid_slope, x > -3 && x < 3 ? g / 6 : 0)
OF_ONE(hardswish, x * between(x + 3, 0, 6) / 6)
OF_TWO(hardswish_slope, x <= -3 ? 0 : x < 3 ? g * (x / 3 + HALF) : g)

RL_FAMILY(activations) = {
    {"relu", "xy", relu},
    {"relu_slope", "xxy", relu_slope},
    {"sigmoid", "xy", sigmoid},
    {"sigmoid_slope", "xxy", sigmoid_slope},
    {"tanh", "xy", tanh_},
    {"tanh_slope", "xxy", tanh_slope},
    {"silu", "xy", silu},
    {"silu_slope", "xxy", silu_slope},
    {"gelu", "xy", gelu},
    {"gelu_slope", "xxy", gelu_slope},
    {"gelu_tanh", "xy", gelu_tanh},
    {"gelu_tanh_slope", "xxy", gelu_tanh_slope},
    {"exp", "xy", exp_},
    {"leaky_relu", "xy d", leaky_relu},
    {"leaky_relu_slope", "xxy d", leaky_relu_slope},
    {"hardtanh", "xy dd", hardtanh},
    {"hardtanh_slope", "xxy dd", hardtanh_slope},
    {"hardsigmoid", "xy", hardsigmoid},
    {"hardsigmoid_slope", "xxy", hardsigmoid_slope},
    {"hardswish", "xy", hardswish},
    {"hardswish_slope", "xxy", hardswish_slope},
    RL_END,
};
