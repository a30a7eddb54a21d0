/* How random numbers move with the parameters of their distribution: the series of engine/special.py, which says what they
   are, several numbers at a time. All sums are in double precision. */
#include "kernels.h"

enum { LANES = 16, BETWEEN = 4, MOST = 200000 }; /* numbers side by side; terms between two looks at what is left; terms */

#ifdef RL_DOUBLE
#define SMALL 1e-17
#else
#define SMALL 1e-10
#endif

RL_INLINE double digamma(double x)
{
    double total = 0;
    for (int k = 0; k < 8; k++)
        total += 1 / (x + k);
    double z = x + 8, i = 1 / (z * z);
    double series = 1.0 / 12;
    series = series * i - 691.0 / 32760;
    series = series * i + 1.0 / 132;
    series = series * i - 1.0 / 240;
    series = series * i + 1.0 / 252;
    series = series * i - 1.0 / 120;
    series = series * i + 1.0 / 12;
    return log(z) - 0.5 / z - i * series - total;
}

typedef struct {
    const real *x, *a, *total;
    real *y;
    long size;
} numbers;

/* -- shares of a Dirichlet draw -------------------------------------------------------------------------------------- */

typedef struct {
    double z[LANES], start[LANES], total[LANES], sign[LANES], low[LANES], offset[LANES], term[LANES], sum[LANES];
} shares;

/* Which of the two series, and its first term. Places without a slope get one that ends at once. */
static void begin_share(shares *s, int lane, double x, double a, double total)
{
    double logarithm = log(x), mean = digamma(a) - digamma(total);
    int low = x < 0.5 ? logarithm < mean + 1 / a || total * x < 8 : logarithm < mean && total * (1 - x) > 8;
    s->start[lane] = low ? a : total - a;
    s->z[lane] = low ? x : 1 - x;
    s->total[lane] = total;
    s->sign[lane] = low ? -1 : 1;
    s->low[lane] = low;
    s->offset[lane] = s->sign[lane] * (logarithm - mean) + (low ? 1 / a : 0);
    s->term[lane] = 1;
    s->sum[lane] = 0;
}

static void sum_shares(shares *s)
{
    for (long n = 0; n < MOST;) {
        for (int k = 0; k < BETWEEN; k++, n++)
            RL_SIMD
            for (int i = 0; i < LANES; i++) {
                double above = s->total[i] + (double)n, below = 1 / (s->start[i] + 1 + (double)n);
                s->sum[i] += s->term[i] * s->offset[i];
                s->offset[i] += s->sign[i] / above + s->low[i] * below;
                s->term[i] *= s->z[i] * above * below;
            }
        double left = 0; /* the terms left are less than a geometric series of this one */
        RL_SUM(left)
        for (int i = 0; i < LANES; i++) {
            double next = s->start[i] + 1 + (double)n, gap = next - s->z[i] * (s->total[i] + (double)n);
            left += s->term[i] * fabs(s->offset[i]) * next > SMALL * fabs(s->sum[i]) * gap ? 1.0 : 0.0;
        }
        if (left == 0)
            return;
    }
}

static void some_shares(void *context, long begin, long end)
{
    const numbers *all = context;
    shares s;
    for (long first = begin * LANES; first < end * LANES && first < all->size; first += LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            long i = first + lane;
            int inside = i < all->size && all->x[i] > 0 && all->a[i] > 0 && all->total[i] > all->a[i];
            begin_share(&s, lane, inside ? all->x[i] : 0.5, inside ? all->a[i] : 1, inside ? all->total[i] : 2);
            if (i < all->size)
                all->y[i] = inside ? all->x[i] : 0;
        }
        sum_shares(&s);
        for (int lane = 0; lane < LANES && first + lane < all->size; lane++)
            all->y[first + lane] = (real)(all->y[first + lane] / s.start[lane] * s.sum[lane]);
    }
}

/* dirichlet_slope(x, a, total, y), all of one size */
static int dirichlet_slope(const rl_call *c)
{
    numbers all = {c->array[0], c->array[1], c->array[2], c->array[3], c->size[0]};
    rl_parallel(some_shares, &all, (all.size + LANES - 1) / LANES, 8);
    return RL_OK;
}

/* -- gamma variates -------------------------------------------------------------------------------------------------- */

typedef struct {
    double a[LANES], x[LANES], offset[LANES], harmonic[LANES], term[LANES], sum[LANES];
} variates;

static void sum_variates(variates *v)
{
    for (long n = 1; n < MOST;) {
        double last[LANES];
        for (int k = 0; k < BETWEEN; k++, n++)
            RL_SIMD
            for (int i = 0; i < LANES; i++) {
                double below = 1 / (v->a[i] + (double)n);
                v->term[i] *= v->x[i] * below;
                v->harmonic[i] += below;
                last[i] = v->term[i] * (v->offset[i] - v->harmonic[i]);
                v->sum[i] += last[i];
            }
        double left = 0;
        RL_SUM(left)
        for (int i = 0; i < LANES; i++)
            left += fabs(last[i]) > SMALL * fabs(v->sum[i]) || v->a[i] + (double)n <= v->x[i] ? 1.0 : 0.0;
        if (left == 0)
            return;
    }
}

static void some_variates(void *context, long begin, long end)
{
    const numbers *all = context;
    variates v;
    for (long first = begin * LANES; first < end * LANES && first < all->size; first += LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            long i = first + lane < all->size ? first + lane : all->size - 1;
            v.a[lane] = all->a[i], v.x[lane] = all->x[i];
            v.offset[lane] = log(v.x[lane]) - digamma(v.a[lane]);
            v.term[lane] = v.harmonic[lane] = 1 / v.a[lane];
            v.sum[lane] = v.term[lane] * (v.offset[lane] - v.harmonic[lane]);
        }
        sum_variates(&v);
        for (int lane = 0; lane < LANES && first + lane < all->size; lane++)
            all->y[first + lane] = (real)(-v.x[lane] * v.sum[lane]);
    }
}

/* gamma_slope(a, x, y), all of one size */
static int gamma_slope(const rl_call *c)
{
    numbers all = {c->array[1], c->array[0], NULL, c->array[2], c->size[0]};
    rl_parallel(some_variates, &all, (all.size + LANES - 1) / LANES, 8);
    return RL_OK;
}

RL_FAMILY(slopes) = {
    {"dirichlet_slope", "xxxy", dirichlet_slope},
    {"gamma_slope", "xxy", gamma_slope},
    RL_END,
};
