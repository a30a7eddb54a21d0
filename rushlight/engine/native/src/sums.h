/* Sums that stay exact for long arrays: short stretches several lanes at a time, their totals in double precision. */
#ifndef RL_SUMS_H
#define RL_SUMS_H

#include "kernels.h"

enum { STRETCH = 2048 };

/* The sum of a formula of x[i] (and y[i]) for i from 0 to n; the formula calls them by these names. */
#define RL_DEFINE_SUM(name, parameters, formula)                                                                       \
    RL_INLINE double name parameters                                                                                   \
    {                                                                                                                  \
        double total = 0;                                                                                              \
        for (long first = 0; first < n; first += STRETCH) {                                                            \
            long last = n - first < STRETCH ? n : first + STRETCH;                                                     \
            real part = 0;                                                                                             \
            RL_SUM(part)                                                                                               \
            for (long i = first; i < last; i++)                                                                        \
                part += formula;                                                                                       \
            total += part;                                                                                             \
        }                                                                                                              \
        return total;                                                                                                  \
    }

RL_DEFINE_SUM(rl_sum, (const real *x, long n), x[i])
RL_DEFINE_SUM(rl_dot, (const real *x, const real *y, long n), x[i] * y[i])
RL_DEFINE_SUM(rl_square_sum, (const real *x, real mean, long n), (x[i] - mean) * (x[i] - mean))
RL_DEFINE_SUM(rl_dot_around, (const real *g, const real *x, real mean, long n), g[i] * (x[i] - mean))

#endif
