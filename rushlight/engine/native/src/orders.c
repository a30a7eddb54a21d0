/* Order along rows: sorting, the first few, the one of a rank. Numbers are compared as whole numbers made of their bits, of which a
   NaN's is the largest and those of 0 and -0 are one; equal ones stay in the order in which they came. */
#include "kernels.h"

enum { DIGIT = 8, BUCKETS = 1 << DIGIT, DIGITS = 8 * sizeof(real) / DIGIT };
enum { FEW = 32, BLOCK = 32 };   /* so many are put in order one by one; so many are looked at together */
enum { KEPT_BYTES = 1 << 20 };   /* of memory that a thread may keep */

#define SIGN ((natural)1 << (8 * sizeof(real) - 1))
#define LARGEST (~(natural)0)

typedef struct {
    natural key, place;
} item;

typedef struct {
    const natural *x; /* the bits of floating point numbers, or, with is_whole, of signed whole ones */
    natural *value;   /* or NULL */
    int64_t *place;
    long n, k; /* how many a row has; how many of them are wanted, or which one */
    int descending, is_whole, without_nan, nan_first, no_memory;
} rows;

RL_INLINE natural key_of(natural bits, int is_whole, natural flip)
{
    const natural infinity = sizeof(real) == 4 ? (natural)0x7f800000u : (natural)0x7ff0000000000000u;
    natural size = bits & ~SIGN, key = bits & SIGN ? ~bits : bits | SIGN;
    key = size ? key : SIGN;
    key = size > infinity ? LARGEST : key;
    return (is_whole ? bits ^ SIGN : key) ^ flip;
}

static void *room_for(size_t bytes) { return bytes <= KEPT_BYTES ? rl_scratch(bytes) : malloc(bytes); }

static void leave(void *room, size_t bytes)
{
    if (bytes > KEPT_BYTES)
        free(room);
}

/* -- sorting ------------------------------------------------------------------------------------------------------------- */

static void insert_each(item *a, long n)
{
    for (long i = 1; i < n; i++) {
        item new = a[i];
        long j = i;
        for (; j > 0 && a[j - 1].key > new.key; j--)
            a[j] = a[j - 1];
        a[j] = new;
    }
}

/* Digit by digit from the last one; those that all have in common are left out. Returns which of the two has the result. */
static item *sorted(item *a, item *b, long n)
{
    if (n <= FEW) {
        insert_each(a, n);
        return a;
    }
    uint32_t count[DIGITS][BUCKETS] = {{0}};
    for (long i = 0; i < n; i++)
        for (int d = 0; d < (int)DIGITS; d++)
            count[d][a[i].key >> d * DIGIT & (BUCKETS - 1)]++;
    for (int d = 0; d < (int)DIGITS; d++) {
        uint32_t *to = count[d], before = 0;
        if (to[a[0].key >> d * DIGIT & (BUCKETS - 1)] == (uint32_t)n)
            continue;
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            uint32_t here = to[bucket];
            to[bucket] = before;
            before += here;
        }
        for (long i = 0; i < n; i++)
            b[to[a[i].key >> d * DIGIT & (BUCKETS - 1)]++] = a[i];
        item *swap = a;
        a = b, b = swap;
    }
    return a;
}

static void put(const rows *t, long row, const item *found, long count)
{
    const natural *x = t->x + row * t->n;
    int64_t *place = t->place + row * count;
    for (long i = 0; i < count; i++)
        place[i] = (int64_t)found[i].place;
    if (t->value)
        for (long i = 0; i < count; i++)
            t->value[row * count + i] = x[found[i].place];
}

static void sort_rows(void *context, long begin, long end)
{
    rows *t = context;
    size_t bytes = 2 * sizeof(item) * (size_t)t->n;
    item *a = room_for(bytes);
    if (!a) {
        t->no_memory = 1;
        return;
    }
    for (long row = begin; row < end; row++) {
        const natural *x = t->x + row * t->n, flip = t->descending ? LARGEST : 0;
        for (long i = 0; i < t->n; i++)
            a[i] = (item){key_of(x[i], t->is_whole, flip), (natural)i};
        put(t, row, sorted(a, a + t->n, t->n), t->n);
    }
    leave(a, bytes);
}

/* -- one of a rank ------------------------------------------------------------------------------------------------------- */

/* Which of n keys has the rank, counted from 0. Keys are counted in buckets, and those in whose bucket it is are gathered, in their
   order, and looked at again. */
static item of_rank(const natural *key, long n, long rank, item *left)
{
    natural low = LARGEST, high = 0;
    for (long i = 0; i < n; i++)
        low = key[i] < low ? key[i] : low, high = key[i] > high ? key[i] : high;
    long count = -1; /* in left; before that, all are */
    while (low < high && (count < 0 || count > FEW)) {
        int shift = 8 * (int)sizeof(natural) - DIGIT;
        while (shift && !((high - low) >> (shift + DIGIT - 1)))
            shift--;
        long many = count < 0 ? n : count, kept = 0, bucket = 0;
        uint32_t in[BUCKETS] = {0};
        for (long i = 0; i < many; i++)
            in[((count < 0 ? key[i] : left[i].key) - low) >> shift]++;
        for (; rank >= in[bucket]; bucket++)
            rank -= in[bucket];
        natural from = low;
        low = LARGEST, high = 0;
        for (long i = 0; i < many; i++) {
            item each = count < 0 ? (item){key[i], (natural)i} : left[i];
            if ((long)((each.key - from) >> shift) != bucket)
                continue;
            left[kept++] = each;
            low = each.key < low ? each.key : low, high = each.key > high ? each.key : high;
        }
        count = kept;
    }
    if (count < 0)
        return (item){key[rank], (natural)rank}; /* all are equal */
    if (low < high)
        insert_each(left, count);
    return left[rank];
}

static void make_keys(const rows *t, long row, natural *key, natural flip)
{
    const natural *x = t->x + row * t->n;
    if (t->is_whole)
        RL_SIMD
        for (long i = 0; i < t->n; i++)
            key[i] = key_of(x[i], 1, flip);
    else
        RL_SIMD
        for (long i = 0; i < t->n; i++)
            key[i] = key_of(x[i], 0, flip);
}

/* How many are NaN, and where the first is. */
static long nans_of(const natural *key, long n, long *first)
{
    long count = 0;
    for (long i = 0; i < n; i++)
        count += key[i] == LARGEST;
    for (*first = 0; count && key[*first] != LARGEST; (*first)++)
        ;
    return count;
}

static void pick_rows(void *context, long begin, long end)
{
    rows *t = context;
    size_t bytes = (sizeof(item) + sizeof(natural)) * (size_t)t->n;
    item *left = room_for(bytes);
    if (!left) {
        t->no_memory = 1;
        return;
    }
    natural *key = (natural *)(left + t->n);
    for (long row = begin; row < end; row++) {
        make_keys(t, row, key, 0);
        long first = 0, rank = t->k, nans = t->is_whole || !(t->nan_first || t->without_nan) ? 0 : nans_of(key, t->n, &first);
        if (t->without_nan)
            rank = t->n > nans ? (t->n - nans - 1) / 2 : 0;
        t->place[row] = nans && t->nan_first ? first : (int64_t)of_rank(key, t->n, rank, left).place;
        t->value[row] = t->x[row * t->n + t->place[row]];
    }
    leave(left, bytes);
}

/* -- the first few ------------------------------------------------------------------------------------------------------- */

/* The k first of a row: blocks in which none is before the last of them are passed over. */
static void first_few(const rows *t, const natural *x, item *best)
{
    natural key[BLOCK], flip = t->descending ? LARGEST : 0;
    long k = t->k;
    for (long i = 0; i < k; i++)
        best[i] = (item){key_of(x[i], t->is_whole, flip), (natural)i};
    insert_each(best, k);
    for (long first = k; first < t->n; first += BLOCK) {
        long n = t->n - first < BLOCK ? t->n - first : BLOCK;
        natural last = best[k - 1].key, lowest = LARGEST;
        _Pragma("omp simd reduction(min : lowest)")
        for (long i = 0; i < n; i++) {
            key[i] = key_of(x[first + i], t->is_whole, flip);
            lowest = key[i] < lowest ? key[i] : lowest;
        }
        if (lowest >= last)
            continue;
        for (long i = 0; i < n; i++) {
            if (key[i] >= best[k - 1].key)
                continue;
            long j = k - 1;
            for (; j > 0 && best[j - 1].key > key[i]; j--)
                best[j] = best[j - 1];
            best[j] = (item){key[i], (natural)(first + i)};
        }
    }
}

static void top_rows(void *context, long begin, long end)
{
    rows *t = context;
    size_t bytes = (2 * sizeof(item) + sizeof(natural)) * (size_t)t->n;
    item *left = room_for(bytes);
    if (!left) {
        t->no_memory = 1;
        return;
    }
    natural *key = (natural *)(left + 2 * t->n);
    for (long row = begin; row < end; row++) {
        if (t->k <= FEW) {
            first_few(t, t->x + row * t->n, left);
            put(t, row, left, t->k);
            continue;
        }
        make_keys(t, row, key, t->descending ? LARGEST : 0);
        natural last = of_rank(key, t->n, t->k - 1, left).key;
        long before = 0, count = 0;
        for (long i = 0; i < t->n; i++)
            before += key[i] < last;
        for (long i = 0, equal = t->k - before; i < t->n; i++)
            if (key[i] < last || (key[i] == last && equal-- > 0))
                left[count++] = (item){key[i], (natural)i};
        put(t, row, sorted(left, left + t->n, count), count);
    }
    leave(left, bytes);
}

static int over_rows(const rl_call *c, rows *t, void (*body)(void *, long, long))
{
    t->x = c->array[0], t->value = c->array[1], t->place = c->array[2], t->n = c->integer[0];
    long grain = RL_PIECE / 4 / t->n;
    rl_parallel(body, t, c->size[0] / t->n, grain > 0 ? grain : 1);
    return t->no_memory ? RL_NO_MEMORY : RL_OK;
}

/* sort_rows(x, values, order, n, descending, is_whole); rows are not empty, here and below, and shorter than 2^31 */
static int sort_rows_(const rl_call *c)
{
    rows t = {.descending = (int)c->integer[1], .is_whole = (int)c->integer[2]};
    return over_rows(c, &t, sort_rows);
}

/* top_rows(x, values, order, n, k, descending, is_whole): the first k of each row, 0 < k <= n */
static int top_rows_(const rl_call *c)
{
    rows t = {.k = c->integer[1], .descending = (int)c->integer[2], .is_whole = (int)c->integer[3]};
    return over_rows(c, &t, top_rows);
}

/* pick_rows(x, value, place, n, rank, nan_first, without_nan, is_whole): the one of a rank; the first NaN, if there is one; the
   middle of those that are not NaN */
static int pick_rows_(const rl_call *c)
{
    rows t = {.k = c->integer[1], .nan_first = (int)c->integer[2], .without_nan = (int)c->integer[3], .is_whole = (int)c->integer[4]};
    return over_rows(c, &t, pick_rows);
}

RL_FAMILY(orders) = {
    {"sort_rows", "xy?Q iii", sort_rows_},
    {"top_rows", "xyQ iiii", top_rows_},
    {"pick_rows", "xyQ iiiii", pick_rows_},
    RL_END,
};
