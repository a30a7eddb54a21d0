/* Normal numbers from uniform ones, to the last bit as engine/numpy/box_muller.py and streams.py make them, which say why.

   In single precision each step is computed in double, where the product of two floats is exact, and rounded. */
#include "approximations.h"

enum { HALF = 8 }; /* a block is 8 radii and 8 angles */

typedef struct {
    const real *u;
    real *out;
    double mean, std;
} numbers;

#ifdef RL_DOUBLE

static void blocks(void *context, long begin, long end)
{
    const numbers *n = context;
    for (long block = begin; block < end; block++) {
        const double *u = n->u + block * 2 * HALF;
        double *out = n->out + block * 2 * HALF;
        for (int i = 0; i < HALF; i++) {
            double radius = sqrt(-2 * log(1 - u[i])), angle = u[HALF + i] * (2 * 3.14159265358979323846);
            out[i] = fma(radius * cos(angle), n->std, n->mean);
            out[HALF + i] = fma(radius * sin(angle), n->std, n->mean);
        }
    }
}

#else

#define SINGLE(c) ((double)(float)(c))
#define ROUNDED(x) ((double)(float)(x))

static const double LOG[] = {SINGLE(7.0376836292e-2), SINGLE(-1.1514610310e-1), SINGLE(1.1676998740e-1),
                             SINGLE(-1.2420140846e-1), SINGLE(1.4249322787e-1), SINGLE(-1.6668057665e-1),
                             SINGLE(2.0000714765e-1), SINGLE(-2.4999993993e-1), SINGLE(3.3333331174e-1)};
static const double SINE[] = {SINGLE(-1.9515295891e-4), SINGLE(8.3321608736e-3), SINGLE(-1.6666654611e-1)};
static const double COSINE[] = {SINGLE(2.443315711809948e-5), SINGLE(-1.388731625493765e-3), SINGLE(4.166664568298827e-2)};

/* count is a constant wherever this is inlined. */
RL_INLINE double polynomial(double x, const double *coefficients, const int count)
{
    double y = coefficients[0];
#pragma GCC unroll 8
    for (int c = 1; c < count; c++)
        y = ROUNDED(y * x + coefficients[c]);
    return y;
}

/* Of a number from (0, 1]. */
RL_INLINE float logarithm(float x)
{
    whole bits = rl_bits(x);
    float mantissa = rl_from_bits((bits & 0x7fffff) | 0x3f000000);
    whole low = mantissa < 0.70710678118654752440f;
    double exponent = (bits >> 23) - 126 - low;
    double m = (double)(low ? mantissa + mantissa : mantissa) - 1, square = ROUNDED(m * m);
    double y = ROUNDED(polynomial(m, LOG, 9) * m);
    y = ROUNDED(y * square + ROUNDED(exponent * SINGLE(-2.12194440e-4)));
    y = ROUNDED(y - 0.5 * square);
    return (float)(exponent * 0.693359375 + ROUNDED(m + y));
}

/* The sine, or cosine, of a number that is not negative. */
RL_INLINE double wave(float angle, const int is_cosine)
{
    int32_t octant = ((int32_t)(angle * 1.27323954473516268615f) + 1) & ~1;
    double x = angle, turns = octant;
    x = ROUNDED(x - turns * 0.78515625);
    x = ROUNDED(x - turns * SINGLE(2.4187564849853515625e-4));
    x = ROUNDED(x - turns * SINGLE(3.77489497744594108e-8));
    double square = ROUNDED(x * x);
    double cosine = ROUNDED(polynomial(square, COSINE, 3) * square);
    cosine = ROUNDED(ROUNDED(cosine * square - 0.5 * square) + 1);
    double sine = ROUNDED(polynomial(square, SINE, 3) * square);
    sine = ROUNDED(sine * x + x);
    int32_t quarter = is_cosine ? octant + 2 : octant; /* the cosine is the sine a quarter turn on */
    double value = quarter & 2 ? cosine : sine;
    return quarter & 4 ? -value : value;
}

enum { SOME = 16 * HALF }; /* radii of blocks that are worked on together */

static void some(const float *restrict rest, const float *restrict u, float *restrict cosines, float *restrict sines, long count)
{
    RL_SIMD
    for (long i = 0; i < count; i++) {
        double radius = rl_sqrt(-2 * logarithm(rest[i]));
        float angle = 6.28318530717958647692f * u[i];
        cosines[i] = (float)(radius * wave(angle, 1)), sines[i] = (float)(radius * wave(angle, 0));
    }
}

static void blocks(void *context, long begin, long end)
{
    const numbers *n = context;
    double mean = SINGLE(n->mean), std = SINGLE(n->std);
    int standard = mean == 0 && std == 1; /* -0 stays what it is then */
    float rest[SOME], angle[SOME], wave[2][SOME];
    for (long first = begin; first < end; first += SOME / HALF) {
        long count = (end - first < SOME / HALF ? end - first : SOME / HALF) * HALF;
        const float *u = n->u + first * 2 * HALF;
        float *out = n->out + first * 2 * HALF;
        for (long i = 0; i < count; i++)
            rest[i] = 1 - u[i / HALF * 2 * HALF + i % HALF], angle[i] = u[(i / HALF * 2 + 1) * HALF + i % HALF];
        some(rest, angle, wave[0], wave[1], count);
        for (long i = 0; i < 2 * count; i++) {
            float value = wave[i / HALF % 2][i / (2 * HALF) * HALF + i % HALF];
            out[i] = standard ? value : (float)(value * std + mean);
        }
    }
}

#endif

/* box_muller(u, out, mean, std), both of a multiple of 16 numbers */
static int box_muller(const rl_call *c)
{
    numbers n = {c->array[0], c->array[1], c->number[0], c->number[1]};
    rl_parallel(blocks, &n, c->size[0] / (2 * HALF), 256);
    return RL_OK;
}

RL_FAMILY(normal) = {
    {"box_muller", "xy dd", box_muller},
    RL_END,
};
