/* The words of MT19937 (Matsumoto and Nishimura, 1998, https://doi.org/10.1145/272991.272995) and what is made of them;
   and those of Philox, which compiled programs draw.

   A state is 624 words and the position of the next one to use; at 624 new ones are made of the old. */
#include "kernels.h"

enum { LENGTH = 624, MIDDLE = 397 };

static inline uint32_t twisted(uint32_t high, uint32_t low)
{
    uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (mixed >> 1) ^ (-(mixed & 1u) & 0x9908b0dfu);
}

static void twist(uint32_t *state)
{
    for (int i = 0; i < LENGTH - MIDDLE; i++)
        state[i] = state[i + MIDDLE] ^ twisted(state[i], state[i + 1]);
#pragma omp simd safelen(128) /* what is read was written 227 steps before */
    for (int i = LENGTH - MIDDLE; i < LENGTH - 1; i++)
        state[i] = state[i + MIDDLE - LENGTH] ^ twisted(state[i], state[i + 1]);
    state[LENGTH - 1] = state[MIDDLE - 1] ^ twisted(state[LENGTH - 1], state[0]);
}

static inline uint32_t tempered(uint32_t word)
{
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680u;
    word ^= word << 15 & 0xefc60000u;
    return word ^ word >> 18;
}

static void draw(uint32_t *state, uint32_t *restrict out, long count)
{
    while (count > 0) {
        if (state[LENGTH] >= LENGTH) {
            twist(state);
            state[LENGTH] = 0;
        }
        const uint32_t *restrict from = state + state[LENGTH];
        long many = LENGTH - (long)state[LENGTH];
        if (many > count)
            many = count;
        RL_SIMD
        for (long i = 0; i < many; i++)
            out[i] = tempered(from[i]);
        state[LENGTH] += (uint32_t)many;
        out += many, count -= many;
    }
}

/* state, seed: the state before the first draw */
static int seed_words(const rl_call *c)
{
    uint32_t *state = c->array[0];
    state[0] = (uint32_t)c->integer[0];
    for (uint32_t i = 1; i < LENGTH; i++)
        state[i] = 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + i;
    state[LENGTH] = LENGTH;
    return RL_OK;
}

/* state, out */
static int random_words(const rl_call *c)
{
    draw(c->array[0], c->array[1], c->size[1]);
    return RL_OK;
}

enum { CHUNK = 512 }; /* numbers at a time, made of words that are still in the cache */

static const uint64_t BITS_53 = ((uint64_t)1 << 53) - 1;

/* 53 bits of two words, the first on top, for CHUNK numbers or what is left of them. */
static void draw_long(uint32_t *state, uint64_t *restrict out, long count)
{
    draw(state, (uint32_t *)out, 2 * count);
    RL_SIMD
    for (long i = 0; i < count; i++)
        out[i] = (out[i] << 32 | out[i] >> 32) & BITS_53;
}

/* state, out, p: whether a uniform number of 53 bits is less than p */
static int random_below(const rl_call *c)
{
    uint8_t *restrict out = c->array[1];
    uint64_t drawn[CHUNK], limit = (uint64_t)ceil(c->number[0] * 0x1p53);
    for (long first = 0; first < c->size[1]; first += CHUNK) {
        long many = c->size[1] - first < CHUNK ? c->size[1] - first : CHUNK;
        draw_long(c->array[0], drawn, many);
        RL_SIMD
        for (long i = 0; i < many; i++)
            out[first + i] = drawn[i] < limit;
    }
    return RL_OK;
}

/* state, out: uniform in [0, 1); 24 bits of a word for float, 53 of two for double */
static int random_uniform(const rl_call *c)
{
    real *restrict out = c->array[1];
    for (long first = 0; first < c->size[1]; first += CHUNK) {
        long many = c->size[1] - first < CHUNK ? c->size[1] - first : CHUNK;
#ifdef RL_DOUBLE
        uint64_t drawn[CHUNK];
        draw_long(c->array[0], drawn, many);
        for (long i = 0; i < many; i++)
            out[first + i] = (double)(int64_t)drawn[i] * 0x1p-53;
#else
        uint32_t drawn[CHUNK];
        draw(c->array[0], drawn, many);
        for (long i = 0; i < many; i++)
            out[first + i] = (float)(int32_t)(drawn[i] & 0xffffffu) * 0x1p-24f;
#endif
    }
    return RL_OK;
}

/* -- Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, 2011, https://doi.org/10.1145/2063384.2063405) --------------- */

enum { LOOPS = 10, SOME = 1024 };

static const uint64_t LOW = 0xffffffffu;

/* The four words of each counter (low + i, high) for begin <= i < end, as XLA's generator has them. */
static void philox_pieces(void *context, long begin, long end)
{
    const rl_call *c = context;
    const uint32_t *seed = c->array[0];
    uint64_t *restrict out = c->array[1];
    const uint64_t low = seed[2] | (uint64_t)seed[3] << 32, high = seed[0] | (uint64_t)seed[1] << 32;
    const uint32_t first_key = seed[0], other_key = seed[1];
    RL_SIMD
    for (long i = begin; i < end; i++) { /* each word in 64 bits, as its products are */
        uint64_t counter = low + (uint64_t)i, above = high + (counter < low);
        uint64_t a = counter & LOW, b = counter >> 32, d = above & LOW, e = above >> 32;
        uint32_t key = first_key, other = other_key;
#pragma GCC unroll 10
        for (int loop = 0; loop < LOOPS; loop++) {
            uint64_t first = a * 0xd2511f53u, second = d * 0xcd9e8d57u;
            a = (second >> 32) ^ b ^ key, b = second & LOW;
            d = (first >> 32) ^ e ^ other, e = first & LOW;
            key += 0x9e3779b9u, other += 0xbb67ae85u;
        }
        out[2 * i] = a | b << 32, out[2 * i + 1] = d | e << 32;
    }
}

/* seed, of four words; out, of a multiple of four */
static int philox(const rl_call *c)
{
    rl_parallel(philox_pieces, (void *)c, c->size[1] / 4, SOME);
    return RL_OK;
}

/* -- Threefry 2x32-20, of the same paper: JAX's way from one key to the next -------------------------------------- */

RL_INLINE uint32_t turned(uint32_t word, int by) { return word << by | word >> (32 - by); }

/* The words of the counter (0, number) by the key of two words. */
static void threefry(const uint32_t *key, uint32_t number, uint32_t *out)
{
    static const int by[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bdau};
    uint32_t x = keys[0], y = number + keys[1];
    for (uint32_t round = 0; round < 5; round++) {
        for (int i = 0; i < 4; i++)
            x += y, y = turned(y, by[round % 2][i]) ^ x;
        x += keys[(round + 1) % 3], y += keys[(round + 2) % 3] + round + 1;
    }
    out[0] = x, out[1] = y;
}

/* key, of four words; out, of four; number */
static int fold_in(const rl_call *c)
{
    for (int half = 0; half < 2; half++)
        threefry((const uint32_t *)c->array[0] + 2 * half, (uint32_t)c->integer[0], (uint32_t *)c->array[1] + 2 * half);
    return RL_OK;
}

static void drop_piece(void *context, long begin, long end)
{
    const rl_call *c = context;
    const real *restrict x = c->array[0];
    const uint8_t *restrict mask = c->array[1];
    real *restrict y = c->array[2], scale = (real)c->number[0];
    RL_SIMD
    for (long i = begin; i < end; i++)
        y[i] = x[i] * (real)mask[i] * scale; /* not a choice: infinities that are dropped are NaN, as in the rule */
}

static void drop_rows(void *context, long begin, long end)
{
    const rl_call *c = context;
    const uint8_t *mask = c->array[1];
    real scale = (real)c->number[0];
    long size = c->size[0] / c->size[1];
    for (long row = begin; row < end; row++) {
        const real *restrict x = (const real *)c->array[0] + row * size;
        real *restrict y = (real *)c->array[2] + row * size, kept = (real)mask[row];
        RL_SIMD
        for (long i = 0; i < size; i++)
            y[i] = x[i] * kept * scale;
    }
}

/* x, mask, of each element or of each stretch of as many as there are to one; y; scale */
static int drop(const rl_call *c)
{
    if (c->size[0] == c->size[1])
        rl_share(drop_piece, (void *)c, c->size[0], RL_PIECE);
    else
        rl_share(drop_rows, (void *)c, c->size[1], rl_rows(c->size[0] / c->size[1]));
    return RL_OK;
}

RL_FAMILY(random) = {
    {"seed_words", "U i", seed_words},
    {"random_words", "UU", random_words},
    {"random_below", "UB d", random_below},
    {"random_uniform", "Uy", random_uniform},
    {"philox", "uU", philox},
    {"fold_in", "uU i", fold_in},
    {"drop", "xby d", drop},
    RL_END,
};
