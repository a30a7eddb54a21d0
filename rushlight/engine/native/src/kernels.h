/* What a family of kernels is made of.

   Each file here but binding.c, ffi.c and pool.c is a family. It is compiled for each instruction set and, in each, once with
   real = float and once with real = double. It ends in its table:

       RL_FAMILY(norms) = {
           {"layer_norm", "xx?x?yyyy iid", layer_norm},
           RL_END,
       };

   The text says what the kernel takes, a letter for each argument (blanks are for the eye):

       x  an array of reals to read         q  int64 to read, Q to write
       y  an array of reals to write        u  uint32 to read, U to write
       X  a list of arrays to read          b  bool or uint8 to read, B to write
       Y  a list of arrays to write         i  a whole number       d  a number
       s  reals to read in any layout       S  reals to write in any layout
       ?  after a letter: may be None, and is NULL then

   All arrays but s and S lie in memory in C order; all reals of a call have one dtype. The caller, in Python, vouches
   for shapes. */
#ifndef RL_KERNELS_H
#define RL_KERNELS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"

typedef struct {
    void *const *array;    /* all arrays, those of lists one after the other */
    const long *size;      /* the number of elements of each */
    const ptrdiff_t *const *shape, *const *stride; /* of each; strides, in bytes, of s and S only */
    const long *integer;   /* the i arguments */
    const double *number;  /* the d arguments */
    const long *list;      /* how many arrays each list has */
} rl_call;

enum { RL_OK = 0, RL_NO_MEMORY = 1, RL_BAD_INDEX = 2 };

typedef struct {
    const char *name, *takes;
    int (*run)(const rl_call *); /* RL_OK, or what went wrong */
} rl_kernel;

#define RL_END {NULL, NULL, NULL}

/* The kernel of a name, for double or float, in the instruction set that was chosen; NULL if there is none. */
const rl_kernel *rl_find(const char *name, size_t length, int is_double);

/* -- for the families only: the binding is compiled once ------------------------------------------------------------ */

#ifdef RL_SET /* base, avx2 or avx512 */

#define RL_JOIN_(family, set, dtype) rl_##family##_##set##_##dtype
#define RL_JOIN(family, set, dtype) RL_JOIN_(family, set, dtype)

#ifdef RL_DOUBLE
#define RL_OWN(name) RL_JOIN(name, RL_SET, f64) /* a name that families share, of this instruction set and dtype */
typedef double real;
typedef int64_t whole; /* an integer as wide as a real; arithmetic on bits is done in unsigned ones, which may overflow */
typedef uint64_t natural;
#define RL_FAMILY(family) const rl_kernel RL_JOIN(family, RL_SET, f64)[]
#define REAL_MAX DBL_MAX
#else
#define RL_OWN(name) RL_JOIN(name, RL_SET, f32)
typedef float real;
typedef int32_t whole;
typedef uint32_t natural;
#define RL_FAMILY(family) const rl_kernel RL_JOIN(family, RL_SET, f32)[]
#define REAL_MAX FLT_MAX
#endif

#ifdef RL_DOUBLE
#define rl_sqrt __builtin_sqrt
#else
#define rl_sqrt __builtin_sqrtf
#endif

#define RL_INLINE static inline __attribute__((always_inline))

/* The iterations of the loop that follows may be done several at a time; sums that are named may be split. */
#define RL_SIMD _Pragma("omp simd")
#define RL_TEXT(x) #x
#define RL_SUM(...) _Pragma(RL_TEXT(omp simd reduction(+ : __VA_ARGS__)))
#define RL_MAX(...) _Pragma(RL_TEXT(omp simd reduction(max : __VA_ARGS__)))

/* Before a function whose loops read where an index says: there is an instruction for that, which GCC, asked for what is
   good on all processors, does without. Sampling of a picture takes a third of the time with it. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX2__)
#define RL_GATHERS __attribute__((target("tune=haswell")))
#else
#define RL_GATHERS
#endif

/* Elements that are worth a piece of work of their own (see rl_parallel) when little is done with each. */
enum { RL_PIECE = 1 << 15 };

/* How many rows of so many elements make a piece. */
RL_INLINE long rl_rows(long size)
{
    return size >= RL_PIECE ? 1 : size > 0 ? RL_PIECE / size : RL_PIECE;
}

#endif
#endif
