/* Optimizer steps over all parameters of a group in one call: lists of parameters, of gradients, and of each part of the
   state, which are updated in place. The formulas are those of rushlight/optim. */
#include "tensors.h"

/* Array number `tensor` of list number `which`; all lists are of one length. */
#define PART(which) ((real *)c->array[(which) * c->list[0] + tensor])

static int over_tensors(const rl_call *c, rl_part *each) { return rl_over_tensors(each, (void *)c, c->size, c->list[0]); }

/* -- SGD ---------------------------------------------------------------------------------------------------------------- */

static void sgd_plain_update(void *call, long tensor, long begin, long end)
{
    const rl_call *c = call;
    real *restrict p = PART(0);
    const real *restrict g = PART(1);
    real rate = (real)c->number[0], decay = (real)c->number[1], sign = (real)c->number[2];
    RL_SIMD
    for (long i = begin; i < end; i++)
        p[i] += rate * (sign * g[i] + decay * p[i]);
}

/* p, g; rate, decay, sign */
static int sgd_plain(const rl_call *c) { return over_tensors(c, sgd_plain_update); }

static void sgd_update(void *call, long tensor, long begin, long end)
{
    const rl_call *c = call;
    real *restrict p = PART(0), *restrict buffer = PART(2);
    const real *restrict g = PART(1);
    real rate = (real)c->number[0], decay = (real)c->number[1], sign = (real)c->number[2];
    real momentum = (real)c->number[3], damped = (real)c->number[4];
    int nesterov = c->number[5] != 0;
    RL_SIMD
    for (long i = begin; i < end; i++) {
        real incoming = sign * g[i] + decay * p[i];
        buffer[i] = momentum * buffer[i] + damped * incoming;
        p[i] += rate * (nesterov ? momentum * buffer[i] + incoming : buffer[i]);
    }
}

/* p, g, buffer; rate, decay, sign, momentum, damped, nesterov */
static int sgd(const rl_call *c) { return over_tensors(c, sgd_update); }

/* -- Adam --------------------------------------------------------------------------------------------------------------- */

static void adam_update(void *call, long tensor, long begin, long end)
{
    const rl_call *c = call;
    real *restrict p = PART(0), *restrict mean = PART(2), *restrict square = PART(3);
    const real *restrict g = PART(1);
    real rate = (real)c->number[0], small = (real)c->number[1], keep1 = (real)c->number[2], new1 = (real)c->number[3];
    real keep2 = (real)c->number[4], new2 = (real)c->number[5];
    real sign = (real)c->number[6], decay = (real)c->number[7], shrink = (real)c->number[8];
    RL_SIMD
    for (long i = begin; i < end; i++) {
        real incoming = sign * g[i] + decay * p[i];
        mean[i] = keep1 * mean[i] + new1 * incoming;
        square[i] = keep2 * square[i] + new2 * (incoming * incoming);
        p[i] = shrink * p[i] + rate * (mean[i] / (rl_sqrt(square[i]) + small));
    }
}

/* p, g, mean, square; rate, small, beta1, 1 - beta1, beta2, 1 - beta2, sign, decay, shrink */
static int adam(const rl_call *c) { return over_tensors(c, adam_update); }

/* -- RMSprop, Adagrad, Adadelta ------------------------------------------------------------------------------------------ */

static void rmsprop_update(void *call, long tensor, long begin, long end)
{
    const rl_call *c = call;
    real *restrict p = PART(0), *restrict square = PART(2);
    const real *restrict g = PART(1);
    real rate = (real)c->number[0], eps = (real)c->number[1], keep = (real)c->number[2], new = (real)c->number[3];
    real sign = (real)c->number[4], decay = (real)c->number[5];
    RL_SIMD
    for (long i = begin; i < end; i++) {
        real incoming = sign * g[i] + decay * p[i];
        square[i] = keep * square[i] + new * (incoming * incoming);
        p[i] += rate * (incoming / (rl_sqrt(square[i]) + eps));
    }
}

/* p, g, square; rate, eps, alpha, 1 - alpha, sign, decay. With alpha = 1 - alpha = 1 this is Adagrad. */
static int rmsprop(const rl_call *c) { return over_tensors(c, rmsprop_update); }

static void adadelta_update(void *call, long tensor, long begin, long end)
{
    const rl_call *c = call;
    real *restrict p = PART(0), *restrict square = PART(2), *restrict moved = PART(3);
    const real *restrict g = PART(1);
    real rate = (real)c->number[0], eps = (real)c->number[1], keep = (real)c->number[2], new = (real)c->number[3];
    real sign = (real)c->number[4], decay = (real)c->number[5];
    RL_SIMD
    for (long i = begin; i < end; i++) {
        real incoming = sign * g[i] + decay * p[i];
        square[i] = keep * square[i] + new * (incoming * incoming);
        real delta = rl_sqrt(moved[i] + eps) / rl_sqrt(square[i] + eps) * incoming;
        moved[i] = keep * moved[i] + new * (delta * delta);
        p[i] += rate * delta;
    }
}

/* p, g, square, moved; rate, eps, rho, 1 - rho, sign, decay */
static int adadelta(const rl_call *c) { return over_tensors(c, adadelta_update); }

RL_FAMILY(optimizers) = {
    {"sgd_plain", "YX ddd", sgd_plain},
    {"sgd", "YXY dddddd", sgd},
    {"adam", "YXYY ddddddddd", adam},
    {"rmsprop", "YXY dddddd", rmsprop},
    {"adadelta", "YXYY dddddd", adadelta},
    RL_END,
};
