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
        rl_share(name##_piece, (void *)c, c->size[0], RL_PIECE);                                                       \
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
        rl_share(name##_piece, (void *)c, c->size[0], RL_PIECE);                                                       \
        return RL_OK;                                                                                                  \
    }

#define ONE ((real)1)
#define HALF ((real)0.5)
#define DENSITY ((real)0.3989422804014326779)    /* 1 / √(2π) */
#define TANH_SCALE ((real)0.7978845608028653559) /* √(2/π) */
#define TANH_CUBE ((real)0.044715)

/* exp(-x² / 2); what squaring x lost is put back, for far from 0 it counts. Numbers too small to be normal are 0. */
RL_INLINE real bell(real x)
{
    real square = x * x, lost = rl_fma(x, x, -square), power = -HALF * square;
    whole n;
    real r = rl_reduce(power, &n) - HALF * lost;
    real y = (1 + (r + r * r * rl_exp_rest(r))) * rl_power_of_two(n);
    return power < EXP_NORMAL ? 0 : y;
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

/* log(1 + exp(x)), which is infinite where exp(x) is */
RL_INLINE real log1p_exp(real x)
{
    real y = (x > 0 ? x : 0) + rl_log1p(rl_exp_below(-rl_abs(x)));
    return x > EXP_FINITE ? INFINITY : y;
}

RL_INLINE real softplus_of(real x, real beta, real threshold)
{
    real scaled = x * beta, soft = log1p_exp(scaled) / beta;
    return scaled > threshold ? x : soft;
}

RL_INLINE real softplus_slope_of(real x, real g, real beta, real threshold)
{
    real scaled = x * beta, soft = g * sigmoid_of(scaled);
    return scaled > threshold ? g : soft;
}

RL_INLINE real log_sigmoid_of(real x) { return (x < 0 ? x : 0) - rl_log1p(rl_exp_below(-rl_abs(x))); }

/* tanh(log(1 + exp(x))) as a fraction of e = exp(-|x|): (1 + 2e) / (1 + 2e + 2e²), or, below 0, (e² + 2e) / (e² + 2e + 2) */
RL_INLINE real mish_of(real x)
{
    real e = rl_exp_below(-rl_abs(x)), top = x < 0 ? e * (e + 2) : 1 + 2 * e, rest = x < 0 ? 2 : 2 * e * e;
    return x * (top / (top + rest));
}

/* With t for that fraction t + x sigmoid(x) (1 - t²), where neither factor is found by a difference. */
RL_INLINE real mish_slope_of(real x)
{
    real e = rl_exp_below(-rl_abs(x)), top = x < 0 ? e * (e + 2) : 1 + 2 * e, rest = x < 0 ? 2 : 2 * e * e;
    real over = 1 / (top + rest);
    return (top + x * (4 * (x < 0 ? e : e * e) * (1 + e) * over)) * over;
}

/* Where x is 0 it stays, with its sign. */
RL_INLINE real elu_of(real x, real below, real above, real input_scale)
{
    real curved = rl_expm1_of_any((x < 0 ? x : 0 * x) * input_scale) * below;
    return x >= 0 ? x * above : curved;
}

RL_INLINE real elu_slope_of(real x, real g, real below, real above, real input_scale)
{
    real curved = rl_exp((x < 0 ? x : 0) * input_scale) * below;
    return x <= 0 ? g * curved : g * above;
}

/* The first numbers of a call. */
#define FIRST ((real)c->number[0])
#define SECOND ((real)c->number[1])
#define THIRD ((real)c->number[2])

RL_INLINE real between(real x, real low, real high)
{
    x = x < low ? low : x; /* NaN stays */
    return x > high ? high : x;
}

RL_INLINE int within(real x, real limit) { return (x >= -limit) & (x <= limit); }

/* Between the limits 0 with the sign of x, and NaN stays. */
RL_INLINE real softshrink_of(real x, real limit)
{
    real above = x - limit, below = x + limit, none = x * 0;
    none = x < -limit ? below : none;
    return x > limit ? above : none;
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
OF_TWO(hardtanh_slope, ((x <= FIRST) | (x >= SECOND)) ? 0 : g)
OF_ONE(hardsigmoid, between(x + 3, 0, 6) / 6)
OF_TWO(hardsigmoid_slope, x > -3 && x < 3 ? g / 6 : 0)
OF_ONE(hardswish, x * between(x + 3, 0, 6) / 6)
OF_TWO(hardswish_slope, x <= -3 ? 0 : x < 3 ? g * (x / 3 + HALF) : g)
OF_ONE(elu, elu_of(x, (real)(c->number[0] * c->number[1]), SECOND, THIRD)) /* alpha, scale, input_scale */
OF_TWO(elu_slope, elu_slope_of(x, g, (real)(c->number[0] * c->number[1] * c->number[2]), SECOND, THIRD))
OF_ONE(softplus, softplus_of(x, FIRST, SECOND))
OF_TWO(softplus_slope, softplus_slope_of(x, g, FIRST, SECOND))
OF_ONE(log_sigmoid, log_sigmoid_of(x))
OF_TWO(log_sigmoid_slope, sigmoid_of(-x) * g)
OF_ONE(mish, mish_of(x))
OF_TWO(mish_slope, mish_slope_of(x) * g)
OF_ONE(hardshrink, within(x, FIRST) ? 0 : x)
OF_ONE(softshrink, softshrink_of(x, FIRST))
OF_TWO(shrink_slope, within(x, FIRST) ? 0 : g)

/* -- gates: (rows, 2, inner), the first half times the sigmoid of the second ------------------------------------------- */

typedef struct {
    const rl_call *call;
    long inner, stretches; /* pieces of a row's halves */
} gates;

static gates gates_of(const rl_call *c)
{
    long inner = c->integer[0];
    return (gates){c, inner, (inner + RL_PIECE - 1) / RL_PIECE};
}

/* How many of the stretches of all rows make a piece. */
static void share_gates(void (*piece)(void *, long, long), gates *t, long halves)
{
    long rows = t->inner ? halves / t->inner : 0, stretch = t->stretches ? t->inner / t->stretches : 0;
    rl_parallel(piece, t, rows * t->stretches, rl_rows(stretch));
}

/* The loop that follows is over stretches: of the inputs' halves, which lie `inner` apart, and of what has half the size. */
#define GATES(t)                                                                                                       \
    for (long s = begin, row, first, last;                                                                             \
         s < end && (row = s / t->stretches, first = s % t->stretches * RL_PIECE,                                      \
                     last = t->inner - first < RL_PIECE ? t->inner : first + RL_PIECE, 1);                             \
         s++)

static void glu_piece(void *context, long begin, long end)
{
    const gates *t = context;
    GATES(t)
    {
        const real *restrict a = (const real *)t->call->array[0] + 2 * row * t->inner, *restrict b = a + t->inner;
        real *restrict y = (real *)t->call->array[1] + row * t->inner;
        RL_SIMD
        for (long i = first; i < last; i++)
            y[i] = a[i] * sigmoid_of(b[i]);
    }
}

/* x, y; inner */
static int glu(const rl_call *c)
{
    gates t = gates_of(c);
    share_gates(glu_piece, &t, c->size[1]);
    return RL_OK;
}

static void glu_slope_piece(void *context, long begin, long end)
{
    const gates *t = context;
    GATES(t)
    {
        const real *restrict a = (const real *)t->call->array[0] + 2 * row * t->inner, *restrict b = a + t->inner;
        const real *restrict g = (const real *)t->call->array[1] + row * t->inner;
        real *restrict to_a = (real *)t->call->array[2] + 2 * row * t->inner, *restrict to_b = to_a + t->inner;
        RL_SIMD
        for (long i = first; i < last; i++) {
            real s = sigmoid_of(b[i]);
            to_a[i] = g[i] * s;
            to_b[i] = g[i] * a[i] * s * (ONE - s);
        }
    }
}

/* x, g, the gradient of x; inner */
static int glu_slope(const rl_call *c)
{
    gates t = gates_of(c);
    share_gates(glu_slope_piece, &t, c->size[1]);
    return RL_OK;
}

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
    {"elu", "xy ddd", elu},
    {"elu_slope", "xxy ddd", elu_slope},
    {"softplus", "xy dd", softplus},
    {"softplus_slope", "xxy dd", softplus_slope},
    {"log_sigmoid", "xy", log_sigmoid},
    {"log_sigmoid_slope", "xxy", log_sigmoid_slope},
    {"mish", "xy", mish},
    {"mish_slope", "xxy", mish_slope},
    {"hardshrink", "xy d", hardshrink},
    {"hardshrink_slope", "xxy d", shrink_slope},
    {"softshrink", "xy d", softshrink},
    {"softshrink_slope", "xxy d", shrink_slope},
    {"glu", "xy i", glu},
    {"glu_slope", "xxy i", glu_slope},
    RL_END,
};
