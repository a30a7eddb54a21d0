/* Sums whose digits depend neither on the compiler nor on the instruction set: numbers are added in RL_WAYS lanes, each in
   its order, the lanes in pairs, and the totals of short stretches in double precision. The compiler keeps lanes in registers. */
#ifndef RL_SUMS_H
#define RL_SUMS_H

#include "kernels.h"

enum { RL_WAYS = 16, RL_STRETCH = 512 };

typedef real rl_lanes[RL_WAYS];

/* Does something for each i from first to last, where i is one of the numbers that `lane` adds up. */
#define RL_LANES(first, last, ...)                                                                                     \
    do {                                                                                                               \
        long lane_0 = first;                                                                                              \
        for (; lane_0 + RL_WAYS <= last; lane_0 += RL_WAYS)                                                                        \
            RL_SIMD                                                                                                    \
            for (int lane = 0; lane < RL_WAYS; lane++) {                                                                  \
                long i = lane_0 + lane;                                                                                   \
                __VA_ARGS__;                                                                                           \
            }                                                                                                          \
        for (int lane = 0; lane_0 + lane < last; lane++) {                                                                \
            long i = lane_0 + lane;                                                                                       \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } while (0)

RL_INLINE real rl_total(const real *part)
{
    real eight[8], four[4];
    for (int i = 0; i < 8; i++)
        eight[i] = part[i] + part[i + 8];
    for (int i = 0; i < 4; i++)
        four[i] = eight[i] + eight[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* The loop that follows is over stretches of 0 to n, each from first to last. */
#define RL_STRETCHES(n)                                                                                                \
    for (long first = 0, last; last = (n) - first < RL_STRETCH ? (n) : first + RL_STRETCH, first < (n); first = last)

/* The sum of a formula for i from 0 to n. */
#define RL_DEFINE_SUM(name, parameters, formula)                                                                       \
    RL_INLINE double name parameters                                                                                   \
    {                                                                                                                  \
        double total = 0;                                                                                              \
        RL_STRETCHES(n)                                                                                                \
        {                                                                                                              \
            rl_lanes part = {0};                                                                                          \
            RL_LANES(first, last, part[lane] += formula);                                                              \
            total += (double)rl_total(part);                                                                           \
        }                                                                                                              \
        return total;                                                                                                  \
    }

RL_DEFINE_SUM(rl_sum, (const real *x, long n), x[i])
RL_DEFINE_SUM(rl_abs_sum, (const real *x, long n), x[i] < 0 ? -x[i] : x[i])
RL_DEFINE_SUM(rl_dot, (const real *x, const real *y, long n), x[i] * y[i])
RL_DEFINE_SUM(rl_weighted_dot, (const real *x, const real *w, const real *y, long n), x[i] * w[i] * y[i])
RL_DEFINE_SUM(rl_square_sum, (const real *x, real mean, long n), (x[i] - mean) * (x[i] - mean))
RL_DEFINE_SUM(rl_dot_around, (const real *g, const real *x, real mean, long n), g[i] * (x[i] - mean))

#endif
