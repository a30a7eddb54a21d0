/* Formulas element by element: a list of steps, each an operation on whole blocks of numbers that stay in the first-level cache.
   What lies between two steps is never written to memory, and blocks are shared out to threads. */
#include "approximations.h"
#include "sums.h"
#include "tensors.h"

enum { BLOCK = 1024, REGISTERS = 48, WIDTH = 5 /* of a step: the operation, where its result goes, what it reads */ };

/* In the order of OPERATIONS in numpy/kernels/chains.py. A truth value is 1 or 0. */
enum {
    ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, AND, OR, NOT, WHERE,
    NEGATIVE, ABSOLUTE, SQRT, EXP, LOG, LOG1P, EXPM1, TANH, SIGMOID, SIGN, ERF,
};

typedef struct {
    const int64_t *step, *size, *stride; /* stride: of each input along each dimension, in elements */
    long steps, inputs, constants, dims, registers, count;
    double *sums; /* of the results of each piece, or NULL; then these are not kept */
    const void *input[REGISTERS];
    int is_truth[REGISTERS], is_whole[REGISTERS]; /* whole: has a number for each result, in order */
    const real *constant;
    real *out;
    unsigned char *truths; /* or NULL: which of the two is written */
    int no_memory;
} chain;

RL_INLINE real sigmoid_of(real x)
{
    real slope;
    return rl_sigmoid(x, &slope);
}

#define EACH(formula)                                                                                                  \
    RL_SIMD for (long i = 0; i < n; i++) to[i] = formula;                                                              \
    break

static void do_step(int64_t operation, real *to, const real *a, const real *b, const real *c, long n)
{
    switch (operation) {
    case ADD: EACH(a[i] + b[i]);
    case SUBTRACT: EACH(a[i] - b[i]);
    case MULTIPLY: EACH(a[i] * b[i]);
    case DIVIDE: EACH(a[i] / b[i]);
    case MAXIMUM: EACH(((a[i] > b[i]) | (a[i] != a[i])) ? a[i] : b[i]); /* NaN stays */
    case MINIMUM: EACH(((a[i] < b[i]) | (a[i] != a[i])) ? a[i] : b[i]);
    case LESS: EACH(a[i] < b[i] ? 1 : 0);
    case LESS_EQUAL: EACH(a[i] <= b[i] ? 1 : 0);
    case EQUAL: EACH(a[i] == b[i] ? 1 : 0);
    case NOT_EQUAL: EACH(a[i] != b[i] ? 1 : 0);
    case AND: EACH(a[i] * b[i]);
    case OR: EACH(a[i] > b[i] ? a[i] : b[i]);
    case NOT: EACH(1 - a[i]);
    case WHERE: EACH(a[i] != 0 ? b[i] : c[i]);
    case NEGATIVE: EACH(-a[i]);
    case ABSOLUTE: EACH(rl_abs(a[i]));
    case SQRT: EACH(rl_sqrt(a[i]));
    case EXP: EACH(rl_exp(a[i]));
    case LOG: EACH(rl_log_of_any(a[i]));
    case LOG1P: EACH(rl_log1p_of_any(a[i]));
    case EXPM1: EACH(rl_expm1_of_any(a[i]));
    case TANH: EACH(rl_tanh(a[i]));
    case SIGMOID: EACH(sigmoid_of(a[i]));
    case SIGN: EACH((real)(a[i] > 0) - (real)(a[i] < 0));
    case ERF: EACH(rl_erf(a[i]));
    }
}

/* Which of the two operands is one number for a whole row, where a formula is one such step; -1 if none is. */
static long repeated(const chain *t)
{
    if (t->steps == 1 && t->step[0] <= DIVIDE)
        for (long k = 0; k < 2; k++) {
            long which = t->step[2 + k];
            if (which < t->inputs && which != t->step[3 - k] && !t->is_truth[which] && !t->stride[(which + 1) * t->dims - 1])
                return k;
        }
    return -1;
}

/* The step with that number, which is not spread out before. */
static void do_with_one(int64_t operation, real *to, const real *a, const real *b, long n, long which)
{
    real one = which ? *b : *a;
    a = which ? a : b;
    switch (2 * operation + which) {
    case 2 * ADD:
    case 2 * ADD + 1: EACH(a[i] + one);
    case 2 * SUBTRACT: EACH(one - a[i]);
    case 2 * SUBTRACT + 1: EACH(a[i] - one);
    case 2 * MULTIPLY:
    case 2 * MULTIPLY + 1: EACH(a[i] * one);
    case 2 * DIVIDE: EACH(one / a[i]);
    case 2 * DIVIDE + 1: EACH(a[i] / one);
    }
}

static void copy_reals(real *to, const real *from, long stride, long n)
{
    if (stride == 1)
        memcpy(to, from, sizeof(real) * (size_t)n);
    else if (stride) {
        RL_SIMD
        for (long i = 0; i < n; i++)
            to[i] = from[i * stride];
    } else {
        real value = *from;
        RL_SIMD
        for (long i = 0; i < n; i++)
            to[i] = value;
    }
}

static void copy_truths(real *to, const unsigned char *from, long stride, long n)
{
    RL_SIMD
    for (long i = 0; i < n; i++)
        to[i] = from[i * stride] != 0; /* bytes seen as truths may be any */
}

static void write_truths(unsigned char *restrict to, const real *restrict from, long n)
{
    RL_SIMD
    for (long i = 0; i < n; i++)
        to[i] = from[i] != 0;
}

/* Where an input's number for a result lies. */
static long place_of(const chain *t, long which, long result)
{
    const int64_t *stride = t->stride + which * t->dims;
    long at = 0;
    for (long d = t->dims - 1; d >= 0; result /= t->size[d--])
        at += result % t->size[d] * stride[d];
    return at;
}

/* An input's numbers for the results from begin on, n of them: where they lie side by side, or copied to `to`, row by row. */
static const real *gather(const chain *t, long which, long begin, long n, real *to)
{
    long inner = t->size[t->dims - 1], step = t->stride[(which + 1) * t->dims - 1];
    for (long done = 0, count; done < n; done += count, begin += count) {
        long offset = begin % inner, at = place_of(t, which, begin);
        count = inner - offset < n - done ? inner - offset : n - done;
        if (t->is_truth[which])
            copy_truths(to + done, (const unsigned char *)t->input[which] + at, step, count);
        else if (step == 1 && count == n)
            return (const real *)t->input[which] + at;
        else
            copy_reals(to + done, (const real *)t->input[which] + at, step, count);
    }
    return to;
}

/* How many results from begin on are a block, of those that are left: it ends where a long row does, so that what lies side by
   side there needs no copy. */
static long block_of(const chain *t, long begin, long left)
{
    long inner = t->size[t->dims - 1], n = left < BLOCK ? left : BLOCK, row = inner - begin % inner;
    return inner >= BLOCK / 4 && row < n ? row : n;
}

/* Memory for all registers, of blocks that are at most n long, with the constants in theirs; 0 if there is none. */
static int prepare(chain *t, real **to, const real **at, long n)
{
    real *room = rl_scratch(sizeof(real) * BLOCK * (size_t)t->registers);
    if (!room) {
        t->no_memory = 1;
        return 0;
    }
    for (long r = 0; r < t->registers; r++)
        at[r] = to[r] = room + r * BLOCK;
    for (long k = 0; k < t->constants; k++)
        for (long i = 0; i < (n < BLOCK ? n : BLOCK); i++)
            to[t->inputs + k][i] = t->constant[k];
    return 1;
}

static void do_steps(const chain *t, real **to, const real **at, long n)
{
    for (long s = 0; s < t->steps; s++) {
        const int64_t *step = t->step + s * WIDTH;
        do_step(step[0], to[step[1]], at[step[2]], at[step[3]], at[step[4]], n);
    }
}

static void chain_piece(void *context, long begin, long end)
{
    chain *t = context;
    const real *at[REGISTERS];
    real *to[REGISTERS];
    if (!prepare(t, to, at, end - begin))
        return;
    int64_t last = t->step[(t->steps - 1) * WIDTH + 1];
    double *sum = t->sums ? t->sums + begin / RL_PIECE : NULL;
    long in_rows = t->size[t->dims - 1] >= BLOCK / 4 ? repeated(t) : -1; /* a block is part of one row then */
    for (long n; begin < end; begin += n) {
        n = block_of(t, begin, end - begin);
        for (long r = 0; r < t->inputs; r++)
            if (in_rows >= 0 && r == t->step[2 + in_rows])
                at[r] = (const real *)t->input[r] + place_of(t, r, begin);
            else
                at[r] = t->is_whole[r] ? (const real *)t->input[r] + begin : gather(t, r, begin, n, to[r]);
        if (!t->truths && !t->sums)
            to[last] = t->out + begin;
        if (in_rows >= 0)
            do_with_one(t->step[0], to[last], at[t->step[2]], at[t->step[3]], n, in_rows);
        else
            do_steps(t, to, at, n);
        if (sum)
            *sum += rl_sum(to[last], n);
        if (t->truths)
            write_truths(t->truths + begin, to[last], n);
    }
}

/* A sum over all: the pieces' sums are added in their order. */
static int total_of(chain *t)
{
    long pieces = (t->count + RL_PIECE - 1) / RL_PIECE;
    double total = 0;
    t->sums = calloc((size_t)pieces, sizeof(double));
    if (!t->sums)
        return RL_NO_MEMORY;
    rl_parallel(chain_piece, t, t->count, RL_PIECE);
    for (long i = 0; i < pieces; i++)
        total += t->sums[i];
    t->out[0] = (real)total;
    free(t->sums);
    return t->no_memory ? RL_NO_MEMORY : RL_OK;
}

/* chain(steps, up to six inputs and two masks, out, truths, sizes, strides, constants, registers, is_total): registers are the
   inputs, the constants, and what steps write. The last step's is of its own, and no other reads it. */
static int chain_(const rl_call *c)
{
    enum { INPUTS = 8, OUT = 1 + INPUTS };
    chain t = {.step = c->array[0], .steps = c->size[0] / WIDTH, .registers = c->integer[0], .count = 1};
    t.out = c->array[OUT], t.truths = c->array[OUT + 1];
    t.size = c->array[OUT + 2], t.dims = c->size[OUT + 2], t.stride = c->array[OUT + 3];
    t.constant = c->array[OUT + 4], t.constants = c->size[OUT + 4];
    for (long d = 0; d < t.dims; d++)
        t.count *= t.size[d];
    for (long i = 0; i < INPUTS; i++)
        if (c->array[1 + i]) {
            t.is_truth[t.inputs] = i >= INPUTS - 2;
            t.input[t.inputs++] = c->array[1 + i];
        }
    for (long r = 0; r < t.inputs; r++)
        for (long d = t.dims - 1, step = 1; d >= 0 && !t.is_truth[r]; step *= t.size[d--])
            t.is_whole[r] = t.stride[r * t.dims + d] == step && (d == t.dims - 1 || t.is_whole[r]);
    if (c->integer[1])
        return total_of(&t);
    rl_share(chain_piece, &t, t.count, RL_PIECE);
    return t.no_memory ? RL_NO_MEMORY : RL_OK;
}

/* -- of many arrays in place ----------------------------------------------------------------------------------------- */

typedef struct {
    chain chain;
    void *const *read, *const *written; /* the arrays of the first input, those of the second one, … */
    const int64_t *result;              /* of what is written: its register, and whether steps write it there at once */
    long tensors, results;
} updates;

static void update_piece(void *context, long tensor, long begin, long end)
{
    updates *u = context;
    chain *t = &u->chain;
    const real *at[REGISTERS];
    real *to[REGISTERS];
    if (!prepare(t, to, at, end - begin))
        return;
    for (long n; begin < end; begin += n) {
        n = end - begin < BLOCK ? end - begin : BLOCK;
        for (long r = 0; r < t->inputs; r++)
            at[r] = (const real *)u->read[r * u->tensors + tensor] + begin;
        for (long k = 0; k < u->results; k++)
            if (u->result[2 * k + 1])
                at[u->result[2 * k]] = to[u->result[2 * k]] = (real *)u->written[k * u->tensors + tensor] + begin;
        do_steps(t, to, at, n);
        for (long k = 0; k < u->results; k++)
            if (!u->result[2 * k + 1])
                memcpy((real *)u->written[k * u->tensors + tensor] + begin, at[u->result[2 * k]], sizeof(real) * (size_t)n);
    }
}

/* updates(written, read, steps, results, constants, registers): a formula for the elements of each of many groups of arrays,
   which are of one size. No input's register is a result; what is written at once is an input that no later step reads. */
static int updates_(const rl_call *c)
{
    long written = c->list[0], read = c->list[1], steps = written + read;
    updates u = {.written = c->array, .read = c->array + written, .result = c->array[steps + 1], .results = c->size[steps + 1] / 2};
    u.tensors = written / u.results;
    u.chain = (chain){.step = c->array[steps], .steps = c->size[steps] / WIDTH, .registers = c->integer[0]};
    u.chain.inputs = u.tensors ? read / u.tensors : 0;
    u.chain.constant = c->array[steps + 2], u.chain.constants = c->size[steps + 2];
    int status = rl_over_tensors(update_piece, &u, c->size, u.tensors);
    return u.chain.no_memory ? RL_NO_MEMORY : status;
}

RL_FAMILY(chains) = {
    {"updates", "YX qqx i", updates_},
    {"chain", "qs?s?s?s?s?s?b?b?y?B?qqx ii", chain_},
    RL_END,
};
