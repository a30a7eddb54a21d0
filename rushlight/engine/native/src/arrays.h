/* NumPy's arrays, read where they lie: an export of the buffer protocol costs more than the arithmetic of a small call.

   These fields are what the macros of NumPy's headers compile to, and so part of its binary interface. Still
   ``rl_learn_arrays`` compares an array with what its attributes say; if anything is not so, none is read this way. */
typedef struct {
    PyObject_HEAD
    char *data;
    int ndim;
    Py_ssize_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
} rl_array;

int rl_learn_arrays(void);

/* An array of NumPy's own class, or NULL. */
const rl_array *rl_array_of(PyObject *object);

/* PyObject_GetBuffer, for as long as somebody else holds the object. */
int rl_view(PyObject *object, Py_buffer *view, int flags);
