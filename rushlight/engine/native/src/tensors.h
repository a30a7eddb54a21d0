/* Loops over all elements of many arrays, one after the other, in pieces that threads share out. */
#ifndef RL_TENSORS_H
#define RL_TENSORS_H

#include "kernels.h"

typedef void rl_part(void *context, long tensor, long begin, long end);

typedef struct {
    long tensor, begin, end;
} rl_tensor_piece;

typedef struct {
    void *context;
    rl_part *part;
    const rl_tensor_piece *pieces;
} rl_tensors;

static void rl_tensor_pieces(void *context, long begin, long end)
{
    const rl_tensors *t = context;
    for (long i = begin; i < end; i++)
        t->part(t->context, t->pieces[i].tensor, t->pieces[i].begin, t->pieces[i].end);
}

/* Pieces are of RL_PIECE elements at most, however many threads there are. */
static int rl_over_tensors(rl_part *part, void *context, const long *size, long tensors)
{
    long count = 0, total = 0, made = 0;
    for (long t = 0; t < tensors; t++)
        count += size[t] / RL_PIECE + 1, total += size[t];
    if (total <= RL_PIECE) { /* not worth a table, nor another thread */
        for (long t = 0; t < tensors; t++)
            part(context, t, 0, size[t]);
        return RL_OK;
    }
    rl_tensor_piece *pieces = malloc(sizeof(rl_tensor_piece) * (size_t)count);
    if (!pieces)
        return RL_NO_MEMORY;
    for (long t = 0; t < tensors; t++)
        for (long begin = 0; begin < size[t]; begin += RL_PIECE)
            pieces[made++] = (rl_tensor_piece){t, begin, size[t] - begin < RL_PIECE ? size[t] : begin + RL_PIECE};
    rl_tensors all = {context, part, pieces};
    rl_parallel(rl_tensor_pieces, &all, made, 1);
    free(pieces);
    return RL_OK;
}

#endif
