/* The steps of small programs (player.c): what XLA's primitives do, on operands that lie in memory in any way.

   Their names begin with a dot: they are no functions of the Python module. A step takes no letters; its integers are

       rank, the sizes of the loop, the strides in bytes of each operand in turn, and what else the step wants (rest).

   The last operand is written. Nothing is empty, and no sizes are looked at here: compiler/score.py vouches for them.
   Steps on reals are those of the family's dtype; the others say theirs: i int32, q int64, b bool, u uint32. */
#include <float.h>

#include "approximations.h"
#include "kernels.h"
#include "sums.h"

enum { OPERANDS = 4, DIMENSIONS = 8 };

/* One row of a loop: n elements, the first of each operand at p, the next one a step further. */
typedef void row(long n, char *const *p, const long *step, const long *rest, const double *number);

static int walk(const rl_call *call, int operands, row *f)
{
    long rank = call->integer[0], last = rank - 1;
    const long *shape = call->integer + 1, *stride = shape + rank, *rest = stride + operands * rank;
    long index[DIMENSIONS] = {0}, step[OPERANDS];
    char *p[OPERANDS];
    for (int o = 0; o < operands; o++)
        p[o] = call->array[o], step[o] = stride[o * rank + last];
    for (;;) {
        f(shape[last], p, step, rest, call->number);
        long d = last - 1;
        for (; d >= 0; d--) {
            for (int o = 0; o < operands; o++)
                p[o] += stride[o * rank + d];
            if (++index[d] < shape[d])
                break;
            for (int o = 0; o < operands; o++)
                p[o] -= stride[o * rank + d] * shape[d];
            index[d] = 0;
        }
        if (d < 0)
            return RL_OK;
    }
}

#define STEP(name, operands)                                                                                           \
    static int step_##name(const rl_call *call) { return walk(call, operands, name##_row); }
#define ROW(name) static void name##_row(long n, char *const *p, const long *step, const long *rest, const double *number)
#define AT(T, operand) (*(T *)(p[operand] + i * step[operand]))

/* However operands lie. */
#define ONE_BY_ONE(T, U, value)                                                                                        \
    for (long i = 0; i < n; i++) {                                                                                     \
        T x = AT(T, 0);                                                                                                \
        AT(U, 1) = value;                                                                                              \
    }
#define TWO_BY_TWO(T, U, value)                                                                                        \
    for (long i = 0; i < n; i++) {                                                                                     \
        T x = AT(T, 0), y = AT(T, 1);                                                                                  \
        AT(U, 2) = value;                                                                                              \
    }

#define UNARY(name, T, U, value)                                                                                       \
    ROW(name)                                                                                                          \
    {                                                                                                                  \
        if (step[0] == sizeof(T) && step[1] == sizeof(U)) {                                                            \
            const T *a = (const T *)p[0];                                                                              \
            U *made = (U *)p[1];                                                                                       \
            RL_SIMD for (long i = 0; i < n; i++) {                                                                     \
                T x = a[i];                                                                                            \
                made[i] = value;                                                                                       \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        ONE_BY_ONE(T, U, value)                                                                                        \
    }                                                                                                                  \
    STEP(name, 2)

/* Steps of 0, the number that all of a row meet, and of one element are known to the loop. */
#define BINARY(name, T, U, value)                                                                                      \
    ROW(name)                                                                                                          \
    {                                                                                                                  \
        const T *a = (const T *)p[0], *b = (const T *)p[1];                                                            \
        U *made = (U *)p[2];                                                                                           \
        int plain = step[2] == sizeof(U);                                                                              \
        if (plain && step[0] == sizeof(T) && step[1] == sizeof(T)) {                                                   \
            RL_SIMD for (long i = 0; i < n; i++) {                                                                     \
                T x = a[i], y = b[i];                                                                                  \
                made[i] = value;                                                                                       \
            }                                                                                                          \
        } else if (plain && step[0] == sizeof(T) && step[1] == 0) {                                                    \
            T y = *b;                                                                                                  \
            RL_SIMD for (long i = 0; i < n; i++) {                                                                     \
                T x = a[i];                                                                                            \
                made[i] = value;                                                                                       \
            }                                                                                                          \
        } else if (plain && step[0] == 0 && step[1] == sizeof(T)) {                                                    \
            T x = *a;                                                                                                  \
            RL_SIMD for (long i = 0; i < n; i++) {                                                                     \
                T y = b[i];                                                                                            \
                made[i] = value;                                                                                       \
            }                                                                                                          \
        } else {                                                                                                       \
            TWO_BY_TWO(T, U, value)                                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    STEP(name, 3)

/* rest: how many elements are reduced along two dimensions, and their strides. */
#define REDUCED(...)                                                                                                   \
    for (long v = 0; v < rest[2]; v++)                                                                                 \
        for (long u = 0; u < rest[0]; u++) {                                                                           \
            const char *at = p[0] + i * step[0] + u * rest[1] + v * rest[3];                                           \
            __VA_ARGS__                                                                                                   \
        }

#define REDUCE(name, T, A, first, value)                                                                               \
    ROW(name)                                                                                                          \
    {                                                                                                                  \
        for (long i = 0; i < n; i++) {                                                                                 \
            A y = first;                                                                                               \
            REDUCED(T x = *(const T *)at; y = value;)                                                                  \
            AT(T, 1) = (T)y;                                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    STEP(name, 2)

/* The place, an int64, of the element along rest[0] that is better than all before it. */
#define PLACE(name, T, better)                                                                                         \
    ROW(name)                                                                                                          \
    {                                                                                                                  \
        for (long i = 0; i < n; i++) {                                                                                 \
            T y = *(const T *)(p[0] + i * step[0]);                                                                    \
            int64_t place = 0;                                                                                         \
            REDUCED(T x = *(const T *)at; if (better) y = x, place = u;)                                               \
            AT(int64_t, 1) = place;                                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    STEP(name, 2)

/* Where indices lead to; rest: how many there are side by side, how far apart, whether those out of range are moved
   into it (else there is no such place), and for each the stride and the largest index. */
RL_INLINE char *led(char *base, const char *indices, const long *rest)
{
    for (long k = 0; k < rest[0]; k++) {
        int64_t index = *(const int64_t *)(indices + k * rest[1]);
        long most = rest[4 + 2 * k];
        if (index < 0 || index > most) {
            if (!rest[2])
                return NULL;
            index = index < 0 ? 0 : most;
        }
        base += index * rest[3 + 2 * k];
    }
    return base;
}

/* For each of a row: its place in an operand. Where all of a row have one index, that is looked at once. */
#define LED(operand, ...)                                                                                              \
    if (step[0] == 0) {                                                                                                \
        char *first = led(p[operand], p[0], rest);                                                                     \
        for (long i = 0; i < n; i++) {                                                                                 \
            char *place = first ? first + i * step[operand] : NULL;                                                    \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } else                                                                                                             \
        for (long i = 0; i < n; i++) {                                                                                 \
            char *place = led(p[operand] + i * step[operand], p[0] + i * step[0], rest);                               \
            __VA_ARGS__;                                                                                               \
        }

/* Both are read before one is chosen: to guess which one it is takes longer. */
#define CHOOSE(T, one, other)                                                                                          \
    RL_SIMD for (long i = 0; i < n; i++) {                                                                             \
        T no = one, yes = other;                                                                                       \
        made[i] = which[i] ? yes : no;                                                                                 \
    }

/* What all dtypes have; V is what a T stands for. Operands of gather, scatter and scatter_add are indices, then what is read; of
   select a bool first. */
#define ANY(name, T, V)                                                                                                \
    UNARY(copy##name, T, T, x)                                                                                         \
    ROW(select##name)                                                                                                  \
    {                                                                                                                  \
        const uint8_t *which = (const uint8_t *)p[0];                                                                  \
        const T *a = (const T *)p[1], *b = (const T *)p[2];                                                            \
        T *made = (T *)p[3];                                                                                           \
        int plain = step[0] == 1 && step[3] == sizeof(T);                                                              \
        if (plain && step[1] == sizeof(T) && step[2] == sizeof(T)) {                                                   \
            CHOOSE(T, a[i], b[i])                                                                                      \
        } else if (plain && step[1] == sizeof(T) && step[2] == 0) {                                                    \
            const T all = *b;                                                                                          \
            CHOOSE(T, a[i], all)                                                                                       \
        } else if (plain && step[1] == 0 && step[2] == sizeof(T)) {                                                    \
            const T all = *a;                                                                                          \
            CHOOSE(T, all, b[i])                                                                                       \
        } else if (plain && step[1] == 0 && step[2] == 0) {                                                            \
            const T if_not = *a, if_so = *b;                                                                           \
            CHOOSE(T, if_not, if_so)                                                                                   \
        } else                                                                                                         \
            for (long i = 0; i < n; i++) {                                                                             \
                T no = AT(T, 1), yes = AT(T, 2);                                                                       \
                AT(T, 3) = AT(uint8_t, 0) ? yes : no;                                                                  \
            }                                                                                                          \
    }                                                                                                                  \
    STEP(select##name, 4)                                                                                              \
    ROW(gather##name)                                                                                                  \
    {                                                                                                                  \
        LED(1, AT(T, 2) = place ? *(const T *)place : (T)*number)                                                      \
    }                                                                                                                  \
    STEP(gather##name, 3)                                                                                              \
    ROW(scatter##name)                                                                                                 \
    {                                                                                                                  \
        LED(2, if (place) *(T *)place = AT(T, 1))                                                                      \
    }                                                                                                                  \
    STEP(scatter##name, 3)                                                                                             \
    BINARY(eq##name, T, uint8_t, (V)x == (V)y)                                                                         \
    BINARY(ne##name, T, uint8_t, (V)x != (V)y)

#define NUMERIC(name, T, A)                                                                                            \
    ANY(name, T, T)                                                                                                    \
    BINARY(lt##name, T, uint8_t, x < y)                                                                                \
    BINARY(le##name, T, uint8_t, x <= y)                                                                               \
    BINARY(gt##name, T, uint8_t, x > y)                                                                                \
    BINARY(ge##name, T, uint8_t, x >= y)                                                                               \
    BINARY(max##name, T, T, x > y || x != x ? x : y)                                                                   \
    BINARY(min##name, T, T, x < y || x != x ? x : y)                                                                   \
    REDUCE(reduce_max##name, T, T, *(const T *)(p[0] + i * step[0]), x > y || x != x ? x : y)                          \
    REDUCE(reduce_min##name, T, T, *(const T *)(p[0] + i * step[0]), x < y || x != x ? x : y)                          \
    PLACE(argmax##name, T, x > y || (x != x && y == y))                                                                \
    PLACE(argmin##name, T, x < y || (x != x && y == y))                                                                \
    ROW(scatter_add##name)                                                                                             \
    {                                                                                                                  \
        LED(2, if (place) *(T *)place = (T)((A)*(T *)place + (A)AT(T, 1)))                                             \
    }                                                                                                                  \
    STEP(scatter_add##name, 3)                                                                                         \
    BINARY(add##name, T, T, (T)((A)x + (A)y))                                                                          \
    BINARY(sub##name, T, T, (T)((A)x - (A)y))                                                                          \
    BINARY(mul##name, T, T, (T)((A)x * (A)y))                                                                          \
    UNARY(neg##name, T, T, (T)(-(A)x))

NUMERIC(, real, real)
BINARY(div, real, real, x / y)
BINARY(pow, real, real, (real)pow(x, y))
REDUCE(reduce_sum, real, double, 0, y + x)
REDUCE(reduce_prod, real, double, 1, y * x)
UNARY(abs, real, real, rl_abs(x))
UNARY(sign, real, real, x > 0 ? 1 : x < 0 ? -1 : x)
UNARY(floor, real, real, (real)floor(x))
UNARY(ceil, real, real, (real)ceil(x))
UNARY(round, real, real, (real)rint(x))
UNARY(is_finite, real, uint8_t, x - x == 0)
UNARY(sqrt, real, real, rl_sqrt(x))
UNARY(rsqrt, real, real, 1 / rl_sqrt(x))
UNARY(exp, real, real, rl_exp(x))
UNARY(expm1, real, real, x == 0 ? x : rl_expm1_of_any(x))
UNARY(log, real, real, rl_log_of_any(x))
UNARY(log1p, real, real, rl_log1p_of_any(x))
UNARY(tanh, real, real, rl_tanh(x))
UNARY(logistic, real, real, 1 / (1 + rl_exp(-x)))
UNARY(erf, real, real, rl_erf(x))
UNARY(erfc, real, real, (real)erfc(x))
UNARY(sin, real, real, (real)sin(x))
UNARY(cos, real, real, (real)cos(x))

/* -- products ------------------------------------------------------------------------------------------------------- */

enum { TOGETHER = 4 };

/* Products of one row with some others, all along dense elements. */
RL_INLINE void products(int rows, long k, const real *a, const char *b, long next, char *made, long apart)
{
    rl_lanes part[TOGETHER] = {{0}};
    long whole_lanes = k - k % RL_WAYS;
    for (long i = 0; i < whole_lanes; i += RL_WAYS)
        for (int r = 0; r < rows; r++) {
            const real *y = (const real *)(b + r * next) + i;
            RL_SIMD for (int j = 0; j < RL_WAYS; j++) part[r][j] += a[i + j] * y[j];
        }
    for (int r = 0; r < rows; r++) {
        const real *y = (const real *)(b + r * next);
        real sum = whole_lanes ? rl_total(part[r]) : 0;
        for (long i = whole_lanes; i < k; i++)
            sum += a[i] * y[i];
        *(real *)(made + r * apart) = sum;
    }
}

typedef struct {
    long m, n, k, a_m, a_k, b_k, b_n, to_m, to_n; /* sizes and strides */
} product;

static void along_k(const product *d, const char *a, const char *b, char *made)
{
    for (long m = 0; m < d->m; m++, a += d->a_m, made += d->to_m) {
        long n = 0;
        for (; n + TOGETHER <= d->n; n += TOGETHER)
            products(TOGETHER, d->k, (const real *)a, b + n * d->b_n, d->b_n, made + n * d->to_n, d->to_n);
        for (; n < d->n; n++)
            products(1, d->k, (const real *)a, b + n * d->b_n, d->b_n, made + n * d->to_n, d->to_n);
    }
}

static void along_n(const product *d, const char *a, const char *b, char *made)
{
    for (long m = 0; m < d->m; m++) {
        real *to = (real *)(made + m * d->to_m);
        for (long k = 0; k < d->k; k++) {
            real x = *(const real *)(a + m * d->a_m + k * d->a_k);
            const real *y = (const real *)(b + k * d->b_k);
            if (k == 0)
                RL_SIMD for (long n = 0; n < d->n; n++) to[n] = x * y[n];
            else
                RL_SIMD for (long n = 0; n < d->n; n++) to[n] += x * y[n];
        }
    }
}

static void anyhow(const product *d, const char *a, const char *b, char *made)
{
    for (long m = 0; m < d->m; m++)
        for (long n = 0; n < d->n; n++) {
            real sum = 0;
            for (long k = 0; k < d->k; k++)
                sum += *(const real *)(a + m * d->a_m + k * d->a_k) * *(const real *)(b + k * d->b_k + n * d->b_n);
            *(real *)(made + m * d->to_m + n * d->to_n) = sum;
        }
}

ROW(dot)
{
    const product *d = (const product *)rest;
    long size = sizeof(real);
    for (long i = 0; i < n; i++) {
        const char *a = p[0] + i * step[0], *b = p[1] + i * step[1];
        char *made = p[2] + i * step[2];
        if (d->a_k == size && d->b_k == size && d->k >= RL_WAYS)
            along_k(d, a, b, made);
        else if (d->b_n == size && d->to_n == size)
            along_n(d, a, b, made);
        else
            anyhow(d, a, b, made);
    }
}
STEP(dot, 3)

/* -- whole numbers and truth; arithmetic wraps around, in unsigned numbers ------------------------------------------ */

#ifndef RL_DOUBLE

/* Random words, uint32, are compared, or made numbers: the bits of one from 1 to 2. */
BINARY(lt_u, uint32_t, uint8_t, x < y)
BINARY(or_u, uint32_t, uint32_t, x | y)
BINARY(shift_right_logical_u, uint32_t, uint32_t, y < 32 ? x >> y : 0)

/* Two polynomials by M. Giles (Approximating the erfinv function, GPU Computing Gems, 2012), which XLA has too. */
RL_INLINE float inverse_erf(float x)
{
    static const float middle[] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                                   -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f};
    static const float tail[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                                 -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f};
    float rest = (1 - x) * (1 + x), w = -rl_log(rest > FLT_MIN ? rest : FLT_MIN);
    float near = w - 2.5f, far = rl_sqrt(w > 0 ? w : 0) - 3, y = middle[0], z = tail[0];
    for (int i = 1; i < 9; i++)
        y = y * near + middle[i], z = z * far + tail[i];
    return rest > 0 ? (w < 5 ? y : z) * x : rest == 0 ? x * INFINITY : NAN;
}
UNARY(erf_inv, float, float, inverse_erf(x))

/* There are few of them: one loop will do. */
#undef UNARY
#undef BINARY
#define UNARY(name, T, U, value)                                                                                       \
    ROW(name)                                                                                                          \
    {                                                                                                                  \
        ONE_BY_ONE(T, U, value)                                                                                        \
    }                                                                                                                  \
    STEP(name, 2)
#define BINARY(name, T, U, value)                                                                                      \
    ROW(name)                                                                                                          \
    {                                                                                                                  \
        TWO_BY_TWO(T, U, value)                                                                                        \
    }                                                                                                                  \
    STEP(name, 3)

#define WHOLE(name, T, U)                                                                                              \
    NUMERIC(name, T, U)                                                                                                \
    REDUCE(reduce_sum##name, T, U, 0, y + (U)x)                                                                        \
    REDUCE(reduce_prod##name, T, U, 1, y *(U)x)                                                                        \
    UNARY(abs##name, T, T, x < 0 ? (T)(-(U)x) : x)                                                                     \
    UNARY(sign##name, T, T, (x > 0) - (x < 0))                                                                         \
    BINARY(and##name, T, T, x &y)                                                                                      \
    BINARY(or##name, T, T, x | y)                                                                                      \
    BINARY(xor##name, T, T, x ^ y)                                                                                     \
    UNARY(not##name, T, T, ~x)

WHOLE(_i, int32_t, uint32_t)
WHOLE(_q, int64_t, uint64_t)
/* Bytes that are seen as truths may be any. */
ANY(_b, uint8_t, _Bool)
BINARY(and_b, uint8_t, uint8_t, x && y)
BINARY(or_b, uint8_t, uint8_t, x || y)
BINARY(xor_b, uint8_t, uint8_t, !x != !y)
UNARY(not_b, uint8_t, uint8_t, !x)
REDUCE(reduce_and_b, uint8_t, _Bool, 1, y && x)
REDUCE(reduce_or_b, uint8_t, _Bool, 0, y || x)

/* A real as a whole number: nan is 0, what is out of range is the number next to it. */
#define INTO(T, most) (x != x ? 0 : x >= (double)most ? most : x <= -(double)most - 1 ? -most - 1 : (T)x)

#define FROM(name, T, V, i_value, q_value)                                                                             \
    UNARY(convert_##name##f, T, float, (float)(V)x)                                                                    \
    UNARY(convert_##name##d, T, double, (double)(V)x)                                                                  \
    UNARY(convert_##name##i, T, int32_t, i_value)                                                                      \
    UNARY(convert_##name##q, T, int64_t, q_value)                                                                      \
    UNARY(convert_##name##b, T, uint8_t, x != 0)

FROM(f, float, float, INTO(int32_t, INT32_MAX), INTO(int64_t, INT64_MAX))
FROM(d, double, double, INTO(int32_t, INT32_MAX), INTO(int64_t, INT64_MAX))
FROM(i, int32_t, int32_t, x, x)
FROM(q, int64_t, int64_t, (int32_t)x, x)
FROM(b, uint8_t, _Bool, (_Bool)x, (_Bool)x)

#endif

#define NAMED(name) {"." #name, "", step_##name},
#define ANY_NAMED(t) NAMED(copy##t) NAMED(select##t) NAMED(gather##t) NAMED(scatter##t) NAMED(eq##t) NAMED(ne##t)
#define NUMERIC_NAMED(t)                                                                                               \
    ANY_NAMED(t) NAMED(lt##t) NAMED(le##t) NAMED(gt##t) NAMED(ge##t) NAMED(max##t) NAMED(min##t)                       \
    NAMED(reduce_max##t) NAMED(reduce_min##t) NAMED(argmax##t) NAMED(argmin##t) NAMED(scatter_add##t) NAMED(add##t)    \
    NAMED(sub##t) NAMED(mul##t) NAMED(neg##t) NAMED(reduce_sum##t) NAMED(reduce_prod##t) NAMED(abs##t) NAMED(sign##t)
#define WHOLE_NAMED(t) NUMERIC_NAMED(t) NAMED(and##t) NAMED(or##t) NAMED(xor##t) NAMED(not##t)
#define FROM_NAMED(t) NAMED(convert_##t##f) NAMED(convert_##t##d) NAMED(convert_##t##i) NAMED(convert_##t##q) NAMED(convert_##t##b)

RL_FAMILY(steps) = {
    NUMERIC_NAMED()
    NAMED(div) NAMED(pow) NAMED(floor) NAMED(ceil) NAMED(round) NAMED(is_finite) NAMED(sqrt) NAMED(rsqrt) NAMED(exp)
    NAMED(expm1) NAMED(log) NAMED(log1p) NAMED(tanh) NAMED(logistic) NAMED(erf) NAMED(erfc) NAMED(sin) NAMED(cos)
    NAMED(dot)
#ifndef RL_DOUBLE
    WHOLE_NAMED(_i) WHOLE_NAMED(_q) ANY_NAMED(_b)
    NAMED(and_b) NAMED(or_b) NAMED(xor_b) NAMED(not_b) NAMED(reduce_and_b) NAMED(reduce_or_b)
    NAMED(lt_u) NAMED(or_u) NAMED(shift_right_logical_u) NAMED(erf_inv)
    FROM_NAMED(f) FROM_NAMED(d) FROM_NAMED(i) FROM_NAMED(q) FROM_NAMED(b)
#endif
    RL_END,
};
