#define _GNU_SOURCE /* for a thread's core */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 256 };

/* How long a thread looks for work before it sleeps: longer than what lies between most operators of an eager program. To
   wake a sleeping one takes about 40 µs; to spin for longer takes the core from others, BLAS's threads among them. */
static const long SPIN_NANOSECONDS = 200 * 1000;

/* A part of a loop, on a cache line of its own. */
typedef struct {
    _Alignas(64) atomic_long next;
    long end;
} share;

/* Each thread has a share that it does first, the same one in each loop: what it reads was often written by itself, and
   is in its cache. Then it helps the others with theirs. */
typedef struct {
    void (*body)(void *, long, long);
    void *context;
    long grain;
    int shares, core; /* the core of the thread whose loop it is */
    share share[MOST_THREADS];
} loop;

static loop current;
static pthread_mutex_t one_loop = PTHREAD_MUTEX_INITIALIZER; /* held by the thread whose loop is running */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;     /* for all below that is not atomic */
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static atomic_uint loops; /* how many were begun */
static atomic_int inside; /* workers that are at work on the current one */
static int open, sleeping, owner_sleeps;
static int workers;           /* threads that exist beside the caller's */
static atomic_int wanted = 1; /* how many may work on a loop, the caller's included */
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

static atomic_int crowded; /* more threads than cores: who waits lets others run, or they wait for it */

static void relax(void)
{
    if (atomic_load_explicit(&crowded, memory_order_relaxed)) {
        sched_yield();
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static long nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* These two wait a while; they return whether what they wait for has happened. */
static int spin_for_next(unsigned seen)
{
    long until = nanoseconds() + SPIN_NANOSECONDS;
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&loops, memory_order_acquire) != seen)
                return 1;
            relax();
        }
    } while (nanoseconds() < until);
    return 0;
}

static int spin_until_left(void)
{
    long until = nanoseconds() + SPIN_NANOSECONDS;
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&inside, memory_order_acquire) == 0)
                return 1;
            relax();
        }
    } while (nanoseconds() < until);
    return 0;
}

/* -- cores ------------------------------------------------------------------------------------------------------------- */

/* A thread may be woken on the core of the one whose loop it is to share, and some systems leave it there for
   milliseconds. So who has woken others lets them run first, and who finds itself on that core goes to another. */
#ifdef __linux__
static int this_core(void) { return sched_getcpu(); }

static int cores(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) ? MOST_THREADS : CPU_COUNT(&allowed);
}

static void leave_core(int core)
{
    cpu_set_t allowed, others;
    if (core < 0 || this_core() != core || sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    others = allowed;
    CPU_CLR(core, &others);
    if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others))
        sched_setaffinity(0, sizeof allowed, &allowed);
}
#else
static int this_core(void) { return -1; }
static int cores(void) { return MOST_THREADS; }
static void leave_core(int core) { (void)core; }
#endif

/* -- loops ------------------------------------------------------------------------------------------------------------- */

static void begin(loop *job, void (*body)(void *, long, long), void *context, long count, long grain)
{
    long pieces = (count - 1) / grain + 1, from = 0;
    job->body = body, job->context = context, job->grain = grain, job->core = this_core();
    job->shares = (int)(pieces < wanted ? pieces : wanted);
    for (int i = 0; i < job->shares; i++) {
        long to = pieces * (i + 1) / job->shares * grain;
        atomic_store_explicit(&job->share[i].next, from, memory_order_relaxed);
        job->share[i].end = from = to < count ? to : count;
    }
}

static void drain(loop *job, int mine)
{
    for (int i = 0; i < job->shares; i++) {
        share *s = &job->share[(mine + i) % job->shares];
        for (;;) {
            long from = atomic_fetch_add_explicit(&s->next, job->grain, memory_order_relaxed);
            if (from >= s->end)
                break;
            job->body(job->context, from, s->end - from < job->grain ? s->end : from + job->grain);
        }
    }
}

/* -- threads of our own ------------------------------------------------------------------------------------------------ */

static void *work(void *number)
{
    int mine = (int)(long)number; /* 1 for the first worker; 0 is the caller of a loop */
    unsigned seen = 0;
    for (;;) {
        spin_for_next(seen);
        pthread_mutex_lock(&lock);
        while (atomic_load(&loops) == seen) {
            sleeping++;
            pthread_cond_wait(&wake, &lock);
            sleeping--;
        }
        seen = atomic_load(&loops);
        int take_part = open && mine < wanted;
        if (take_part)
            atomic_fetch_add(&inside, 1);
        pthread_mutex_unlock(&lock);
        if (!take_part)
            continue;
        leave_core(current.core);
        drain(&current, mine);
        if (atomic_fetch_sub(&inside, 1) == 1) {
            pthread_mutex_lock(&lock);
            if (owner_sleeps)
                pthread_cond_signal(&finished);
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

/* A forked process has none of its parent's threads, and locks as they happened to be. */
static void start_anew(void)
{
    pthread_mutex_init(&one_loop, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
    pthread_cond_init(&finished, NULL);
    atomic_store(&inside, 0);
    open = sleeping = owner_sleeps = workers = 0;
}

static void prepare(void) { pthread_atfork(NULL, NULL, start_anew); }

/* Threads are made at the first loop that wants them, with all signals blocked: those are for Python's thread. */
static void make_workers(void)
{
    pthread_once(&prepared, prepare);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (workers < wanted - 1) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(long)(workers + 1)))
            break; /* fewer threads then */
        pthread_detach(thread);
        workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void alone(void (*body)(void *, long, long), void *context, long count, long grain)
{
    for (long begin = 0; begin < count; begin += grain)
        body(context, begin, count - begin < grain ? count : begin + grain);
}

/* -- a loop that is shared with the threads of somebody else --------------------------------------------------------- */

enum { CLOSED = 1 << 30, LOOKS = 4096 };

/* The caller, and each thread that was asked to help, holds its memory: one may come when all is done. */
typedef struct {
    loop job;
    atomic_int inside, holders, came;
} shared_loop;

static _Thread_local const rl_lender *lender;
static _Thread_local int helping;

void rl_borrow(const rl_lender *from) { lender = from; }

static void leave(shared_loop *l)
{
    if (atomic_fetch_sub(&l->holders, 1) == 1)
        free(l);
}

static void help(void *given)
{
    shared_loop *l = given;
    if (!(atomic_fetch_add(&l->inside, 1) & CLOSED)) {
        helping = 1;
        leave_core(l->job.core);
        drain(&l->job, atomic_fetch_add(&l->came, 1) + 1);
        helping = 0;
    }
    atomic_fetch_sub(&l->inside, 1);
    leave(l);
}

static void with_borrowed(void (*body)(void *, long, long), void *context, long count, long grain)
{
    const rl_lender *from = lender;
    shared_loop *l = aligned_alloc(64, sizeof *l);
    if (!l) {
        alone(body, context, count, grain);
        return;
    }
    begin(&l->job, body, context, count, grain);
    int helpers = l->job.shares - 1;
    atomic_init(&l->inside, 0), atomic_init(&l->came, 0), atomic_init(&l->holders, helpers + 1);
    for (int i = 0; i < helpers; i++)
        if (!from->start(from->context, help, l))
            leave(l);
    sched_yield();
    helping = 1; /* a loop inside this one stays on its thread */
    drain(&l->job, 0);
    helping = 0;
    atomic_fetch_or(&l->inside, CLOSED);
    for (long looks = 0; atomic_load(&l->inside) != CLOSED; looks++)
        looks < LOOKS ? relax() : (void)sched_yield(); /* a helper may have lost its core */
    leave(l);
}

/* -- the loop --------------------------------------------------------------------------------------------------------- */

void rl_parallel(void (*body)(void *context, long begin, long end), void *context, long count, long grain)
{
    if (grain < 1)
        grain = 1;
    if (count <= grain || wanted < 2 || helping) {
        alone(body, context, count, grain);
        return;
    }
    if (lender) {
        with_borrowed(body, context, count, grain);
        return;
    }
    if (pthread_mutex_trylock(&one_loop)) {
        alone(body, context, count, grain);
        return;
    }
    if (workers < wanted - 1)
        make_workers();
    pthread_mutex_lock(&lock);
    begin(&current, body, context, count, grain);
    open = 1;
    atomic_fetch_add(&loops, 1);
    int wake_them = sleeping;
    pthread_mutex_unlock(&lock);
    if (wake_them) {
        pthread_cond_broadcast(&wake);
        sched_yield();
    }

    drain(&current, 0);

    pthread_mutex_lock(&lock);
    open = 0; /* who has not come yet is not waited for */
    pthread_mutex_unlock(&lock);
    if (!spin_until_left()) {
        pthread_mutex_lock(&lock);
        owner_sleeps = 1;
        while (atomic_load(&inside))
            pthread_cond_wait(&finished, &lock);
        owner_sleeps = 0;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&one_loop);
}

void rl_share(void (*body)(void *context, long begin, long end), void *context, long count, long grain)
{
    if (count > grain)
        rl_parallel(body, context, count, (grain + 3) / 4);
    else if (count > 0)
        body(context, 0, count);
}

void rl_set_threads(int threads)
{
    pthread_mutex_lock(&one_loop);
    pthread_mutex_lock(&lock);
    wanted = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    crowded = wanted > cores();
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&one_loop);
}

int rl_get_threads(void) { return wanted; }

/* -- scratch memory ------------------------------------------------------------------------------------------------ */

static pthread_key_t owned; /* its value is freed with its thread */
static pthread_once_t keyed = PTHREAD_ONCE_INIT;
static _Thread_local void *scratch;
static _Thread_local size_t scratch_bytes;

/* Under sanitizers it is new each time, as large as was asked for, and full of NaN: what goes beyond it, or reads what was never
   written, is found. */
#ifdef __SANITIZE_ADDRESS__
enum { WATCHED = 1 };
#else
enum { WATCHED = 0 };
#endif

static void make_key(void) { pthread_key_create(&owned, free); }

void *rl_scratch(size_t bytes)
{
    if (bytes <= scratch_bytes && !WATCHED)
        return scratch;
    pthread_once(&keyed, make_key);
    free(scratch);
    scratch_bytes = WATCHED ? bytes : (bytes + bytes / 4) / 4096 * 4096 + 4096;
    if (posix_memalign(&scratch, 4096, scratch_bytes))
        scratch = NULL, scratch_bytes = 0;
    else if (WATCHED)
        memset(scratch, 0xff, scratch_bytes);
    pthread_setspecific(owned, scratch);
    return scratch;
}
