/* Threads that share out a loop, and sleep when there is none. */
#ifndef RL_POOL_H
#define RL_POOL_H

#include <stddef.h>

/* Call body(context, begin, end) for pieces of [0, count): piece i is [i * grain, (i + 1) * grain), the last one may
   be shorter. Where pieces begin does not depend on the number of threads, so a sum over pieces in their order does
   not either. Pieces run in any order, at once; a call from inside a body, or while another thread's loop is running,
   stays on its own thread. */
void rl_parallel(void (*body)(void *context, long begin, long end), void *context, long count, long grain);

/* The same where a piece may be cut anywhere: whatever is more than one is done in quarters, so that threads end together, and
   each does the same part of an array in one loop after the other. */
void rl_share(void (*body)(void *context, long begin, long end), void *context, long count, long grain);

/* Threads that somebody else has: ``start`` asks that one of them calls task(data) when it is free; 0 if none ever will. */
typedef struct {
    int (*start)(void *context, void (*task)(void *data), void *data);
    void *context;
} rl_lender;

/* From now on loops of the calling thread are shared with those, or, with NULL, with our own. */
void rl_borrow(const rl_lender *from);

/* How many threads a loop may use, the caller's included. */
void rl_set_threads(int threads);
int rl_get_threads(void);

/* Memory that the calling thread keeps, so that a piece of work need not ask the system for it: at least so many bytes,
   aligned for vectors. What an earlier call gave on this thread is gone. NULL if there is none. */
void *rl_scratch(size_t bytes);

#endif
