/* exp, tanh and their kin, without branches: a loop over them is done several elements at a time. */
#ifndef RL_APPROXIMATIONS_H
#define RL_APPROXIMATIONS_H

#include "kernels.h"

#ifdef RL_DOUBLE
#define LOG2_E 0x1.71547652b82fep+0
#define LN2_HIGH 0x1.62e42fefa3800p-1 /* so few bits that its product with any exponent is exact */
#define LN2_LOW 0x1.ef35793c76730p-45
#define ROUNDER 0x1.8p52 /* added, it leaves a whole number in the lowest bits */
#define FRACTION_BITS 52
#define BIAS 1023
#define EXP_LEAST (-746) /* exp of less is 0 */
#define EXP_MOST 710     /* exp of more is infinite */
#define EXP_FINITE 709.782712893384 /* exp of more is infinite, exactly */
#define EXP_NORMAL (-708.0) /* exp of less is no normal number, or soon will be */
#define TANH_MOST 22     /* tanh of more is 1 */
#else
#define LOG2_E 0x1.715476p+0f
#define LN2_HIGH 0x1.62e400p-1f
#define LN2_LOW 0x1.7f7d1cp-20f
#define ROUNDER 0x1.8p23f
#define FRACTION_BITS 23
#define BIAS 127
#define EXP_LEAST (-104)
#define EXP_MOST 89
#define EXP_FINITE 88.7228394f
#define EXP_NORMAL (-87.0f)
#define TANH_MOST 10
#endif

#define ROOT_2 ((real)1.41421356237309504880)

RL_INLINE real rl_abs(real x) { return (real)__builtin_fabs(x); }

RL_INLINE real rl_copysign(real size, real sign) { return (real)__builtin_copysign(size, sign); }

/* x y + z, rounded once; processors without the instruction compute it in double, and doubles slowly. */
RL_INLINE real rl_fma(real x, real y, real z)
{
#if defined(RL_DOUBLE)
    return __builtin_fma(x, y, z);
#elif defined(__FP_FAST_FMAF)
    return __builtin_fmaf(x, y, z);
#else
    return (float)((double)x * y + z);
#endif
}

RL_INLINE whole rl_bits(real x)
{
    whole bits;
    memcpy(&bits, &x, sizeof x);
    return bits;
}

RL_INLINE real rl_from_bits(whole bits)
{
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2 to the n, for n of normal numbers; of others, which come from NaN, anything. */
RL_INLINE real rl_power_of_two(whole n)
{
    return rl_from_bits((whole)(((natural)n + BIAS) << FRACTION_BITS));
}

/* (exp(r) - 1 - r) / r², |r| ≤ ln 2 / 2: Taylor's series, in pairs, for a long chain of sums would be waited for. */
RL_INLINE real rl_exp_rest(real r)
{
    real r2 = r * r, r4 = r2 * r2;
    real low = ((real)(1.0 / 2) + r * (real)(1.0 / 6)) + ((real)(1.0 / 24) + r * (real)(1.0 / 120)) * r2;
#ifdef RL_DOUBLE
    real middle = (1.0 / 720 + r * (1.0 / 5040)) + (1.0 / 40320 + r * (1.0 / 362880)) * r2;
    real high = (1.0 / 3628800 + r * (1.0 / 39916800)) + (1.0 / 479001600 + r * (1.0 / 6227020800)) * r2;
    return low + (middle + high * r4) * r4;
#else
    return low + (1.0f / 720 + r * (1.0f / 5040)) * r4;
#endif
}

/* x = n ln 2 + r: returns r. NaN stays NaN, whatever n is then. */
RL_INLINE real rl_reduce(real x, whole *n)
{
    real shifted = x * LOG2_E + ROUNDER;
    *n = (whole)((natural)rl_bits(shifted) - (natural)rl_bits(ROUNDER));
    real k = shifted - ROUNDER;
    return (x - k * LN2_HIGH) - k * LN2_LOW;
}

RL_INLINE real rl_exp(real x)
{
    x = x < EXP_LEAST ? EXP_LEAST : x;
    x = x > EXP_MOST ? EXP_MOST : x;
    whole n;
    real r = rl_reduce(x, &n);
    real y = 1 + (r + r * r * rl_exp_rest(r));
    whole half = n >> 1; /* in two steps, for what is out of the range of normal numbers */
    return y * rl_power_of_two(half) * rl_power_of_two((whole)(n - half));
}

/* exp of what is not above 0; numbers too small to be normal are 0. */
RL_INLINE real rl_exp_below(real x)
{
    whole n;
    real r = rl_reduce(x, &n);
    real y = (1 + (r + r * r * rl_exp_rest(r))) * rl_power_of_two(n);
    return x < EXP_NORMAL ? 0 : y;
}

/* exp(x) - 1, for 0 ≤ x that is not large. */
RL_INLINE real rl_expm1(real x)
{
    whole n;
    real r = rl_reduce(x, &n);
    real scale = rl_power_of_two(n);
    return scale * (r + r * r * rl_exp_rest(r)) + (scale - 1);
}

/* exp(x) - 1 of anything. The lower bound leaves -1, and 2 to the -n stays a normal number. */
RL_INLINE real rl_expm1_of_any(real x)
{
    x = x < EXP_NORMAL ? EXP_NORMAL : x;
    x = x > EXP_MOST ? EXP_MOST : x;
    whole n;
    real r = rl_reduce(x, &n);
    whole half = n >> 1, least = n < FRACTION_BITS + 8 ? n : FRACTION_BITS + 8; /* what is less does not count beside 1 */
    real y = (1 - rl_power_of_two(-least)) + (r + r * r * rl_exp_rest(r));
    return y * rl_power_of_two(half) * rl_power_of_two((whole)(n - half));
}

/* log(1 + f), 1 + f between √½ and √2: 2 artanh of f / (2 + f), a series. */
RL_INLINE real rl_log_near_one(real f)
{
    real s = f / (2 + f), s2 = s * s, s4 = s2 * s2;
#ifdef RL_DOUBLE
    real s8 = s4 * s4;
    real low = (1.0 / 3 + s2 * (1.0 / 5)) + (1.0 / 7 + s2 * (1.0 / 9)) * s4;
    real high = (1.0 / 11 + s2 * (1.0 / 13)) + (1.0 / 15 + s2 * (1.0 / 17)) * s4;
    real rest = low + (high + (1.0 / 19 + s2 * (1.0 / 21)) * s8) * s8;
#else
    real rest = (1.0f / 3 + s2 * (1.0f / 5)) + (1.0f / 7 + s2 * (1.0f / 9)) * s4;
#endif
    return 2 * s + 2 * s * s2 * rest;
}

/* log(1 + x), 0 ≤ x ≤ 1; 1 + x itself would lose digits. */
RL_INLINE real rl_log1p(real x)
{
    int upper = x > ROOT_2 - 1;
    real y = rl_log_near_one(upper ? (x - 1) / 2 : x);
    return upper ? y + LN2_HIGH + LN2_LOW : y;
}

/* The logarithm of a normal number above 0, or of NaN, which stays. */
RL_INLINE real rl_log(real x)
{
    natural from_root = (natural)rl_bits(x) - (natural)rl_bits(ROOT_2 / 2);
    whole n = (whole)from_root >> FRACTION_BITS;
    real m = rl_from_bits((whole)((natural)rl_bits(x) - ((natural)n << FRACTION_BITS)));
    return (real)n * LN2_HIGH + ((real)n * LN2_LOW + rl_log_near_one(m - 1)) + (x - x);
}

/* The logarithm of anything: numbers too small to be normal are made larger first. */
RL_INLINE real rl_log_of_any(real x)
{
    const real small = sizeof(real) == 4 ? (real)0x1p-126 : (real)0x1p-1022;
    int tiny = x < small;
    real y = rl_log(tiny ? x * (real)0x1p60 : x) - (tiny ? (real)(60 * 0.69314718055994530942) : 0);
    y = x == INFINITY ? INFINITY : y;
    y = x == 0 ? -INFINITY : y;
    return x < 0 ? NAN : y;
}

/* log(1 + x): what 1 + x rounds away is put back. */
RL_INLINE real rl_log1p_of_any(real x)
{
    real u = 1 + x, y = rl_log_of_any(u) * (x / (u - 1));
    y = u == 1 ? x : y;
    return u == INFINITY || u == 0 ? rl_log_of_any(u) : y;
}

RL_INLINE real rl_tanh(real x)
{
    real size = rl_abs(x);
    size = size > TANH_MOST ? TANH_MOST : size;
    real t = rl_expm1(2 * size);
    t = t / (t + 2);
    return rl_copysign(t, x);
}

/* The error function; in single precision it is tanh of nearly a straight line, as in engine/special.py. */
RL_INLINE real rl_erf(real x)
{
#ifdef RL_DOUBLE
    return erf(x);
#else
    x = x > 4 ? 4 : x < -4 ? -4 : x; /* where it is 1 */
    real z = x * x;
    real high = (-0.0006197846220831376f + z * 8.763731101047008e-05f) + (-5.6684725765652535e-06f + z * 1.4185203208725223e-07f) * (z * z);
    real low = 1.1283792743054815f + z * (0.10276905580359244f + z * (-0.00019183083646785254f + z * high));
    return rl_tanh(x * low);
#endif
}

/* 1 / (1 + exp(-x)) and its slope, s (1 - s), without a difference that loses digits. */
RL_INLINE real rl_sigmoid(real x, real *slope)
{
    real e = rl_exp_below(-rl_abs(x)), s = 1 / (1 + e);
    *slope = e * s * s;
    return x < 0 ? e * s : s;
}

#endif
