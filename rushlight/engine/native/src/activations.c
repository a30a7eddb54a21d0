#include "kernels.h"

static void relu_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    const real *x = c->array[0];
    real *y = c->array[1];
    RL_SIMD
    for (long i = begin; i < end; i++)
        y[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays */
}

static int relu(const rl_call *c)
{
    rl_parallel(relu_piece, (void *)c, c->size[0], RL_PIECE);
    return RL_OK;
}

RL_FAMILY(activations) = {
    {"relu", "xy", relu},
    RL_END,
};
