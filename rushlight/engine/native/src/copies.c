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

#define CONVERSION(name, from, to, of)                                                                                 \
    static void name##_pieces(void *context, long begin, long end)                                                     \
    {                                                                                                                  \
        const conversion *t = context;                                                                                 \
        const from *x = t->x;                                                                                          \
        to *restrict y = t->y;                                                                                         \
        RL_SIMD                                                                                                        \
        for (long i = begin; i < end; i++)                                                                             \
            y[i] = (to)of(x[i]);                                                                                       \
    }                                                                                                                  \
                                                                                                                       \
    static int name(const rl_call *c)                                                                                  \
    {                                                                                                                  \
        conversion t = {c->array[0], c->array[1]};                                                                     \
        rl_share(name##_pieces, &t, c->size[0], RL_PIECE);                                                             \
        return RL_OK;                                                                                                  \
    }

CONVERSION(from_long, int64_t, real, )
CONVERSION(from_byte, uint8_t, real, )
CONVERSION(from_truth, uint8_t, real, !!) /* bytes seen as truths may be any */
CONVERSION(from_double, double, real, )
CONVERSION(to_long, real, int64_t, )
CONVERSION(to_double, real, double, )

RL_FAMILY(copies) = {
    {"lay", "sS qqq", lay},
    {"from_long", "qy", from_long},
    {"from_byte", "by", from_byte},
    {"from_truth", "by", from_truth},
    {"from_double", "qy", from_double}, /* doubles beside floats come as the words that they are */
    {"to_long", "xQ", to_long},
    {"to_double", "xQ", to_double},
    RL_END,
};
