/* Copies between any two layouts of memory. Where what lies side by side on one side does not on the other, square tiles are copied, so
   that each line of the cache that is read or written is used while it is there. */
#include "kernels.h"

enum { TILE = 16, CHUNK = 4096 };

typedef struct {
    const real *x;
    real *y;
    const int64_t *size, *from, *to; /* from, to: strides in elements */
    long dims, across;               /* across: the dimension that is tiled together with the last one */
    long tiles, chunks;
} copy;

static void copy_tile(const copy *t, const real *x, real *y, long rows, long columns)
{
    long from = t->from[t->dims - 1], to = t->to[t->dims - 1], next_from = t->from[t->across], next_to = t->to[t->across];
    if (from == 1 && to == 1)
        for (long row = 0; row < rows; row++)
            memcpy(y + row * next_to, x + row * next_from, sizeof(real) * (size_t)columns);
    else if (from == -1 && to == 1)
        for (long row = 0; row < rows; row++) {
            const real *last = x + row * next_from;
            real *restrict first = y + row * next_to;
            RL_SIMD
            for (long i = 0; i < columns; i++)
                first[i] = last[-i];
        }
    else if (from == 0)
        for (long row = 0; row < rows; row++) {
            real value = x[row * next_from], *restrict first = y + row * next_to;
            if (to == 1)
                RL_SIMD
                for (long i = 0; i < columns; i++)
                    first[i] = value;
            else
                for (long i = 0; i < columns; i++)
                    first[i * to] = value;
        }
    else
        for (long first = 0; first < columns; first += TILE) {
            long last = first + TILE < columns ? first + TILE : columns;
            for (long row = 0; row < rows; row++)
                for (long i = first; i < last; i++)
                    y[row * next_to + i * to] = x[row * next_from + i * from];
        }
}

static void copy_pieces(void *context, long begin, long end)
{
    const copy *t = context;
    for (long piece = begin; piece < end; piece++) {
        long chunk = piece % t->chunks * CHUNK, tile = piece / t->chunks % t->tiles * TILE, rest = piece / t->chunks / t->tiles;
        const real *x = t->x + tile * t->from[t->across] + chunk * t->from[t->dims - 1];
        real *y = t->y + tile * t->to[t->across] + chunk * t->to[t->dims - 1];
        long rows = t->size[t->across] - tile, columns = t->size[t->dims - 1] - chunk;
        for (long d = t->dims - 2; d >= 0; d--)
            if (d != t->across) {
                x += rest % t->size[d] * t->from[d], y += rest % t->size[d] * t->to[d];
                rest /= t->size[d];
            }
        copy_tile(t, x, y, rows < TILE ? rows : TILE, columns < CHUNK ? columns : CHUNK);
    }
}

/* lay(x, y, sizes, from, to): of two dimensions or more; y's strides get smaller from one to the next */
static int lay(const rl_call *c)
{
    copy t = {c->array[0], c->array[1], c->array[2], c->array[3], c->array[4], c->size[2], c->size[2] - 2, 0, 0};
    if (t.from[t.dims - 1] > 1 || t.from[t.dims - 1] < -1)
        for (long d = t.dims - 2; d >= 0; d--)
            if (t.from[d] && labs(t.from[d]) < labs(t.from[t.across]))
                t.across = d;
    t.tiles = (t.size[t.across] + TILE - 1) / TILE, t.chunks = (t.size[t.dims - 1] + CHUNK - 1) / CHUNK;
    long count = t.tiles * t.chunks, columns = t.size[t.dims - 1] < CHUNK ? t.size[t.dims - 1] : CHUNK;
    for (long d = 0; d < t.dims - 1; d++)
        if (d != t.across)
            count *= t.size[d];
    rl_share(copy_pieces, &t, count, rl_rows(columns * (t.size[t.across] < TILE ? t.size[t.across] : TILE)));
    return RL_OK;
}

/* -- conversions ------------------------------------------------------------------------------------------------- */

typedef struct {
    const void *x;
    void *y;
} conversion;

/* n: how many numbers there are. */
#define CONVERSION(name, from, to, n, formula)                                                                         \
    static void name##_pieces(void *context, long begin, long end)                                                     \
    {                                                                                                                  \
        const conversion *t = context;                                                                                 \
        const from *x = t->x;                                                                                          \
        to *restrict y = t->y;                                                                                         \
        RL_SIMD                                                                                                        \
        for (long i = begin; i < end; i++)                                                                             \
            y[i] = (to)formula(x[i]);                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static int name(const rl_call *c)                                                                                  \
    {                                                                                                                  \
        conversion t = {c->array[0], c->array[1]};                                                                     \
        rl_share(name##_pieces, &t, n, RL_PIECE);                                                                      \
        return RL_OK;                                                                                                  \
    }

CONVERSION(from_long, int64_t, real, c->size[0], )
CONVERSION(from_byte, uint8_t, real, c->size[0], )
CONVERSION(from_truth, uint8_t, real, c->size[0], !!) /* bytes seen as truths may be any */
CONVERSION(from_double, double, real, c->size[0], )
CONVERSION(to_long, real, int64_t, c->size[0], )
CONVERSION(to_double, real, double, c->size[0], )

/* -- half precision, which few processors compute in: only this is done with it ------------------------------------- */

RL_INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof x);
    return bits;
}

RL_INLINE float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { FLOAT_BIAS = 127, HALF_BIAS = 15, LOST = 13, EXPONENT = 23 }; /* LOST: the bits that a half has not */

/* What is smaller than a normal half is one with its lowest bits where those of 2 to the -14, or of a half, are. */
RL_INLINE float half_value(uint16_t half)
{
    const uint32_t infinite = (uint32_t)31 << EXPONENT;
    uint32_t rest = (uint32_t)(half & 0x7fff) << LOST, exponent = rest & infinite;
    uint32_t small = bits_of(of_bits(rest + ((uint32_t)(FLOAT_BIAS - HALF_BIAS + 1) << EXPONENT)) - 0x1p-14f);
    rest += (uint32_t)(FLOAT_BIAS - HALF_BIAS) << EXPONENT;
    rest += exponent == infinite ? (uint32_t)(FLOAT_BIAS - HALF_BIAS) << EXPONENT : 0;
    rest = exponent ? rest : small;
    return of_bits(rest | (uint32_t)(half & 0x8000) << 16);
}

/* Rounded to the nearest, to an even one between two. */
RL_INLINE uint16_t half_of(float x)
{
    uint32_t bits = bits_of(x), rest = bits & 0x7fffffff;
    uint32_t small = bits_of(of_bits(rest) + 0.5f) - bits_of(0.5f);
    uint32_t normal = rest - ((uint32_t)(FLOAT_BIAS - HALF_BIAS) << EXPONENT) + 0xfff + (rest >> LOST & 1);
    uint32_t large = rest > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t found = rest < bits_of(0x1p-14f) ? small : normal >> LOST;
    return (uint16_t)((rest < bits_of(0x1p16f) ? found : large) | (bits >> 16 & 0x8000));
}

RL_INLINE float brain_value(uint16_t brain) { return of_bits((uint32_t)brain << 16); }

RL_INLINE uint16_t brain_of(float x)
{
    uint32_t bits = bits_of(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded >> 16);
}

/* Halves come as bytes. */
CONVERSION(from_half, uint16_t, real, c->size[1], half_value)
CONVERSION(to_half, real, uint16_t, c->size[0], half_of)
CONVERSION(from_brain, uint16_t, real, c->size[1], brain_value)
CONVERSION(to_brain, real, uint16_t, c->size[0], brain_of)

RL_FAMILY(copies) = {
    {"lay", "sS qqq", lay},
    {"from_long", "qy", from_long},
    {"from_byte", "by", from_byte},
    {"from_truth", "by", from_truth},
    {"from_double", "qy", from_double}, /* doubles beside floats come as the words that they are */
    {"to_long", "xQ", to_long},
    {"to_double", "xQ", to_double},
    {"from_half", "by", from_half},
    {"to_half", "xB", to_half},
    {"from_brain", "by", from_brain},
    {"to_brain", "xB", to_brain},
    RL_END,
};
